#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often does `dittune check` see a true gain of 5 %, and call equal plans equal? A real command computes a fixed number of operations
a step; its plans differ by exactly 5 % of them, or by nothing. Each is tuned once, then checked again and again with --until-decided.

    bench/check_gain.py [BUILD] [--count 20] [--until 10m] [--budget 2m] [--pause 0]

On two idle cores: of 20 checks of the true gain at most 4 inconclusive, of 20 of equal plans none different. `inside`: how often today's
gain lies in the stored interval, combined with its own."""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)   /* UNITS of work a step, 40 steps */
{
    uint64_t x = (uint64_t)argc;
    for (int step = 0; step < 40; step++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (long i = atol(argv[1]) * 20000; i > 0; i--)
            x = x * 6364136223846793005u + 1442695040888963407u;   /* each needs the one before */
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("step took %.9f s\n", (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
    }
    return x == 0;
}
"""
# units: 210 of the default against 200. equal: a parameter that the program does not read
SPACES = {"gain": {"parameters": {"units": {"values": [200, 210], "default": 210}}},
          "equal": {"parameters": {"name": {"values": ["a", "b"]}}, "constants": {"units": 200}}}


class Work:
    def __init__(self, options, folder, kind):
        self.options, self.folder, self.kind = options, folder, kind
        space = folder / f"{kind}.json"
        space.write_text(json.dumps(SPACES[kind]), encoding="utf-8")
        words = f"{folder}/burn {{units}}" + ("" if kind == "gain" else " {name}")
        self.words = ["--space", space, "--time", "regex:step took ([0-9.]+) s", "--command", words]

    def dittune(self, *words):
        done = subprocess.run([self.options.build / "dittune", *words, *self.words, "--json"], capture_output=True, text=True, check=False,
                              env={**os.environ, "DITTUNE_STORE": str(self.folder / self.kind)})
        if not done.stdout:
            sys.exit(done.stderr)
        return json.loads(done.stdout)


def count_undecided(found):
    return sum(found.values()) - found["wins"] - found["ties"] - found["loses"]


def describe(gain):
    return "none" if not gain else "{:.4f} [{:.4f}, {:.4f}]".format(gain["ratio"], *gain["interval"])


def is_inside(then, now):
    """The gains differ by no more than both errors together (on the log scale, added in quadrature)."""
    half = math.hypot(*(math.log(gain["interval"][1] / gain["interval"][0]) / 2 for gain in (then, now)))
    return abs(math.log(now["ratio"] / then["ratio"])) <= half


def checks(work, count):
    tuned = work.dittune("tune", "--budget", work.options.budget, "--search", "exhaustive")
    print(f"{work.kind}: tuned: {tuned['verdict']}, {tuned['best']['plan']}, gain {describe(tuned['gain'])}", flush=True)
    if work.kind == "gain" and (tuned["verdict"], tuned["best"]["plan"]) != ("faster", {"units": 200}):
        sys.exit("the session did not find the gain: a quiet machine, or a longer --budget, is needed")
    found, inside = collections.Counter(), 0
    for k in range(count):
        time.sleep(work.options.pause)
        began = time.monotonic()
        entry = work.dittune("check", "--until-decided", work.options.until)["entries"][0]
        found[entry["verdict"]] += 1
        if tuned["gain"] and entry["gain_now"]:
            inside += is_inside(tuned["gain"], entry["gain_now"])
        print(f"{work.kind} {k + 1:3} {entry['verdict']:13} {describe(entry['gain_now'])} {len(entry['sets'])} sets, {time.monotonic() - began:.0f} s"
              f"{'' if not entry['reason'] else ': ' + entry['reason']}", flush=True)
    return tuned, found, inside


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--until", default="10m")
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--pause", type=float, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dittune-check-gain-") as name:
        folder = pathlib.Path(name)
        (folder / "burn.c").write_text(PROGRAM, encoding="utf-8")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", folder / "burn", folder / "burn.c"], check=True)
        tuned, found, inside = checks(Work(options, folder, "gain"), options.count)
        print(f"a true gain of 1.05, tuned as {describe(tuned['gain'])}: {dict(found)}; undecided {count_undecided(found)} of {options.count} "
              f"(at most a fifth); inside {inside} of {options.count}", flush=True)
        _, found, _ = checks(Work(options, folder, "equal"), options.count)
        different = found["loses"] + found["wins"]
        print(f"equal plans: {dict(found)}; called different {different}, undecided {count_undecided(found)} of {options.count} (none different)", flush=True)


main()
