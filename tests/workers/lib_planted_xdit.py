# SPDX-License-Identifier: MIT
"""dittune-worker-xdit with a fault, given by $PLANTED: a `ring` that never turns, or no rule of the worker for `text` tokens."""
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


{"ring": ring, "text": text}[os.environ["PLANTED"]]()
worker.main()
