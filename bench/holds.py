#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does the stored gain hold later? One tuning of the built-in network, then fresh sessions of `dittune check` of what it stored, with
pauses between: how often today's gain lies inside the stored interval, and how often the intervals of both have something in
common. Today's gain has an error of its own, so the first share is lower than the interval's level.

    bench/holds.py [BUILD] [--count 40] [--pause 120] [--budget 60s] [--out FILE] [OPTION OF dittune tune ..]
    bench/holds.py --batch 1,2,4 --objective throughput
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def dittune(build, database, *words):
    done = subprocess.run([build / "dittune", *words, "--json"], capture_output=True, text=True, check=False,
                          env={**os.environ, "DITTUNE_STORE": str(database)})
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--pause", type=float, default=120)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--out", type=pathlib.Path)
    options, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as database:
        tuned = dittune(options.build, database, "tune", "--budget", "180s", *words)
        if tuned["verdict"] != "faster":
            raise SystemExit(f"holds.py: the session said {tuned['verdict']}: there is no gain to measure again; name another network or objective")
        low, high = tuned["gain"]["interval"]
        print(f"tuned: {tuned['verdict']}, gain {tuned['gain']['ratio']:.3f} [{low:.3f}, {high:.3f}], {tuned['sets']} sets", flush=True)
        inside = common = 0
        for k in range(options.count):
            time.sleep(options.pause)
            entry = dittune(options.build, database, "check", "--budget", options.budget)["entries"][0]
            now = entry["gain_now"]
            record = {"at": round(time.time()), "verdict": entry["verdict"], "stored": [low, high], "now": now}
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            ratio, (least, most) = now["ratio"], now["interval"]
            inside += low <= ratio <= high
            common += least <= high and most >= low
            print(f"{k + 1:3} {entry['verdict']:13} {ratio:.3f} [{least:.3f}, {most:.3f}]  inside {inside}, in common {common}", flush=True)


main()
