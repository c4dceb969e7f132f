# SPDX-License-Identifier: MIT
"""What the worker asks an Omni about: the process groups, networks and configuration of a rank. $PRETENDED_DROPS: a keyword that has no
effect."""
import enum
import importlib
import os
import sys
import types

import vllm  # whose modules are made here, too

DEGREES = dict(ulysses_degree="ulysses", ring_degree="ring", allgather_degree="allgather", cfg_parallel_size="classifier_free_guidance",
               tensor_parallel_size="tensor_model")
SIZES = {}


def module(name, **contents):
    parent, _, last = name.rpartition(".")
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(contents)
    setattr(sys.modules[parent], last, sys.modules[name])


class Backends(enum.Enum):
    FLASH_ATTN, TORCH_SDPA, CUDNN_ATTN = range(3)

    def get_class(self):
        return CLASSES[self]


CLASSES = {each: types.SimpleNamespace(get_name=lambda name=each.name: name) for each in Backends}
SIZE = {f"get_{group}_parallel_world_size": lambda group=group: SIZES[group] for group in DEGREES.values() if group != "classifier_free_guidance"}
for name in "diffusion", "diffusion.distributed", "diffusion.attention", "diffusion.attention.backends":
    module(f"vllm_omni.{name}")
module("vllm_omni.diffusion.attention.backends.registry", DiffusionAttentionBackendEnum=Backends)
module("vllm_omni.diffusion.distributed.parallel_state", **SIZE, get_classifier_free_guidance_world_size=lambda: SIZES["classifier_free_guidance"],
       get_world_group=lambda: types.SimpleNamespace(world_size=SIZES["world"]))
module("vllm.distributed")
module("vllm.distributed.parallel_state", **SIZE)


class Engine:
    def __init__(self, parallel_config, diffusion_attention_backend=None, enforce_eager=False, diffusion_compile_granularity="regional",
                 enable_layerwise_offload=False, enable_cpu_offload=False, worker_extension_cls=None):
        drops, said = os.environ.get("PRETENDED_DROPS"), dict(locals())
        kept = lambda name, otherwise: otherwise if name == drops else said.get(name, parallel_config.get(name, otherwise))
        self.extension, self.sizes = worker_extension_cls, {group: kept(degree, 1) for degree, group in DEGREES.items()}
        self.sizes["world"] = 1
        for size in [size for group, size in self.sizes.items() if group != "world"]:
            self.sizes["world"] *= size
        how = "off" if kept("enforce_eager", False) else kept("diffusion_compile_granularity", "regional")
        backend = CLASSES[Backends[kept("diffusion_attention_backend", None) or "FLASH_ATTN"]]
        forward = types.SimpleNamespace(**(dict(_torchdynamo_orig_callable=None) if how == "regional" else {}))
        layer = types.SimpleNamespace(forward=forward, attn_backend=backend)
        network = types.SimpleNamespace(_compiled_call_impl=how if how == "full" else None, modules=lambda: [layer])
        layers, module = kept("enable_layerwise_offload", False), kept("enable_cpu_offload", False)
        parallel = types.SimpleNamespace(text_encoder_tp_size=kept("text_encoder_tp_size", 1), ulysses_mode=kept("ulysses_mode", "strict"))
        self.config = types.SimpleNamespace(parallel_config=parallel, enable_layerwise_offload=layers, enable_cpu_offload=module)
        self.runner = types.SimpleNamespace(pipeline=types.SimpleNamespace(transformer=network), offload_backend="some" if layers or module else None)

    def collective_rpc(self, method, timeout=None, args=(), kwargs=None, stage_ids=None):
        SIZES.update(self.sizes)
        where, _, name = self.extension.rpartition(".")
        extension = getattr(importlib.import_module(where), name)
        worker = type("Worker", (extension,), dict(od_config=self.config, model_runner=self.runner))()
        return [[getattr(worker, method)(*args, **(kwargs or {}))]]
