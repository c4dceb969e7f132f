# SPDX-License-Identifier: MIT
"""A worker of cache-dit for the tests of its rules, of which none holds: a plan's modules are split by cache-dit's own enable_parallelism."""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
import torch
from dittune_workers.diffusers import engine
from dittune_workers.network import rank, worker


class Plan(rank.Plan):
    def __init__(self, network, values, seed):
        super().__init__(network, values, seed)
        ulysses, tensor = values["ulysses"], values["tensor"]
        if ulysses * tensor == 1:
            return
        import cache_dit
        from cache_dit.distributed import enable_parallelism
        torch.accelerator.current_accelerator = lambda *_: torch.device("cpu")  # of tensor parallelism
        own = [*network.model.parameters(), *network.model.buffers()] if tensor == 1 else []
        self.model = copy.deepcopy(network.model, {id(part): part for part in own})
        enable_parallelism(self.model, cache_dit.ParallelismConfig(
            ulysses_size=ulysses if ulysses > 1 else None, tp_size=tensor if tensor > 1 else None,
            ulysses_anything=values["uneven"] != "off"))


class CacheDit(worker.Worker):
    """Plans of cache-dit, without a rule."""
    name, module, engine = "lib_cache_dit", "lib_cache_dit", "cache-dit"
    requirement, packages = "cache-dit>=1.5.3,<1.6", ["cache_dit", "torch", "diffusers", "transformers"]
    networks = list(worker.PIPELINES)

    @staticmethod
    def parts():
        return engine.Network, Plan

    def axes(self, card, devices):
        ranks, ulysses, _, threads = super().axes(card, devices)
        every = [1, 2, 3, 4]
        return [dict(ranks, values=every), dict(ulysses, values=every), dict(ulysses, name="tensor", values=every), threads,
                dict(name="uneven", values=["off", "anything"], default="off", doc="ulysses_anything")]

    def limits(self, card):
        return []


if __name__ == "__main__":
    worker.main(CacheDit)
