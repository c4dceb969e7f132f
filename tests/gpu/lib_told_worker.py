#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker that tells of its devices what the file TOLD names, and does nothing: "host_ns" and "device_ns" a step (of two ranks; rank 1 is last),
"slow" (measured requests, from 0, whose last two steps run at 60 %), "reasons" then, "used" and "taken" of 1000000 bytes, "spoil" (a field, and what
it is instead), "phases"."""
import json
import os
import sys

told = json.load(open(os.environ["TOLD"]))
measured = 0


def say(**message):
    message.update({k: v for k, v in told.get("spoil", {}).items() if k in message})
    print(json.dumps(message), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "hello":
        say(op="hello", protocol=1, name="told", version="1", engine="told", mode="eager", launch="self", workload="nothing",
            parameters=[dict(name="ranks", role="ranks", values=[2], default=2)])
        say(op="ready", ranks=[dict(rank=r, pid=os.getpid(), host="n", device="cpu", cores=[r], threads=1) for r in range(2)], comm="self")
    elif asked["op"] == "prepare":
        say(op="prepared", handle=1, peak_bytes=[told["taken"] // 2, told["taken"] // 4], resident_bytes=told["taken"] // 2,
            cold_ns=[told["host_ns"]] * 2, before_bytes=[900000, 950000], taken_bytes=[told["taken"], 7],
            free_bytes=[1000000 - told["used"], 1000000], total_bytes=[1000000, 1000000])
    elif asked["op"] == "run":
        n, slow = asked["n"], asked["mode"] == "measure" and measured in told.get("slow", [])
        measured += asked["mode"] == "measure"
        mhz = [1000, 600 if slow else 1000]
        say(op="samples", handle=1, ns=[[told["host_ns"] - 1000, told["host_ns"]]] * n,
            device_ns=[[told["device_ns"] - 2000, told["device_ns"]]] * n, clock=[[1000, 1000]] * (n - 2) + [mhz] * 2 if n > 2 else [[1000, 1000]] * n,
            telemetry=[dict(looks=n, unknown=3, sm_mhz=dict(least=mhz[r] - 1, mean=mhz[r], most=mhz[r] + 1),
                            reasons=["gpu_idle"] + (told["reasons"] if r == 1 and slow else [])) for r in range(2)],
            phases=told.get("phases"))
    elif asked["op"] == "release":
        say(op="released", handle=1)
    elif asked["op"] == "peak":
        say(op="peak", flop_rate=4e9, copy_bytes_per_second=2e9)
    elif asked["op"] == "quit":
        break
    else:
        say(op="failed", kind="error", say="not here")
