# SPDX-License-Identifier: MIT
"""dittune-worker-xdit with a fault, given by $PLANTED: a `ring` that never turns, no rule of the worker for `text` tokens, or
a setting without effect: `degrees`, which are swapped, `attention`, `compiled`."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
from dittune_workers.xdit import engine, worker


def ring():
    join = engine.Network.join

    def broken(self, number, ranks):
        from xfuser.model_executor.layers import usp
        usp._templated_ring_attention = lambda group, dimension, attend, *tensors, **named: attend(*tensors, **named)
        join(self, number, ranks)

    engine.Network.join = broken


def text():
    space = worker.Xdit.space

    def without(self, *what):
        made = space(self, *what)
        return dict(made, rules=[rule for rule in made["rules"] if "text" not in rule["if"]])

    worker.Xdit.space = without


def degrees():
    join = engine.Network.join

    def swapped(self, number, ranks):
        join(self, number, ranks)
        from xfuser.core.distributed import parallel_state
        own = parallel_state.initialize_model_parallel
        parallel_state.initialize_model_parallel = lambda ulysses_degree, ring_degree: own(ulysses_degree=ring_degree, ring_degree=ulysses_degree)

    engine.Network.join = swapped


def attention():
    from xfuser.core.distributed import runtime_state
    from xfuser.core.distributed.attention_backend import AttentionBackendType
    own, space = runtime_state.DiTRuntimeState.__init__, worker.Xdit.space

    def announced(self, *what):
        made = space(self, *what)
        made["parameters"].append(dict(name="attention", values=["sdpa", "sdpa_math"], default="sdpa"))
        return made

    def only_sdpa(self, pipeline, config):
        own(self, pipeline, config)
        self.attention_backend = AttentionBackendType.SDPA

    runtime_state.DiTRuntimeState.__init__, worker.Xdit.space = only_sdpa, announced


def compiled():
    import torch
    torch.nn.Module.compile = lambda self, **how: None


{"ring": ring, "text": text, "degrees": degrees, "attention": attention, "compiled": compiled}[os.environ["PLANTED"]]()
worker.main()
