#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# diffusers, tuned by its worker: the tuned plan against the engine's own default, and what the worker adds to a step.
# $DITTUNE_ENGINES is a virtual environment with dittune's workers[diffusers].
#
#     DITTUNE_ENGINES=/path/to/venv bench/engines.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/engines.sh" exec python3 - "$@" <<'PY'
import os, subprocess
from lib import *

BUDGET, ROUNDS, STEPS = ("2m", 20, 2) if QUICK else ("5m", 100, 2)
JOBS = [("tiny-flux", "256x256", 1), ("tiny-flux", "384x384", 1), ("tiny-wan", "192x192", 13), ("tiny-wan", "256x256", 13),
        ("tiny-qwen-image", "256x256", 1), ("tiny-qwen-image", "384x384", 1)]
begin("Engines that are not ours", f"""
diffusers on {cores()} cores over gloo, small networks with random weights (workers/dittune_workers/tiny), float32. Gain: sessions of
{BUDGET}, the tuned plan against the default, which is one rank with a thread a core, in the session's own final comparison; the two
passes of guidance may run on two halves of the ranks, where the model has them (`--cfg`). Overhead: a step
asked of the worker's rank (1 rank, 1 thread; barrier, clock and answer included) over one of a bare loop on the same network in the same
process, {ROUNDS} rounds in turn, {STEPS} steps each; and the bare step with what the worker adds to a network that does nothing over the
bare step, which the noise of the network does not touch. Never run on a GPU.""")
VENV = os.environ.get("DITTUNE_ENGINES", "")
if not os.access(f"{VENV}/bin/dittune-worker-diffusers", os.X_OK):
    skip("$DITTUNE_ENGINES names no virtual environment with dittune-worker-diffusers")
WORKER = f"{VENV}/bin/dittune-worker-diffusers"


class Sides:
    """The worker's rank and a bare loop on one network in one process."""

    def __init__(self, model):
        self.process = subprocess.Popen([f"{VENV}/bin/python", f"{ROOT}/bench/engines_bare.py", model], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def round(self):
        self.process.stdin.write(f"{STEPS}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


for model in dict.fromkeys(job[0] for job in JOBS):
    sides = Sides(model)
    sides.round()
    rounds = [sides.round() for _ in range(ROUNDS)]
    row(f"{model}: a step in the worker over a bare loop",
        ratios([times["worker"] for times in rounds], [times["bare"] for times in rounds]), most=1.005)
    row(f"{model}: a bare step and what the worker adds over a bare step",
        ratios([times["bare"] + times["added"] for times in rounds], [times["bare"] for times in rounds]), most=1.005)
    sides.process.stdin.close()
    sides.process.wait(30)
for model, size, frames in JOBS:
    video = ["--frames", frames] if frames > 1 else []
    found = tool("--worker", WORKER, "--model", model, "--size", size, *video, "--steps", 4, "--budget", BUDGET, "--quiet",
                 "--db", FOLDER + "/db", "--", "--cfg")
    if found["gain"] is None:
        tell(f"{model} {size}: {BUDGET} gave no final comparison.")
        continue
    plan = {name: value for name, value in found["best"]["plan"].items() if value != 1}
    row(f"{model} {size}: default over tuned", (found["gain"]["ratio"], found["gain"]["interval"], found["gain"]["pairs"]),
        least=0.99, note=f"{found['verdict']}: {plan}")
PY
