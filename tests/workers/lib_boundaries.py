# SPDX-License-Identifier: MIT
"""Asks an installed engine to run plans, whatever the rules say: lib_boundaries.py ENGINE. Standard input has a line for each network and
job, {"card", "job", "plans"}; standard output an answer for each of its plans, that of one rank first: "prepared" with the summaries of
all ranks, or "failed", which a plan without an answer after MOST seconds has, too. The engine is imported once; each line has a process of its own, and each plan its ranks."""
import argparse
import copy
import importlib
import json
import os
import pathlib
import signal
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
import diffusers as _diffusers  # before the forks, as transformers is
import torch
import transformers as _transformers
from dittune_workers import facts, protocol
from dittune_workers.network import rank, worker

VERIFY = dict(projections=16, seed=7)
DEGREES = ("ulysses", "ring", "tensor")
MOST = int(os.environ.get("BOUNDARIES_MOST", "600"))  # seconds of a plan, its ranks' start included


def cache_dit():
    """cache-dit has no worker: a plan's modules are split by its own enable_parallelism."""
    from dittune_workers.diffusers import engine

    class Plan(rank.Plan):
        def __init__(self, network, values, seed):
            super().__init__(network, values, seed)
            import cache_dit as package
            from cache_dit.distributed import enable_parallelism
            from cache_dit.distributed.core import _context_parallel
            from diffusers.hooks import context_parallel  # whose gather of unequal parts gloo can do, by the worker's shim
            ulysses, tensor = values["ulysses"], values["tensor"]
            if ulysses * tensor == 1:
                return
            _context_parallel._all_gather_anything = context_parallel._all_gather_anything
            torch.accelerator.current_accelerator = lambda *_: torch.device("cpu")  # asked for by tensor parallelism
            whole = network.models["transformer"]
            own = [*whole.parameters(), *whole.buffers()] if tensor == 1 else []
            model = copy.deepcopy(whole, {id(part): part for part in own})
            enable_parallelism(model, package.ParallelismConfig(
                ulysses_size=ulysses if ulysses > 1 else None, tp_size=tensor if tensor > 1 else None, ulysses_anything=values["uneven"] != "off"))
            self.models = dict(transformer=model)

    class CacheDit(worker.Recorded):
        """cache-dit, for this test."""
        engine = "cache-dit"

        def discover(self):
            """Its file has no part of a worker: the networks are those of diffusers."""
            return facts.installed("diffusers")

        @staticmethod
        def parts():
            return engine.Network, Plan

    return CacheDit


def kind(name):
    if name == "cache-dit":
        return cache_dit()
    return getattr(importlib.import_module(f"dittune_workers.{name}.worker"), {"diffusers": "Diffusers", "xdit": "Xdit"}[name])


def late(*_):
    raise protocol.Lost(f"no answer within {MOST} s")


def ask(engine, plan):
    values = {"uneven": "off", "cfg": 1, "threads": 1, **dict.fromkeys(DEGREES, 1), **plan}
    group = None
    signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST)
    try:
        group = protocol.Group(engine, values["ranks"], [])
        answers = group.ask(dict(op="prepare", handle=1, plan=values, seed=1, verify=VERIFY), lambda: None)
        return dict(op="prepared", verify=[answer["verify"] for answer in answers])
    except (protocol.Refused, protocol.Lost) as error:
        return dict(op="failed", say=str(error.args[1] if len(error.args) > 1 else error.args[0]))
    finally:
        signal.alarm(0)
        if group is not None:
            group.kill()


def run(made, row):
    engine = made(argparse.Namespace(cfg=False, compile=False, random_weights=True))
    engine.hello(dict(row["job"], model=row["card"]), 4)
    engine.ready()
    return [ask(engine, plan) for plan in [dict(ranks=1), *row["plans"]]]


def main():
    made, out = kind(sys.argv[1]), os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                answer = run(made, json.loads(line))
            except BaseException:
                answer = traceback.format_exc()
            os.write(out, json.dumps(answer).encode() + b"\n")
            os._exit(0)
        os.waitpid(pid, 0)


main()
