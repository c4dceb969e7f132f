# SPDX-License-Identifier: MIT
"""SGLang's own Python entry: it starts its ranks, a request makes one image or video."""
import json
import os
import pathlib

from dittune_workers import machine
from dittune_workers.hosts import free_port
from dittune_workers.link import check_kept
from dittune_workers.request import plan

PRECISION = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
KEPT = ("num_gpus", "tp_size", "ulysses_degree", "ring_degree", "cfg_parallel_degree", "kv_gather_degree",
        "attention_backend")


def start_words(job, values, model):
    """The keywords of DiffGenerator for a plan; model: the name by which SGLang knows the network."""
    degree = {name: values.get(name, 1) for name in ("tensor", "ulysses", "ring", "cfg", "kv_gather")}
    words = dict(model_path=job["folder"], model_id=model, num_gpus=values["ranks"],
                 tp_size=degree["tensor"], ulysses_degree=degree["ulysses"], ring_degree=degree["ring"],
                 cfg_parallel_degree=degree["cfg"], enable_cfg_parallel=degree["cfg"] > 1,
                 dit_precision=PRECISION[job["dtype"]], log_level="warning", master_port=free_port(),
                 scheduler_port=free_port())
    if job["dtype"] == "float32":
        # Its usual text encoders for FLUX and Qwen-Image give bfloat16, which a float32 transformer refuses.
        parts = json.loads(pathlib.Path(job["folder"], "model_index.json").read_text(encoding="utf-8"))
        encoders = [name for name in parts if name.startswith("text_encoder")]
        words.update(vae_precision="fp32", text_encoder_precisions=["fp32"] * len(encoders))
    if degree["kv_gather"] > 1:
        words.update(kv_gather_degree=degree["kv_gather"], ulysses_degree=None, ring_degree=None)
    if values.get("attention", "auto") != "auto":
        words["attention_backend"] = values["attention"]
    return words


class Plan(plan.Plan):
    """A DiffGenerator of a plan."""

    def start(self):
        worker = self.engine
        if not worker.gpu:
            os.environ["OMP_NUM_THREADS"] = str(max(1, machine.cores() // self.values["ranks"]))
        from sglang.multimodal_gen import DiffGenerator
        words = start_words(worker.job, self.values, worker.known_as())
        self.generator, self.bytes = DiffGenerator.from_pretrained(**words), 0
        asked = {name: words[name] for name in KEPT if words.get(name) is not None}
        check_kept("SGLang", asked, vars(self.generator.server_args))

    def serve(self, job, prompt, seed, keep):
        made = self.generator.generate(dict(
            prompt=prompt, width=job["width"], height=job["height"], num_frames=job["frames"],
            num_inference_steps=job["steps"], guidance_scale=job["guidance"], seed=seed,
            save_output=False, return_trajectory_latents=keep))
        if made is None:
            raise RuntimeError("SGLang answered the request with nothing; its log on standard error has "
                               "the reason")
        self.bytes = int(made.peak_memory_mb * 2**20)
        return made.trajectory_latents[:, -1] if keep else None

    def pids(self):
        return [process.pid for process in self.generator.local_scheduler_process or []]

    def end(self):
        self.generator.shutdown()
