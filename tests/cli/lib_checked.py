#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker whose times and faults are planted, for `dittune check`: what is true can be changed between two runs of it.

SCENARIO names a JSON file: "ns" (true time of each plan), "cv", "drift" (slow, shared by all plans), "seed", "name", "workload",
"faults" {plan: "crash", "wrong", "infeasible", "memory"}, "bytes" {plan: its peak memory, else 1 MiB}, "sleep" (seconds a request
really takes), "threads" (a parameter with so many values, which nothing depends on), "batches" {images: times as long}, the last is the
default, "break" (a file that becomes a folder when the first step is taken)."""
import json
import math
import os
import random
import sys
import time

with open(os.environ["SCENARIO"], encoding="utf-8") as file:
    scenario = json.load(file)
rng = random.Random(scenario.get("seed", 1) * 1000003 + os.getpid())
faults, batches, plans, drift = scenario.get("faults", {}), scenario.get("batches", {}), {}, 0.0


def say(**message):
    print(json.dumps(message), flush=True)


def fail(kind, why):
    say(op="failed", kind=kind, say=why)


def step(plan, longer):
    global drift
    drift = 0.98 * drift + scenario.get("drift", 0) * math.sqrt(1 - 0.98 ** 2) * rng.gauss(0, 1)
    return max(1, round(scenario["ns"][plan] * longer * math.exp(drift + scenario.get("cv", 0) * rng.gauss(0, 1))))


def prepare(request):
    plan, n, seed = request["plan"]["plan"], request["verify"]["projections"], request["verify"]["seed"]
    fault = faults.get(str(plan))
    if fault == "crash":
        sys.exit(3)
    if fault in ("infeasible", "memory"):
        return fail(fault, "plan %d is not possible any more" % plan)
    images = request["plan"].get("batch", 1)
    plans[len(plans) + 1] = (plan, batches.get(str(images), 1))
    output = [random.Random(f"{seed}/{k}").uniform(1, 2) * (1.5 if fault == "wrong" else 1) for k in range(n)]
    return say(op="prepared", handle=len(plans), peak_bytes=[scenario.get("bytes", {}).get(str(plan), 1 << 20)], resident_bytes=1 << 20,
               cold_ns=[3 * scenario["ns"][plan]], verify=dict(norm=[1] * images, projections=[output] * images))


for line in sys.stdin:
    request = json.loads(line)
    op, handle = request["op"], request.get("handle")
    if op == "hello":
        parameters = [dict(name="plan", values=list(range(len(scenario["ns"]))), default=0)]
        if "threads" in scenario:
            parameters.append(dict(name="threads", values=list(range(1, scenario["threads"] + 1)), default=1))
        if batches:
            values = [int(images) for images in batches]
            parameters.append(dict(name="batch", role="batch", values=values, default=values[-1]))
        say(op="hello", protocol=1, name=scenario.get("name", "checked"), workload=scenario.get("workload", "planted"),
            launch="self", parameters=parameters)
        say(op="ready", ranks=[dict(rank=0, pid=os.getpid(), host="here")])
    elif op == "prepare":
        prepare(request)
    elif op == "run":
        if os.path.isfile(scenario.get("break", "")):
            os.remove(scenario["break"])
            os.mkdir(scenario["break"])
        time.sleep(scenario.get("sleep", 0))
        say(op="samples", handle=handle, ns=[[step(*plans[handle])] for _ in range(request["n"])])
    elif op == "release":
        say(op="released", handle=handle)
    elif op == "quit":
        break
    else:
        fail("error", f"{op} is not known here")
