# SPDX-License-Identifier: MIT
"""vLLM-Omni's own Python entry, Omni: it starts its ranks, a request makes one image or video."""
import os

from dittune_workers import machine, protocol

DEGREES = dict(ulysses="ulysses_degree", ring="ring_degree", kv_gather="allgather_degree", cfg="cfg_parallel_size",
               tensor="tensor_parallel_size")
START = 24 * 3600  # seconds: dittune's own deadlines end a start that hangs


def start_words(job, values):
    """The keywords of Omni for a plan."""
    words = dict(model=job["folder"], dtype=job["dtype"], stage_init_timeout=START, init_timeout=START,
                 parallel_config={word: values.get(name, 1) for name, word in DEGREES.items()})
    if values.get("uneven") == "advanced_uaa":
        words["parallel_config"]["ulysses_mode"] = values["uneven"]
    if values.get("attention", "auto") != "auto":
        words["diffusion_attention_backend"] = values["attention"]
    return words


def request_words(job, guided, prompt, seed):
    """(the prompt, the keywords of OmniDiffusionSamplingParams). guided: the model makes two passes a step."""
    asked = dict(prompt=prompt, **(dict(negative_prompt="") if guided else {}))
    return asked, dict(height=job["height"], width=job["width"], num_frames=job["frames"], num_inference_steps=job["steps"],
                        guidance_scale=job["guidance"], guidance_scale_provided=True, seed=seed,
                        **(dict(true_cfg_scale=job["guidance"]) if guided else {}))


class Server:
    """An Omni of a plan."""

    def __init__(self, worker, values):
        if not worker.gpu:
            os.environ["OMP_NUM_THREADS"] = str(max(1, machine.cores() // values["ranks"]))
        from vllm_omni.entrypoints.omni import Omni
        self.omni = Omni(**start_words(worker.job, values))
        self.gpu, self.bytes, self.guided = worker.gpu, 0, worker.guided()

    def serve(self, job, prompt, seed, keep):
        import numpy
        import torch
        from vllm_omni.inputs.data import OmniDiffusionSamplingParams
        asked, words = request_words(job, self.guided, prompt, seed)
        made, = self.omni.generate(asked, OmniDiffusionSamplingParams(**words), use_tqdm=False)
        if made.error is not None or not made.images:
            raise RuntimeError(f"vLLM-Omni answered the request with {made.error or 'no image'}")
        self.bytes = int(made.peak_memory_mb * 2**20)
        if not keep:
            return None
        pixels = numpy.stack([numpy.asarray(image, dtype=numpy.float32) for image in made.images])
        return torch.from_numpy(pixels)[None]

    @staticmethod
    def pids():
        return protocol.descendants(os.getpid())

    def peak(self):
        return self.bytes if self.gpu else None

    def close(self):
        self.omni.close()
