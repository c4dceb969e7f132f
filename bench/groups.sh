#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trial in a group that runs already, beside the same trial in a group of its own.
#
#     bench/groups.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/groups.sh" exec python3 - "$@" <<'PY'
import shutil, statistics
from lib import *

begin("A trial in a warm group", """
DiT-S/2, 256 px, float32. Fresh: start the worker group (with mpirun for two ranks) until it is ready, prepare the plan, 2 steps of
warm-up, 8 measured ones. Warm: the same from prepare on, in a group that has run a plan before. Stopping the group
and releasing the plan are not timed. Ratio: fresh over warm, so it says how many trials a warm group makes in the time of one.""")
network = preset("dit-s-2")


def trial(group, plan):
    handle = group.prepare(plan)
    group.run(handle, 2, "warmup")
    group.run(handle, 8)
    return handle


def fresh(ranks, plan):
    kept = []

    def work():
        kept.append(Group(ranks, network, 256))
        trial(kept[0], plan)
    seconds = clock(work)
    kept[0].quit()
    return seconds


def warm(group, plan):
    kept = []
    seconds = clock(lambda: kept.append(trial(group, plan)))
    group.release(kept[0])
    return seconds


def one(ranks, words):
    plan = complete(words, "--size", 256)
    group = Group(ranks, network, 256)
    warm(group, plan)
    times = in_turn({"fresh": lambda: fresh(ranks, plan), "warm": lambda: warm(group, plan)}, 6 if QUICK else 12)
    group.quit()
    a, b = statistics.median(times["fresh"]), statistics.median(times["warm"])
    row(words, ratios(times["fresh"], times["warm"]), least=1,
        note=f"{a:.3g} s against {b:.3g} s: {a - b:.2g} s saved")


one(1, f"ranks=1 threads={min(2, cores())}")
if shutil.which("mpirun") is None or cores() < 2:
    tell("Two ranks: left out, there is no mpirun or no second core.")
else:
    one(2, "ranks=2 ulysses=2 threads=1")
PY
