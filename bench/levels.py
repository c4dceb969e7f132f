#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much of the noise differs from visit to visit, from residency to residency and from start to start (docs/measuring-appendix.md): a
table of `dittune noise` for the built-in network with one and two ranks, and for PyTorch where $BENCH_PYTHON has it.

    bench/levels.py [BUILD] [--turns 3] [--budget 120s]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HONEST = "tests/truth/honest.c"  # buffers from malloc, or aligned


def rows(folder):
    """(name, options, environment) of each row of the table."""
    yield "built-in, dit-s/2, 1 rank of 2 threads", ["--plan", "ranks=1 threads=2"], {}
    yield "built-in, dit-s/2, 2 ranks", ["--plan", "ranks=2 cfg=2 threads=1"], {}
    program = folder / "honest"
    subprocess.run(["cc", "-O3", "-march=native", "-o", program, ROOT / HONEST, "-ljansson", "-lm"], check=True)
    yield "160^3 product, buffers from malloc", ["--worker", program], {}
    yield "160^3 product, buffers at 64 bytes", ["--worker", program], {"HONEST": "aligned"}
    python = os.environ.get("BENCH_PYTHON", "python3")
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        script = folder / "torch-worker"
        script.write_text(f"#!/bin/sh\nexec {python} {ROOT / 'bench/torch_worker.py'}\n", encoding="utf-8")
        script.chmod(0o755)
        yield "PyTorch, the same network, eager", ["--worker", script], {}


def noise(build, options, environment, budget):
    done = subprocess.run([build / "dittune", "noise", "--json", "--budget", budget, *options], capture_output=True, text=True,
                          check=False, env={**os.environ, **environment})
    return json.loads(done.stdout) if done.returncode == 0 else print(f"# {done.stderr.strip()}")


def share(results, name):
    return f"{100 * statistics.median(result['levels'][name] or 0 for result in results):.2f} %"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--budget", default="120s")
    options = parser.parse_args()
    print("| plan | step | visit | residency | start | margin |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, words, environment in rows(pathlib.Path(folder)):
            results = [r for _ in range(options.turns) if (r := noise(options.build, words, environment, options.budget))]
            if results:
                step = statistics.median(result["copies"][0]["median_seconds"] for result in results)
                margin = statistics.median(result["margin"] for result in results)
                print(f"| {name} | {1e3 * step:.3g} ms | {share(results, 'visit')} | {share(results, 'residency')} | "
                      f"{share(results, 'start')} | {100 * margin:.2g} % |", flush=True)


main()
