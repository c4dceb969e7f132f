# SPDX-License-Identifier: MIT
"""vLLM-Omni's own Python entry, Omni: it starts its ranks, a request makes one image or video."""
import os
import sys

from dittune_workers import machine, protocol
from dittune_workers.network.worker import guided
from dittune_workers.request import plan
from dittune_workers.vllm_omni import applied, words


class Plan(plan.Plan):
    """An Omni of a plan."""

    def start(self):
        if not self.engine.gpu:
            os.environ["OMP_NUM_THREADS"] = str(max(1, machine.cores() // self.values["ranks"]))
        from vllm_omni.entrypoints.omni import Omni
        self.omni, self.bytes = Omni(**words.start_words(self.engine.job, self.values)), 0

    def serve(self, job, prompt, seed, keep):
        import numpy
        import torch
        from vllm_omni.inputs.data import OmniDiffusionSamplingParams
        passes = guided(self.engine.card, self.engine.job)
        asked, params = words.request_words(job, passes, prompt, seed)
        made, = self.omni.generate(asked, OmniDiffusionSamplingParams(**params), use_tqdm=False)
        if made.error is not None or not made.images:
            raise RuntimeError(f"vLLM-Omni answered the request with {made.error or 'no image'}")
        self.bytes = int(made.peak_memory_mb * 2**20)
        if not keep:
            return None
        pixels = numpy.stack([numpy.asarray(image, dtype=numpy.float32) for image in made.images])
        return torch.from_numpy(pixels)[None]

    def runs_with(self):
        replies = self.omni.engine.collective_rpc("dittune_applied", args=(self.values.get("attention", "auto"),))
        found = applied.told(replies)
        if not found:
            print(f"vLLM-Omni does not tell what it runs with: {replies}", file=sys.stderr, flush=True)
        elif found.pop("ulysses_mode") == "advanced_uaa":
            found["uneven"] = "advanced_uaa"
        elif self.values.get("uneven") == "advanced_uaa":
            found["uneven"] = "off"
        return found

    @staticmethod
    def pids():
        return protocol.descendants(os.getpid())

    def end(self):
        self.omni.close()
