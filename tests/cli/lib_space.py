#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker whose space and times are planted, so that a search has a truth to find.

SPACE holds as JSON: "axes": name -> list of values, the first the default; "base": nanoseconds of a step; "weights": name -> share of
base that a step gets longer for each place the value is away from the best one, "best": name -> that place; "wrong": a
parameter's value whose plans the worker refuses. Times vary by a thousandth. It answers at once: nothing is computed."""
import json
import os
import random
import sys

planted = json.loads(os.environ["SPACE"])
axes, rng, handles = planted["axes"], random.Random(7), []


def say(**message):
    print(json.dumps(message), flush=True)


def step_ns(plan):
    away = sum(planted["weights"].get(name, 0) * abs(axes[name].index(plan[name]) - place)
               for name, place in planted["best"].items())
    return planted["base"] * (1 + away)


for line in sys.stdin:
    request = json.loads(line)
    op = request["op"]
    if op == "hello":
        say(op="hello", protocol=1, name="planted", launch="self", workload="planted",
            parameters=[{"name": name, "values": values, "default": values[0], "role": "batch" if name == "batch" else "plain"}
                        for name, values in axes.items()])
        say(op="ready", ranks=[{"rank": 0, "pid": os.getpid(), "host": "here"}], comm="self")
    elif op == "prepare":
        if any(request["plan"][name] == value for name, value in planted.get("wrong", {}).items()):
            say(op="failed", kind="infeasible", say="planted")
            continue
        handles.append(request["plan"])
        say(op="prepared", handle=len(handles) - 1, peak_bytes=[1], resident_bytes=1, cold_ns=[int(2 * step_ns(request["plan"]))])
    elif op == "run":
        ns = step_ns(handles[request["handle"]])
        say(op="samples", ns=[[int(ns * rng.gauss(1, 0.001))] for _ in range(request["n"])])
    elif op == "release":
        say(op="released", handle=request["handle"])
    elif op == "quit":
        break
    else:
        say(op="failed", kind="error", say="unknown")
