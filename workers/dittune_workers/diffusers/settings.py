# SPDX-License-Identifier: MIT
"""How a transformer of diffusers is told of a plan: by the worker's ranks, on a copy of its modules, and by dittune.apply(), on the
user's own."""
import torch.distributed as dist

DEGREES = ("cfg", "ring", "ulysses", "tensor")
# How weights are streamed from the host's memory, as xDiT does: a block at a time, the next one while one computes.
STREAMED = dict(offload_type="block_level", num_blocks_per_group=1, use_stream=True, record_stream=True, non_blocking=True)


def degrees_of(values):
    return tuple(values.get(name, 1) for name in DEGREES)


def mesh_of(device_type, degrees):
    """Made by all ranks together."""
    return dist.init_device_mesh(device_type, degrees, mesh_dim_names=DEGREES)


def set_attention(model, facts, values):
    if "attention" in values and facts["backends"]:
        model.set_attention_backend(values["attention"])


def split(model, facts, values, mesh):
    """Over ring, ulysses and tensor of a mesh, whose ring and ulysses are flattened to one; what the class cannot do stays whole."""
    _, ring, ulysses, tensor = degrees_of(values)
    if ring * ulysses > 1 and facts["context"]:
        from diffusers import ContextParallelConfig
        anything = values.get("uneven", "off") != "off"
        model.enable_parallelism(config=ContextParallelConfig(
            ring_degree=ring, ulysses_degree=ulysses, mesh=mesh,
            ulysses_anything=anything and ulysses > 1, ring_anything=anything and ring > 1))
    if tensor > 1 and facts["tensor"]:
        from diffusers import TensorParallelConfig
        model.enable_parallelism(config=TensorParallelConfig(tp_degree=tensor, mesh=mesh["tensor"]))


def stream(model, device):
    model.enable_group_offload(device, **STREAMED)


def blocks_of(model):
    """What compile_repeated_blocks compiles."""
    return [module for module in model.modules() if type(module).__name__ in (getattr(model, "_repeated_blocks", None) or ())]


def layer(processor):
    """What an attention layer runs with."""
    backend = getattr(processor, "_attention_backend", None)
    split_by = getattr(getattr(processor, "_parallel_config", None), "context_parallel_config", None)
    if split_by is None:
        return dict(attention=getattr(backend, "value", backend), ring=1, ulysses=1, uneven="off")
    return dict(attention=getattr(backend, "value", backend), ring=split_by._ring_mesh.size(), ulysses=split_by._ulysses_mesh.size(),
                uneven="anything" if split_by.ulysses_anything or split_by.ring_anything else "off")
