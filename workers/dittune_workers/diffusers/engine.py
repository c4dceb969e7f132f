# SPDX-License-Identifier: MIT
"""Context and tensor parallelism of diffusers. Each plan has a copy of the transformer's modules that shares the weights and has its
own hooks, so several plans are resident at once and none is switched."""
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from dittune_workers.diffusers import cores
from dittune_workers.link import first_other
from dittune_workers.network import rank


class Network(rank.Network):
    """The transformer and the meshes of its plans."""

    def __init__(self, job, card):
        super().__init__(job, card)
        self.meshes = {}
        if not self.gpu:
            cores.prepare()

    @staticmethod
    def pick(name):
        import diffusers
        return getattr(diffusers, name)

    def mesh(self, cfg, ring, ulysses, tensor):
        """The mesh of these degrees; made once, by all ranks together."""
        degrees = cfg, ring, ulysses, tensor
        if degrees not in self.meshes:
            mesh = dist.init_device_mesh(self.device.type, degrees, mesh_dim_names=("cfg", "ring", "ulysses", "tensor"))
            mesh["ring", "ulysses"]._flatten()
            self.meshes[degrees] = mesh
        return self.meshes[degrees]


class Plan(rank.Plan):
    """A plan made resident on this rank."""

    def __init__(self, network, values, seed):
        super().__init__(network, values, seed)
        self.copy_modules()
        ring, ulysses, tensor = (values.get(name, 1) for name in ("ring", "ulysses", "tensor"))
        self.mesh = network.mesh(self.cfg, ring, ulysses, tensor) if values["ranks"] > 1 else None
        if "attention" in values:
            self.model.set_attention_backend(values["attention"])
        if ring * ulysses > 1:
            from diffusers import ContextParallelConfig
            anything = values.get("uneven", "off") != "off"
            self.model.enable_parallelism(config=ContextParallelConfig(
                ring_degree=ring, ulysses_degree=ulysses, mesh=self.mesh,
                ulysses_anything=anything and ulysses > 1, ring_anything=anything and ring > 1))
        if tensor > 1:
            from diffusers import TensorParallelConfig
            self.model.enable_parallelism(config=TensorParallelConfig(tp_degree=tensor, mesh=self.mesh["tensor"]))
        if values.get("offload", "off") != "off":
            self.model.enable_group_offload(network.device, **rank.STREAMED)
        elif network.tight:
            self.place()
        if values.get("compile", "off") != "off":
            self.prepare_compiler()
            self.model.compile_repeated_blocks()

    def place(self):
        """Brings what no rank shares onto the device, where the weights were loaded into the host's memory."""
        for module in self.model.modules():
            for name, weight in module._parameters.items():
                if weight is not None and not isinstance(weight, DTensor):
                    module._parameters[name] = torch.nn.Parameter(weight.to(self.network.device), requires_grad=False)
            for name, buffer in module._buffers.items():
                module._buffers[name] = buffer if buffer is None else buffer.to(self.network.device)

    def parts(self):
        """What compile_repeated_blocks compiles."""
        return [module for module in self.model.modules() if type(module).__name__ in self.model._repeated_blocks]

    def applied(self):
        """diffusers passes over layers that cannot keep a setting."""
        found = super().applied()
        found["cfg"] = self.mesh["cfg"].size() if self.mesh else 1
        found["tensor"] = max((each.device_mesh.size() for each in self.model.parameters() if isinstance(each, DTensor)), default=1)
        layers = [layer(module.processor) for module in self.model.modules() if getattr(module, "processor", None) is not None]
        return {**found, **{name: first_other([each[name] for each in layers], self.values.get(name)) for name in layers[0]}}

    def gather(self):
        mine = self.forward(self.mesh["cfg"].get_local_rank()).contiguous()
        halves = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(halves, mine, group=self.mesh["cfg"].get_group())
        return halves


def layer(processor):
    """What an attention layer runs with."""
    backend = getattr(processor, "_attention_backend", None)
    split = getattr(getattr(processor, "_parallel_config", None), "context_parallel_config", None)
    if split is None:
        return dict(attention=getattr(backend, "value", backend), ring=1, ulysses=1, uneven="off")
    return dict(attention=getattr(backend, "value", backend), ring=split._ring_mesh.size(), ulysses=split._ulysses_mesh.size(),
                uneven="anything" if split.ulysses_anything or split.ring_anything else "off")
