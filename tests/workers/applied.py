# SPDX-License-Identifier: MIT
# ctest: ranks
"""Flags without effect, planted one at a time into stand-ins for SGLang and vLLM-Omni, are found by their parameter; every parameter
that a worker announces is read back. Those of diffusers and xDiT are planted into the engines themselves
(engine_diffusers.py, engine_xdit.py)."""
import os
import pathlib
import subprocess
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path[:0] = [str(SOURCE / "workers"), str(pathlib.Path(__file__).parent / "pretended")]
sys.modules["dittune_workers.network.rank"] = types.ModuleType("rank")  # needs torch, and only projects outputs
from dittune_workers import facts
from dittune_workers.link import Refused, check_applied
from dittune_workers.sglang import plan as sglang
from dittune_workers.vllm_omni import plan as vllm_omni
from vllm_omni.engine import Engine

t = Dittune(clock="real")
FOLDER = t.write("model_index.json", "{}").parent
JOB = dict(folder=str(FOLDER), dtype="bfloat16", width=1024, height=1024, frames=1, steps=2, guidance=1.0)
now = types.SimpleNamespace(drops=None)  # the keyword that has no effect, or "log"


class DiffGenerator:
    """What SGLang would start: processes that sleep, and arguments as it has resolved them."""
    USUAL = dict(tp_size=1, ulysses_degree=1, ring_degree=1, cfg_parallel_degree=1, kv_gather_degree=1, attention_backend="fa",
                 enable_torch_compile=False, regional_compile=False, enable_breakable_cuda_graph=False, performance_mode="auto")

    @classmethod
    def from_pretrained(cls, **words):
        made = cls()
        made.server_args = types.SimpleNamespace(**{**cls.USUAL, **{name: value for name, value in words.items()
                                                                    if value is not None and name != now.drops}})
        line = "[Diffusion BCG] serving signature MISSED 1 captured graph(s)" if now.drops == "log" else "ready"
        ranks = 1 if now.drops == "num_gpus" else words["num_gpus"]
        subprocess.run(["echo", line], check=True)
        made.local_scheduler_process = [subprocess.Popen(["sleep", "4712"]) for _ in range(ranks)]
        return made

    def shutdown(self):
        for process in self.local_scheduler_process:
            process.kill()
            process.wait()


class Omni:
    def __init__(self, model, dtype, stage_init_timeout, init_timeout, **words):
        os.environ["PRETENDED_DROPS"] = str(now.drops)
        self.engine = Engine(**words)

    def close(self):
        pass


for name, contents in (("sglang", {}), ("sglang.multimodal_gen", dict(DiffGenerator=DiffGenerator)), ("vllm_omni.entrypoints", {}),
                       ("vllm_omni.entrypoints.omni", dict(Omni=Omni))):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)


def engine_of(name):
    file = facts.files(name)[-1]
    return types.SimpleNamespace(engine=name, plans=[], job=JOB, gpu=True, log=file["worker"].get("log", []), discover=lambda: (file, "1"), known_as=lambda: "FLUX.1-dev",
                                 card=dict(name="x", guidance="cfg", diffusers={"class": "FluxTransformer2DModel"}))


def applied(name, kind, values, drops):
    """The sentence of a plan, or what was read back when it is as the plan says."""
    now.drops = drops
    resident = kind(engine_of(name), values, 1)
    found = {}
    try:
        if drops == "log":  # which a thread reads
            t.until(lambda: resident.log.found, 20)
        found = resident.applied()
        check_applied(values, found)
    except Refused as refused:
        return refused.args
    finally:
        resident.close()
    return found


# Engine, the plan's value that is dropped, the keyword that has no effect, what the engine runs with instead.
PLANTED = [("sglang", dict(ranks=2, tensor=2), "num_gpus", "ranks=1"), ("sglang", dict(ranks=2, tensor=2), "tp_size", "tensor=1"),
           ("sglang", dict(ranks=2, ulysses=2), "ulysses_degree", "ulysses=1"), ("sglang", dict(ranks=2, ring=2), "ring_degree", "ring=1"),
           ("sglang", dict(ranks=2, kv_gather=2), "kv_gather_degree", "kv_gather=1"), ("sglang", dict(ranks=2, cfg=2), "cfg_parallel_degree", "cfg=1"),
           ("sglang", dict(ranks=1, attention="torch_sdpa"), "attention_backend", "attention=fa"),
           ("sglang", dict(ranks=1, compile="whole"), "enable_torch_compile", "compile=off"),
           ("sglang", dict(ranks=1, compile="regions"), "regional_compile", "compile=whole"),
           ("sglang", dict(ranks=1, graphs="segments"), "enable_breakable_cuda_graph", "graphs=off"),
           ("sglang", dict(ranks=1, graphs="segments"), "log", "graphs=off"), ("sglang", dict(ranks=1, mode="speed"), "performance_mode", "mode=auto"),
           ("vllm-omni", dict(ranks=2, ulysses=2), "ulysses_degree", "ulysses=1"), ("vllm-omni", dict(ranks=2, ring=2), "ring_degree", "ring=1"),
           ("vllm-omni", dict(ranks=2, kv_gather=2), "allgather_degree", "kv_gather=1"), ("vllm-omni", dict(ranks=2, cfg=2), "cfg_parallel_size", "cfg=1"),
           ("vllm-omni", dict(ranks=2, tensor=2), "tensor_parallel_size", "tensor=1"),
           ("vllm-omni", dict(ranks=1, attention="CUDNN_ATTN"), "diffusion_attention_backend", "attention=FLASH_ATTN"),
           ("vllm-omni", dict(ranks=1, compile="off"), "enforce_eager", "compile=regional"),
           ("vllm-omni", dict(ranks=1, compile="full"), "diffusion_compile_granularity", "compile=regional"),
           ("vllm-omni", dict(ranks=2, ulysses=2, uneven="advanced_uaa"), "ulysses_mode", "uneven=off"),
           ("vllm-omni", dict(ranks=1, offload="layers"), "enable_layerwise_offload", "offload=off"),
           ("vllm-omni", dict(ranks=1, offload="module"), "enable_cpu_offload", "offload=off"),
           ("vllm-omni", dict(ranks=2, ulysses=2, text_shards=2), "text_encoder_tp_size", "text_shards=1")]
KINDS = {"sglang": sglang.Plan, "vllm-omni": vllm_omni.Plan}


def planted():
    for name, values, drops, runs in PLANTED:
        right = applied(name, KINDS[name], values, None)
        t.check(f"{name}: {values} is read back", isinstance(right, dict) and set(values) - {"uneven"} <= set(right), right)
        wrong = applied(name, KINDS[name], values, drops)
        t.check(f"{name}: {drops} without effect: {wrong}", wrong[0] == "unapplied" and f"the engine runs with {runs}, the plan has " in wrong[1], wrong)


def all_are_read():
    """Each parameter of the engine's file that the worker sets."""
    for name, passive in (("sglang", {"uneven"}), ("vllm-omni", {"uneven"})):
        axes = {axis["name"] for axis in facts.files(name)[-1]["worker"]["axes"]}
        attention = next(axis["values"][-1] for axis in facts.files(name)[-1]["worker"]["axes"] if axis["name"] == "attention")
        found = applied(name, KINDS[name], dict(ranks=1, attention=attention), None)
        t.check(f"{name}: every parameter that is set is read back", isinstance(found, dict) and axes - passive <= set(found), axes - set(found))


def silent():
    """vLLM-Omni that does not answer is run all the same, and the worker says so."""
    Engine.collective_rpc = lambda *args, **how: [dict(supported=False, error="no such method")]
    t.check("an engine without an answer tells nothing", applied("vllm-omni", vllm_omni.Plan, dict(ranks=2, ulysses=2), None) == {})


planted()
all_are_read()
silent()
t.none_left()
t.finish()
