#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a prior costs that is as wrong as can be: the table's own values turned upside down (the slowest plan is praised), and a
table in which what works failed and what failed works. P of each beside P without a prior, same seeds; the difference with its
95 % interval over the repeats (Student's t of pairs).

    bench/search/wrong_prior.py [BUILD] [--tables DIR] [--evals 150] [--repeats 50] [--jobs 2] [--names NAME ..]
"""
import argparse
import gzip
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
USUAL = ["convolution_RTX_3090", "convolution_milo_A100", "pnpoly_RTX_3090", "gemm_RTX_3090"]


def works(row):
    return isinstance(row["time"], (int, float))


def with_time(row, time):
    kept = {name: value for name, value in row.items() if name not in ("time", "times")}
    return {**kept, "time": time, **({"times": [time]} if not isinstance(time, str) else {})}


def inverted(rows, _):
    times = [row["time"] for row in rows.values() if works(row)]
    product = min(times) * max(times)
    return {key: with_time(row, product / row["time"]) if works(row) else row for key, row in rows.items()}


def swapped(rows, rng):
    times = [row["time"] for row in rows.values() if works(row)]
    return {key: with_time(row, "RuntimeFailedConfig" if works(row) else rng.choice(times)) for key, row in rows.items()}


def scores(build, table, prior, options):
    command = [build / "dittune", "simulate", "--landscape", table, "--search", "bayes", "--evals", options.evals, "--repeats",
               options.repeats, "--jobs", options.jobs, "--json", *(["--prior", prior] if prior else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["score_p"]["each"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--tables", type=pathlib.Path, default=ROOT.parent / "shared" / "landscapes")
    parser.add_argument("--evals", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--names", nargs="*", default=USUAL)
    options = parser.parse_args()
    print(f"{'table':24} {'prior':9} {'P cold':>7} {'P':>7} {'difference':>22}")
    for name in options.names:
        table = options.tables / f"{name}.json.gz"
        data = json.loads(gzip.decompress(table.read_bytes()))
        cold = scores(options.build, table, None, options)
        for make in (inverted, swapped):
            if make is swapped and all(works(row) for row in data["cache"].values()):
                continue
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump({**data, "cache": make(data["cache"], random.Random(1))}, file)
                file.flush()
                misled = scores(options.build, table, file.name, options)
            apart = [a - b for a, b in zip(misled, cold)]
            half = 2.01 * statistics.stdev(apart) / math.sqrt(len(apart))
            mean = statistics.fmean(apart)
            print(f"{name:24} {make.__name__:9} {statistics.fmean(cold):7.3f} {statistics.fmean(misled):7.3f} "
                  f"{mean:+8.3f} [{mean - half:+.3f}, {mean + half:+.3f}]", flush=True)


main()
