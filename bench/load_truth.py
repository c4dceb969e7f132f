#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does a decided verdict hold that was found beside other programs? Real sessions while busy loops come and go; then, without them, the
default and the best plan by a script of its own: both in fresh processes, visited A B B A, start after start. It speaks
docs/protocol.md and shares no code with dittune.

    bench/load_truth.py [BUILD] [--sessions 2] [--budget 5m] [--starts 8] [--seed 1] [--worker PROGRAM] [--model NAME]
                        [-- ARGUMENTS OF THE WORKER]

The worker is examples/workers/minimal.py unless named. A decided verdict is refuted when its interval and the script's (95 %, Student's t
over the starts) have nothing in common; one that keeps the default when the plan with the shortest trial is faster than the default by more
than the session's margin. Sessions that decide nothing are counted, not refuted."""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading

from worker import Worker

ROOT = pathlib.Path(__file__).resolve().parents[1]
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 11: 2.201, 15: 2.131}


class Busy(threading.Thread):
    """Loops on 0 to all cores, for 20 to 90 seconds each time."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.rng, self.done, self.loops = random.Random(seed), threading.Event(), []

    def run(self):
        while not self.done.is_set():
            count = self.rng.choice([0, 0, 1, os.cpu_count()])
            self.loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
            self.done.wait(self.rng.uniform(20, 90))
            for loop in self.loops:
                loop.kill()
                loop.wait()

    def stop(self):
        self.done.set()
        self.join()


class Start(Worker):
    """A fresh worker with one plan resident."""

    def __init__(self, words, hello, plan):
        super().__init__(words)
        self.ask(op="hello", **{**hello, "ranks": plan.get("ranks", 1)})
        self.hear()  # ready
        self.handle = self.ask(op="prepare", plan=plan, seed=1, verify={"projections": 16, "seed": 7})["handle"]
        self.run(3)

    def run(self, n):
        return [max(step) * 1e-9 for step in self.ask(op="run", handle=self.handle, n=n, mode="measure")["ns"]]

    def visit(self):
        first, = self.run(1)
        return math.log(statistics.median(self.run(max(3, min(200, round(0.3 / first))))))

    def quit(self):
        print('{"op":"quit"}', file=self.process.stdin, flush=True)
        self.process.stdin.close()
        self.process.wait(30)


def abba(words, hello, a, b, starts):
    """Time of a over that of b: ratio and 95 % interval over the starts."""
    logs = []
    for _ in range(starts):
        both = [Start(words, hello, plan) for plan in (a, b)]
        visits = [[], []]
        for side in (0, 1, 1, 0) * 2:
            visits[side].append(both[side].visit())
        for start in both:
            start.quit()
        logs.append(statistics.fmean(visits[0]) - statistics.fmean(visits[1]))
    mean = statistics.fmean(logs)
    half = T95.get(starts - 1, 2.0) * statistics.stdev(logs) / math.sqrt(starts) if starts > 1 else math.inf
    return math.exp(mean), math.exp(mean - half), math.exp(min(mean + half, 700))


def session(options, arguments, k):
    busy = Busy(options.seed + k)
    with tempfile.TemporaryDirectory(prefix="dittune-load-truth-") as store:
        busy.start()
        try:
            done = subprocess.run([options.build / "dittune", "--worker", options.worker, "--budget", options.budget, "--json", "--db", store,
                                   *(["--model", *options.model] if options.model else []), *(["--", *arguments] if arguments else [])], capture_output=True, text=True, check=False)
        finally:
            busy.stop()
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worker", default=str(ROOT / "examples/workers/minimal.py"))
    parser.add_argument("--model", nargs=1, default=[])
    options, arguments = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    words, job = [options.worker, *arguments], dict(zip(["model"], options.model))
    hello = {"protocol": 2, "devices": os.cpu_count(), "job": job, "workload": None}
    decided = refuted = 0
    for k in range(options.sessions):
        result = session(options, arguments, k)
        load = result["load"] or {}
        a, b, gain = (result[name] for name in ("default", "best", "gain"))
        print(f"session {k + 1}: {result['verdict']}, best {b and b['plan']}, gain {gain and (gain['ratio'], gain['interval'])}, "
              f"{result['sets']} sets, {load.get('left_out', 0)} left out", flush=True)
        if result["verdict"] in ("provisional", "inconclusive", "none"):
            continue
        decided += 1
        least, most = gain["interval"] if gain else (0, math.inf)
        if a["plan"] == b["plan"]:
            others = [trial for trial in result["trials"] if trial["median_seconds"] and trial["plan"] != a["plan"]]
            b, least, most = min(others, key=lambda trial: trial["median_seconds"]), 0, 1 + result["noise"]["margin"]
        ratio, low, high = abba(words, hello, a["plan"], b["plan"], options.starts)
        holds = low <= most and least <= high
        refuted += not holds
        print(f"  {b['plan']}, {options.starts} starts, A B B A: {ratio:.4f} [{low:.4f}, {high:.4f}]: {'holds' if holds else 'REFUTED'}", flush=True)
    print(f"{decided} of {options.sessions} sessions decided, {refuted} refuted")
    sys.exit(refuted > 0)


main()
