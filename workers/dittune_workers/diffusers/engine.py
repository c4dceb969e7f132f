# SPDX-License-Identifier: MIT
"""Context parallelism of diffusers. Each plan has a copy of the transformer's modules that shares the weights and has its
own hooks, so several plans are resident at once and none is switched."""
import copy

import torch
import torch.distributed as dist

from dittune_workers.diffusers import cores
from dittune_workers.link import Refused, check_kept
from dittune_workers.network import rank

# Compiled variants of a function in a process: every resident plan is one, and torch's own limit is 8.
VARIANTS = 1000


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

    def mesh(self, cfg, ring, ulysses):
        """The mesh of these degrees; made once, by all ranks together."""
        if (cfg, ring, ulysses) not in self.meshes:
            mesh = dist.init_device_mesh(self.device.type, (cfg, ring, ulysses), mesh_dim_names=("cfg", "ring", "ulysses"))
            mesh["ring", "ulysses"]._flatten()
            self.meshes[cfg, ring, ulysses] = mesh
        return self.meshes[cfg, ring, ulysses]


class Plan(rank.Plan):
    """A plan made resident on this rank."""

    def __init__(self, network, values, seed):
        super().__init__(network, values, seed)
        weights = [*network.model.parameters(), *network.model.buffers()]
        self.model = copy.deepcopy(network.model, {id(tensor): tensor for tensor in weights})
        ring, ulysses = values["ring"], values["ulysses"]
        self.mesh = network.mesh(self.cfg, ring, ulysses) if values["ranks"] > 1 else None
        if "attention" in values:
            self.model.set_attention_backend(values["attention"])
        if ring * ulysses > 1:
            from diffusers import ContextParallelConfig
            anything = values.get("uneven", "off") != "off"
            self.model.enable_parallelism(config=ContextParallelConfig(
                ring_degree=ring, ulysses_degree=ulysses, mesh=self.mesh,
                ulysses_anything=anything and ulysses > 1, ring_anything=anything and ring > 1))
        if values.get("compile") == "blocks":
            self.compile_blocks()
        self.check_layers()

    def compile_blocks(self):
        """torch runs a function eager, with no more than a line in its log, once it has more variants than its limit: here an error."""
        from torch import _dynamo
        if _dynamo.config.disable:
            raise Refused("error", "torch compiles nothing for compile=blocks, as TORCH_COMPILE_DISABLE is set")
        _dynamo.config.recompile_limit = _dynamo.config.accumulated_recompile_limit = VARIANTS
        _dynamo.config.fail_on_recompile_limit_hit = True
        self.model.compile_repeated_blocks()

    def check_layers(self):
        """Refused when an attention layer has not the plan's settings: diffusers passes over layers that cannot keep them."""
        asked = {name: self.values[name] for name in ("attention", "ring", "ulysses") if name in self.values}
        for module in self.model.modules():
            processor = getattr(module, "processor", None)
            if processor is not None:
                backend = getattr(processor, "_attention_backend", None)
                split = getattr(getattr(processor, "_parallel_config", None), "context_parallel_config", None)
                check_kept("diffusers", asked, dict(attention=getattr(backend, "value", backend), ring=getattr(split, "ring_degree", 1),
                                                    ulysses=getattr(split, "ulysses_degree", 1)))

    def forward(self, half):
        if self.values.get("compile", "off") == "off":
            return super().forward(half)
        from torch._dynamo.exc import FailOnRecompileLimitHit
        try:
            return super().forward(half)
        except FailOnRecompileLimitHit:
            raise Refused("error", f"compile=blocks: torch has {VARIANTS} compiled variants of a function, its limit in this process, "
                                   "and would run this plan without compiling it") from None

    def gather(self):
        mine = self.forward(self.mesh["cfg"].get_local_rank()).contiguous()
        halves = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(halves, mine, group=self.mesh["cfg"].get_group())
        return halves
