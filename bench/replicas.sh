#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two replicas of one rank beside two processes that this script starts itself, and beside one group of two ranks.
#
#     bench/replicas.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/replicas.sh" exec python3 - "$@" <<'PY'
import os, subprocess
from lib import *

begin("Two replicas beside two processes", """
The built-in network on two cores, a thread a rank: `dittune run --objective throughput` of two replicas of one rank, beside two workers
that a script without dittune's controller starts on a core each and times at the same time, and beside one group of two ranks, in
mirrored rounds of fresh processes. With $DITTUNE_ENGINES the same of diffusers' small FLUX, whose script has diffusers alone. Figures are steps of an image a second, of all cores: of a process that of its median step.""")
CORES = sorted(os.sched_getaffinity(0))[:2]
if len(CORES) < 2:
    skip("there is no second core")
ROUNDS, STEPS = (6, 8) if QUICK else (12, 16)


def by_dittune(options, plan):
    return lambda: tool("run", *options, "--objective", "throughput", "--plan", plan, "--quick")["samples_per_second"]


def by_hand(options, network, size):
    """Steps a second of two workers, each bound to its core before it is started."""
    plan = complete("ranks=1 threads=1", *options)

    def visit():
        groups, every = [], os.sched_getaffinity(0)
        for core in CORES:
            os.sched_setaffinity(0, {core})
            groups.append(Group(1, network, size))
        os.sched_setaffinity(0, every)
        handles = [group.prepare(plan) for group in groups]
        rate = 0
        for n, mode in ((2, "warmup"), (STEPS, "measure")):
            for group, handle in zip(groups, handles):
                print(json.dumps(dict(op="run", handle=handle, n=n, mode=mode)), file=group.process.stdin, flush=True)
            rate = sum(1 / statistics.median(max(step) * 1e-9 for step in group.hear()["ns"]) for group in groups)
        for group in groups:
            group.process.stdin.close()
            group.process.wait(30)
        return rate
    return visit


def compare(name, options, by_script, replicas, group):
    rates = in_turn({"replicas": by_dittune(options, replicas), "script": by_script, "group": by_dittune(options, group)}, ROUNDS)
    low, high = order_interval(rates["script"])
    middle = statistics.median(rates["replicas"])
    row(f"{name}: 2 replicas, of 2 processes by a script", ratios(rates["replicas"], rates["script"]),
        note=f"{middle:.4g} a second, {'inside' if low <= middle <= high else 'outside'} the script's [{low:.4g}, {high:.4g}]")
    row(f"{name}: 2 replicas of 1 rank, of 1 group of 2 ranks", ratios(rates["replicas"], rates["group"]),
        note=f"{middle:.4g} against {statistics.median(rates['group']):.4g} a second")


def by_diffusers(pixels):
    """Passes a second of two processes with diffusers alone, each bound to its core."""
    def visit():
        words = [f"{VENV}/bin/python", f"{ROOT}/bench/replicas_bare.py", f"{ROOT}/workers/dittune_workers/tiny/tiny-flux.json", str(pixels)]
        sides = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})) for core in CORES]
        rate = 0
        for n in (2, STEPS):
            for side in sides:
                print(n, file=side.stdin, flush=True)
            rate = sum(1 / float(side.stdout.readline()) for side in sides)
        for side in sides:
            side.stdin.close()
            side.wait(30)
        return rate
    return visit


for name, size in (("dit-s-2", 128), ("dit-s-2", 256)):
    options = ("--model", name.replace("-2", "/2"), "--size", size)
    compare(f"DiT-S/2, {size} px", options, by_hand(options, preset(name), size), "ranks=1 replicas=2 threads=1", "ranks=2 cfg=2 threads=1")
VENV = os.environ.get("DITTUNE_ENGINES", "")
WORKER = f"{VENV}/bin/dittune-worker-diffusers"
for size in (128, 384) if os.access(WORKER, os.X_OK) else ():
    compare(f"diffusers, tiny-flux, {size} px", ("--worker", WORKER, "--model", "tiny-flux", "--size", f"{size}x{size}", "--devices", 2),
            by_diffusers(size), "ranks=1 replicas=2 threads=1", "ranks=2 ulysses=2 threads=1")
PY
