# SPDX-License-Identifier: MIT
"""Steps of a transformer of diffusers with and without dittune's worker around them: for each line N on standard input the
nanoseconds a step of N steps asked of a rank of the worker, of N steps of a bare loop, and of 100 steps asked of a rank whose
network does nothing: what the worker adds. All use one network in one process: two processes differ by several per cent
through the placement of their buffers alone.

    python bench/engines_bare.py MODEL"""
import itertools
import json
import os
import pathlib
import socket
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "workers"))
import torch
from dittune_workers import protocol
from dittune_workers.diffusers import worker

engine = worker.Diffusers(types.SimpleNamespace(cfg=True))
engine.hello(dict(model=sys.argv[1]), 1)
engine.ready()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
torch.set_grad_enabled(False)
engine.join(0, 1)
near, far = socket.socketpair()  # far is never read: heartbeats of minutes fit into it
rank = protocol.Rank(engine, protocol.Link(near), 0)
rank.prepare(dict(handle=1, plan=dict(ranks=1, ulysses=1, ring=1, cfg=1, threads=1), seed=1))
models, turns = rank.plans[1].models, itertools.cycle(engine.network.kinds[0])


def bare():
    return [models[name](*args, **named) for name, args, named in next(turns)]


class Empty(type(rank.plans[1])):
    """The same plan without its network."""

    def __init__(self):
        self.__dict__.update(rank.plans[1].__dict__)

    def replay(self, kind):
        return []


rank.plans[2] = Empty()
for round, line in enumerate(sys.stdin):
    count, spent = int(line), {}
    sides = dict(worker=lambda: rank.run(dict(handle=1, n=count)), bare=lambda: [bare() for _ in range(count)])
    for name in sorted(sides, reverse=round % 2):
        begin = time.monotonic_ns()
        sides[name]()
        spent[name] = (time.monotonic_ns() - begin) / count
    begin = time.monotonic_ns()
    rank.run(dict(handle=2, n=100))
    spent["added"] = (time.monotonic_ns() - begin) / 100
    print(json.dumps(spent), flush=True)
