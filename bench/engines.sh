#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# diffusers, tuned by its worker: the tuned plan against the engine's own default, and what the worker adds to a step.
# $DITTUNE_ENGINES is a virtual environment with dittune's workers[diffusers].
#
#     DITTUNE_ENGINES=/path/to/venv bench/engines.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/engines.sh" exec python3 - "$@" <<'PY'
import os, statistics, subprocess
from lib import *

BUDGET, ROUNDS, STEPS = ("2m", 6, 4) if QUICK else ("10m", 20, 8)
JOBS = [("tiny-flux", "256x256", 1), ("tiny-flux", "384x384", 1), ("tiny-wan", "192x192", 13), ("tiny-qwen-image", "384x384", 1)]
begin("Engines that are not ours", f"""
diffusers on {cores()} cores over gloo, small networks with random weights (workers/dittune_workers/tiny), float32. Gain: sessions of
{BUDGET}, the tuned plan against the default, which is one rank with a thread a core, in the session's own final comparison. Overhead: a step of
the worker's 1-rank plan with one thread over one of a bare loop of the same class in a process of its own, {ROUNDS} rounds in turn,
{STEPS} steps each. Never run on a GPU.""")
VENV = os.environ.get("DITTUNE_ENGINES", "")
if not os.access(f"{VENV}/bin/dittune-worker-diffusers", os.X_OK):
    skip("$DITTUNE_ENGINES names no virtual environment with dittune-worker-diffusers")
WORKER = f"{VENV}/bin/dittune-worker-diffusers"


class Spoken(Group):
    """The worker of diffusers with one plan resident."""

    def __init__(self, model):
        self.process = subprocess.Popen([WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.ask(op="hello", protocol=2, ranks=1, devices=1, job=dict(model=model))
        self.hear()
        self.handle = self.prepare(dict(ranks=1, ulysses=1, ring=1, threads=1))

    def step(self):
        return statistics.median(self.run(self.handle, STEPS)[0])


class Bare:
    def __init__(self, model):
        self.process = subprocess.Popen([f"{VENV}/bin/python", f"{ROOT}/bench/engines_bare.py", model, "1"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def step(self):
        self.process.stdin.write(f"{STEPS}\n")
        self.process.stdin.flush()
        return statistics.median(json.loads(self.process.stdout.readline())) * 1e-9

    def quit(self):
        self.process.stdin.close()
        self.process.wait(30)


for model, size, frames in JOBS:
    video = ["--frames", frames] if frames > 1 else []
    found = tool("--worker", WORKER, "--model", model, "--size", size, *video, "--steps", 4, "--budget", BUDGET, "--quiet",
                 "--db", FOLDER + "/db")
    if found["gain"] is None:
        tell(f"{model} {size}: {BUDGET} gave no final comparison.")
        continue
    plan = {name: value for name, value in found["best"]["plan"].items() if value != 1}
    row(f"{model} {size}: default over tuned", (found["gain"]["ratio"], found["gain"]["interval"], found["gain"]["pairs"]),
        least=0.99, note=f"{found['verdict']}: {plan}")
for model in dict.fromkeys(job[0] for job in JOBS):
    sides = {"worker": Spoken(model), "bare": Bare(model)}
    sides["bare"].step()
    times = in_turn({name: side.step for name, side in sides.items()}, ROUNDS)
    row(f"{model}: a step in the worker over a bare loop", ratios(times["worker"], times["bare"]), most=1.005)
    for side in sides.values():
        side.quit()
PY
