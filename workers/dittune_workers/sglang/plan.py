# SPDX-License-Identifier: MIT
"""SGLang's own Python entry: it starts its ranks, a request makes one image or video."""
import json
import os
import pathlib

from dittune_workers import machine
from dittune_workers.hosts import free_port
from dittune_workers.request import plan

PRECISION = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


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
    if "compile" in values:  # speed mode compiles some models unless it is told not to
        words.update(enable_torch_compile=values["compile"] != "off", regional_compile=values["compile"] == "regions")
    if values.get("graphs", "off") != "off":
        words.update(enable_breakable_cuda_graph=True, warmup_resolutions=[f"{job['width']}x{job['height']}"])
    if "mode" in values:
        words["performance_mode"] = values["mode"]
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

    def runs_with(self):
        args = self.generator.server_args
        gathers = args.kv_gather_degree > 1  # it then gives the same number to its other degrees
        found = dict(ranks=len(self.pids()), tensor=args.tp_size, cfg=args.cfg_parallel_degree, kv_gather=args.kv_gather_degree,
                     ulysses=1 if gathers else args.ulysses_degree, ring=1 if gathers else args.ring_degree,
                     compile="off" if not args.enable_torch_compile else "regions" if args.regional_compile else "whole",
                     graphs="segments" if args.enable_breakable_cuda_graph else "off", mode=args.performance_mode)
        if self.values.get("attention", "auto") != "auto":
            found["attention"] = args.attention_backend
        return found

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
