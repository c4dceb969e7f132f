# SPDX-License-Identifier: MIT
"""Omni with ranks that compute. $PRETENDED_LOG: a file that gets the keywords; $PRETENDED_FAULT: a degree that is wrong when split."""
import json
import math
import multiprocessing
import os
import types

import numpy
from vllm_omni.engine import Engine

TOKENS, WIDTH = 1024, 64


def weights():
    return numpy.random.default_rng(1).standard_normal((WIDTH, WIDTH)) / math.sqrt(WIDTH)


def serve(pipe, rank, ranks):
    """A rank: its tokens are updated by all tokens' mean, which needs the sums of the other ranks in each step."""
    matrix, rows = weights(), slice(rank * TOKENS // ranks, (rank + 1) * TOKENS // ranks)
    while (request := pipe.recv()) is not None:
        seed, steps = request
        x = numpy.random.default_rng(seed).standard_normal((TOKENS, WIDTH))[rows]
        for _ in range(steps):
            for _ in range(40):
                pipe.send(x.sum(axis=0))
                x = numpy.tanh(x @ matrix + pipe.recv() / TOKENS)
        pipe.send(x)


class Omni:
    def __init__(self, model, parallel_config, dtype="auto", stage_init_timeout=300, init_timeout=600, diffusion_attention_backend=None,
                 worker_extension_cls=None):
        self.engine = Engine(parallel_config, diffusion_attention_backend, worker_extension_cls=worker_extension_cls)
        assert os.path.isfile(os.path.join(model, "model_index.json")) and min(stage_init_timeout, init_timeout) > 0
        degrees = dict(ulysses_degree=1, ring_degree=1, allgather_degree=1, cfg_parallel_size=1, tensor_parallel_size=1)
        mode = parallel_config.get("ulysses_mode", "strict")
        assert set(parallel_config) - {"ulysses_mode"} <= set(degrees) and mode in ("strict", "advanced_uaa")
        degrees.update({name: value for name, value in parallel_config.items() if name != "ulysses_mode"})
        assert degrees["allgather_degree"] == 1 or degrees["ulysses_degree"] * degrees["ring_degree"] == 1
        with open(os.environ.get("PRETENDED_LOG", os.devnull), "a", encoding="utf-8") as log:
            log.write(json.dumps(dict(parallel_config, dtype=dtype, attention=diffusion_attention_backend)) + "\n")
        self.fault = degrees.get(os.environ.get("PRETENDED_FAULT"), 1) > 1
        context, ranks = multiprocessing.get_context("spawn"), math.prod(degrees.values())
        pairs = [context.Pipe() for _ in range(ranks)]
        self.pipes = [mine for mine, _ in pairs]
        self.ranks = [context.Process(target=serve, args=(theirs, rank, ranks), daemon=True) for rank, (_, theirs) in enumerate(pairs)]
        for process in self.ranks:
            process.start()

    def generate(self, prompt, params, use_tqdm=True):
        del use_tqdm
        with open(os.environ.get("PRETENDED_LOG", os.devnull), "a", encoding="utf-8") as log:
            log.write(json.dumps(dict(vars(params), prompt=prompt)) + "\n")
        passes = 2 if params.guidance_scale > 1 and "negative_prompt" in prompt else 1
        for pipe in self.pipes:
            pipe.send((params.seed, passes * params.num_inference_steps))
        for _ in range(40 * passes * params.num_inference_steps):
            sums = [pipe.recv() for pipe in self.pipes]
            total = sums[0] if self.fault else sum(sums)
            for pipe in self.pipes:
                pipe.send(total)
        x = numpy.concatenate([pipe.recv() for pipe in self.pipes])
        pixels = numpy.uint8(numpy.round(127.5 * (x + 1)))
        return [types.SimpleNamespace(error=None, images=[pixels], peak_memory_mb=0.0)]

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.ranks:
            process.join()
