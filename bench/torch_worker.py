#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker whose plans are guided denoising steps of bench/dit_torch.py, eager, in float32, so that what differs from start to
start of PyTorch can be measured (bench/levels.py). The only parameter is PyTorch's number of threads. Not an engine's worker."""
import json
import os
import pathlib
import resource
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dit_torch

NETWORK = {"in_channels": 4, "hidden": 384, "depth": 12, "heads": 6, "patch": 2, "mlp_ratio": 4, "classes": 1000, "learn_sigma": True}
LATENT = 32  # of 256 x 256 px
THREADS = list(range(1, len(os.sched_getaffinity(0)) + 1))
HELLO = {"op": "hello", "protocol": 1, "name": "torch", "version": torch.__version__, "engine": "torch", "mode": "eager",
         "launch": "self", "workload": "a guided step of DiT-S/2, 256 x 256 px, float32",
         "parameters": [{"name": "threads", "values": THREADS, "default": THREADS[-1]}]}


class Plan:
    """The network of a plan, made anew: its weights lie where the allocator puts them this time."""

    def __init__(self, values, seed):
        torch.manual_seed(seed)
        self.threads = values["threads"]
        self.net = dit_torch.DiT(NETWORK).eval()
        side = LATENT // NETWORK["patch"]
        self.net.fixed = self.net.positions(side, side)
        self.latent = torch.randn(1, NETWORK["in_channels"], LATENT, LATENT)
        self.t, self.y = torch.full((2,), 500), torch.tensor([7, NETWORK["classes"]])

    def step(self):
        torch.set_num_threads(self.threads)
        began = time.perf_counter_ns()
        with torch.inference_mode():
            eps = self.net(torch.cat([self.latent, self.latent]), self.t, self.y)[:, : NETWORK["in_channels"]]
            conditional, unconditional = eps.chunk(2)
            self.out = 0.99 * self.latent + 0.01 * (unconditional + 4.0 * (conditional - unconditional))
        return time.perf_counter_ns() - began

    def verify(self, count, seed):
        signs = torch.randint(0, 2, (count, self.out.numel()), generator=torch.Generator().manual_seed(seed)) * 2.0 - 1
        return {"norm": [self.out.norm().item()], "projections": [(signs @ self.out.flatten()).tolist()]}


def answer(plans, request):
    op, handle = request["op"], request.get("handle")
    if op == "prepare" and request["plan"].get("threads") in THREADS:
        plan = Plan(request["plan"], request["seed"])
        cold = plan.step()
        plan.step()
        handle = len(plans) + 1
        plans[handle] = plan
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return dict(op="prepared", handle=handle, peak_bytes=[peak], resident_bytes=peak, cold_ns=[cold],
                    verify=plan.verify(request["verify"]["projections"], request["verify"]["seed"]))
    if op == "prepare":
        return dict(op="failed", kind="infeasible", say=f"threads is one of {THREADS}")
    if plans.get(handle) is None:
        return dict(op="failed", kind="error", say=f"there is no plan of handle {handle}, or no request {op}")
    if op == "run":
        return dict(op="samples", handle=handle, ns=[[plans[handle].step()] for _ in range(request["n"])])
    plans[handle] = None
    return dict(op="released", handle=handle)


def main():
    out, plans = os.fdopen(os.dup(1), "w"), {}
    os.dup2(2, 1)

    def say(message):
        out.write(json.dumps(message) + "\n")
        out.flush()

    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "quit":
            return
        if request["op"] != "hello":
            say(answer(plans, request))
            continue
        say(HELLO)
        say({"op": "ready", "comm": "self", "ranks": [{"rank": 0, "pid": os.getpid(), "host": "here", "device": "cpu",
                                                        "versions": {"torch": torch.__version__}}]})


main()
