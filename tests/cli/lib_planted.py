#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker in the place of dittune-worker whose times are planted, so that the fits have a truth:

    step      (a + b batch) (s + (1 - s) / ranks) seconds
    exchange  alpha + bytes / beta seconds; the third size takes five times as long

PLANTED holds the numbers as JSON; what it is asked to exchange is appended to the file PLANTED_LOG. Without "alpha" it knows
no exchanges. mpirun starts it once a rank: all but the first leave at once."""
import json
import os
import sys

planted = json.loads(os.environ["PLANTED"])
if os.environ.get("OMPI_COMM_WORLD_RANK", "0") != "0":
    sys.exit(0)
ranks, plans = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")), {}


def say(**message):
    print(json.dumps(message), flush=True)


def step_ns(plan):
    seconds = planted["a"] + planted["b"] * plan["batch"]
    return round(1e9 * seconds * (planted["s"] + (1 - planted["s"]) / plan["ranks"]))


def exchange(request):
    if "alpha" not in planted:
        return say(op="failed", kind="error", say="no exchanges here")
    with open(os.environ["PLANTED_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(request) + "\n")
    ns = [round(1e9 * (planted["alpha"] + bytes / planted["beta"])) for bytes in request["bytes"]]
    ns[2] *= 5
    return say(op="exchanged", ns=[[t] * request["n"] for t in ns])


for line in sys.stdin:
    request = json.loads(line)
    op, handle = request["op"], request.get("handle")
    if op == "hello":
        say(op="hello", protocol=1, name="planted", launch="mpirun")
        say(op="ready", ranks=[dict(rank=r, pid=os.getpid(), host="here") for r in range(ranks)])
    elif op == "prepare":
        handle = len(plans) + 1
        plans[handle] = request["plan"]
        n, images = request["verify"]["projections"], request["plan"]["batch"]
        say(op="prepared", handle=handle, peak_bytes=[1] * ranks, cold_ns=[step_ns(request["plan"])] * ranks,
            verify=dict(norm=[1] * images, projections=[[0.5] * n] * images))
    elif op == "run":
        say(op="samples", handle=handle, ns=[[step_ns(plans[handle])] * ranks] * request["n"])
    elif op == "release":
        say(op="released", handle=handle)
    elif op == "exchange":
        exchange(request)
    elif op == "quit":
        break
    else:
        say(op="failed", kind="error", say=f"{op} is not known here")
