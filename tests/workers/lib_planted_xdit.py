# SPDX-License-Identifier: MIT
"""dittune-worker-xdit with a fault, given by $PLANTED: a `ring` that never turns, no rule of the worker for `text` tokens, or
no `rules` at all, so that xDiT itself is asked."""
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
    limits = worker.Xdit.limits
    worker.Xdit.limits = lambda self, card: [row for row in limits(self, card) if "text" not in row[0]]


def rules():
    axes = worker.Xdit.axes
    worker.Xdit.limits = lambda self, card: []
    worker.Xdit.axes = lambda self, card, devices: [
        dict(axis, values=[1, 2, 3, 4]) if axis["name"] == "ulysses" else axis for axis in axes(self, card, devices)]


{"ring": ring, "text": text, "rules": rules}[os.environ["PLANTED"]]()
worker.main()
