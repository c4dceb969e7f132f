#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How much of the exchanges hides behind the computation: of a virtual delay, and of MPI on this machine.
#
#     bench/overlap.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/overlap.sh" exec python3 - "$@" <<'PY'
import re, shutil, statistics, subprocess
from lib import *

begin("Overlap", """
With a virtual delay of 5 ms an exchange on fake ranks (test_kernels overlap): the share of the delay that overlap hides behind 6 ms of
computation a block; exact, so it has no interval. With MPI: DiT-S/2, float32, two ranks, the same plan with overlap off and on in one
group, in mirrored rounds. Ratio of steps: off over on, above 1 overlap is faster. Time left in wait: what the slowest rank
stood still for exchanges, on over off, below 1 overlap hides some of it. On cores that also do the copying of messages, little can be
hidden (docs/measuring-appendix.md).""")


def virtual():
    test = BUILD + "/tests/test_kernels"
    if not os.access(test, os.X_OK):
        tell("Virtual delay: left out, this build has no tests.")
        return
    text = subprocess.run([test, "overlap"], capture_output=True, text=True)
    for line in (text.stdout + text.stderr).splitlines():
        found = re.match(r"(ulysses=.*chunks=\d+): +(\d+) of +(\d+) ms of delay left", line)
        if found:
            left, whole = float(found[2]), float(found[3])
            share = 1 - left / whole
            row(f"virtual delay, {found[1]}: share hidden", (share, (share, share), 1), least=0.8,
                note=f"{left:.0f} of {whole:.0f} ms left" + (": the first way in and the last way out of each block" if left else ""))


def visit(group, handle, waits, flights):
    group.run(handle, 1, "warmup")
    times, answer = group.run(handle, 3)
    exchange = next(kind for kind in answer["phases"]["kinds"] if kind["name"] == "exchange")
    waits.append(exchange["ns"] / len(times) * 1e-9)
    flights.append(exchange["in_flight_ns"] / len(times) * 1e-9)
    return statistics.median(times)


def real(size, off, on):
    group = Group(2, preset("dit-s-2"), size)
    waits, flights, visits = {}, {}, {}
    for name, words in (("off", off), ("on", on)):
        handle = group.prepare(complete(words, "--size", size))
        waits[name], flights[name] = [], []
        visits[name] = lambda handle=handle, name=name: visit(group, handle, waits[name], flights[name])
    times = in_turn(visits, 6 if QUICK else 12)
    group.quit()
    middle = {name: 1e3 * statistics.median(waits[name]) for name in waits}
    share = {name: 100 * sum(waits[name]) / sum(flights[name]) for name in waits}
    row(f"{size} px, {on}: step", ratios(times["off"], times["on"]),
        note=f"{1e3 * statistics.median(times['off']):.4g} ms off, {1e3 * statistics.median(times['on']):.4g} ms on")
    row(f"{size} px, {on}: time left in wait", ratios(waits["on"], waits["off"]),
        note=f"{middle['off']:.3g} ms a step off ({share['off']:.0f} % of the time in flight), "
             f"{middle['on']:.3g} ms on ({share['on']:.0f} %)")


virtual()
if shutil.which("mpirun") is None or cores() < 2:
    tell("MPI: left out, there is no mpirun or no second core.")
else:
    for size in (256,) if QUICK else (256, 512):
        real(size, "ranks=2 ring=2 threads=1 overlap=0", "ranks=2 ring=2 threads=1 overlap=1")
        real(size, "ranks=2 ulysses=2 threads=1 overlap=0 chunks=1", "ranks=2 ulysses=2 threads=1 overlap=1 chunks=3")
PY
