# SPDX-License-Identifier: MIT
# ctest: timing
"""Workers that never answer, by the wall clock: one burns a core, one ignores every signal that can be ignored. Each costs one trial,
and the session ends within its budget.

A deadline of a trial is 5 s or more, so the budget has room for one; what may come on top is for a machine that is busy with other
things, and far from the time that waiting for the worker would take."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
BUDGET, BAD = 20, 1  # seconds, and the plan that misbehaves
LATE = 20  # seconds that processes may take to start and to end on a busy machine


def hangs(t, fault):
    t.scenario(ns=[MS] * 4, cv=0.01, faults=[{"when": {"plan": BAD}, "do": fault}])
    began = time.monotonic()
    done = t.tune("--budget", f"{BUDGET}s", "--json")
    wall = time.monotonic() - began
    trials = {trial["plan"]["plan"]: trial for trial in (done.json or {}).get("trials", [])}
    t.check(f"{fault}: recorded as hung, the session goes on",
            BAD in trials and (trials[BAD]["outcome"] == "hung" or "other programs had the cores" in trials[BAD]["cause"]) and trials[BAD]["cause"]
            and any(trial["outcome"] == "ok" for trial in trials.values()), done)
    t.check(f"{fault}: within the budget", wall <= BUDGET + LATE and done.json["elapsed_seconds"] <= 1.02 * BUDGET + 2, (wall, done))
    t.none_left(f"{fault}: it is gone")


def computes(t):
    """Steps that take longer than there is: no plan hangs, the budget is too short."""
    text = (SOURCE / "examples/workers/minimal.py").read_text(encoding="utf-8")
    assert text.count("ROWS = 64") == 1
    worker = t.write("long.py", text.replace("ROWS = 64", "ROWS = 640"))
    worker.chmod(0o755)
    done = t.tool("tune", "--worker", worker, "--budget", "6s", "--json")
    trials = (done.json or {}).get("trials", [])
    t.check("plans that compute when their time ends do not hang", done.code == 6 and trials
            and {trial["outcome"] for trial in trials} == {"interrupted"}, done)
    t.check("the first says so", any(words in trials[0]["cause"] for words in (
        "share of the budget", "the time for trials ended", "no time was left", "other programs had the cores")), trials[:1])
    t.check("and what would do", "--budget" in done.err, done.err[-300:])
    t.none_left("it is gone")


def slow_start(t):
    """A worker that sleeps longer than its share before it is ready: it does not hang, and what would do is named."""
    worker = t.write("slow.sh", f"#!/bin/sh\nsleep 8\nexec '{SOURCE}/examples/workers/minimal.py' \"$@\"\n")
    worker.chmod(0o755)
    t.exits("a start longer than the budget", t.tool("tune", "--worker", worker, "--budget", "3s"), 6,
            "was not ready within the budget, 3 s: give it more")
    done = t.tool("tune", "--worker", worker, "--budget", "14s", "--json")
    trials = (done.json or {}).get("trials", [])
    t.check("a start longer than its share", done.code == 6 and trials and {trial["outcome"] for trial in trials} == {"interrupted"}
            and any(word in trials[0]["cause"] for word in ("ended while it started", "no time was left", "the time for trials ended")), done)
    t.check("and a budget is named", "needs at least --budget" in done.err, done.err[-300:])
    t.none_left("it is gone")


t = Dittune(clock="real")
t.environment["DITTUNE_LOAD"] = ""  # busy processors are looked at
computes(t)
slow_start(t)
for fault in ("spin", "stubborn"):
    hangs(t, fault)
t.finish()
