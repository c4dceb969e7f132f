# SPDX-License-Identifier: MIT
"""How far right plans of diffusers differ from one rank by rounding, and how far planted faults do: what the tolerances of the workers
are chosen by (network/worker.py, docs/engines.md). Nothing is timed.

    DITTUNE_ENGINES=/path/to/venv python3 bench/rounding.py [SEEDS] [MODEL..] [DTYPE..] [--right]        a worker is started for each seed

prints a table and, on standard error, a line for each plan; exit code 1 when a right plan would be refused. --right leaves the faults out.

An error is the controller's estimate by 16 projections (docs/protocol.md), the worst of all ranks, images and halves of guidance, after 2
steps, of faults after 6, too. Right plans: all layouts of 2 ranks with 20 seeds of inputs unless given, of 4 ranks with the first 4. Faults:
those of tests/workers/lib_planted.py that a job of 2 images has, with the first 2."""
import itertools
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/workers")]
from asked import Asked

PYTHON = pathlib.Path(os.environ["DITTUNE_ENGINES"]) / "bin/python"
WORDS = sys.argv[1:]
SEEDS = next((int(word) for word in WORDS if word.isdigit()), 20)
MODELS = [word for word in WORDS if word.startswith("tiny-")] or ["tiny-flux", "tiny-wan", "tiny-qwen-image"]
DTYPES = [word for word in WORDS if "float" in word] or ["float32", "bfloat16", "float16"]
FAULT_SEEDS, MANY_SEEDS, VERIFY, LATER = 0 if "--right" in WORDS else 2, 4, dict(projections=16, seed=7), 4


def error(answer, one):
    worst, reference = 0, one["verify"][0]
    for rank in answer["verify"]:
        for row, right, norm in zip(rank["projections"], reference["projections"], reference["norm"]):
            if any(value is None for value in row):
                return float("inf")
            worst = max(worst, (sum((a - b) ** 2 for a, b in zip(row, right)) / len(right)) ** 0.5 / norm)
    return worst


class Measured(Asked):
    """The worker with planted faults, asked for errors."""

    def __init__(self, model, dtype, seed):
        words = [PYTHON, ROOT / "tests/workers/lib_planted.py", "--cfg"]
        super().__init__(words, {name: value for name, value in os.environ.items() if name != "PLANTED"})
        name = f"{model.replace('-', '_')}__{seed}__{dtype}__2"
        job = dict(pipeline=f"{ROOT / 'tests/workers/lib_seeds.py'}:{name}")
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=4, job=job)
        self.hear()
        self.axes = {axis["name"]: axis["values"] for axis in self.hello["parameters"]}
        self.plain = {axis["name"]: axis["default"] if isinstance(axis["default"], str) else 1 for axis in self.hello["parameters"]}

    def plan(self, seed, **values):
        answer = self.ask(op="prepare", plan={**self.plain, **values}, seed=seed, verify=VERIFY)
        if answer["op"] != "prepared":
            raise SystemExit(f"{values}: {answer.get('say')}")
        return answer

    def error(self, seed, one, later=0, **values):
        answer = self.plan(seed, **values)
        found = error(answer, one)
        if later:
            found = max(found, error(self.ask(op="run", handle=answer["handle"], n=later, mode="measure", verify=VERIFY), one))
        self.ask(op="release", handle=answer["handle"])
        return found

    def layouts(self, counts):
        for ulysses, ring, cfg in itertools.product(self.axes["ulysses"], self.axes["ring"], self.axes.get("cfg", [1])):
            if ulysses * ring * cfg in counts:
                yield dict(ranks=ulysses * ring * cfg, ulysses=ulysses, ring=ring, **(dict(cfg=cfg) if "cfg" in self.axes else {}))


def measure(model, dtype):
    right, faults = {}, {}
    for seed in range(1, SEEDS + 1):
        worker = Measured(model, dtype, seed)
        one = worker.plan(seed)
        for layout in worker.layouts((2, 4) if seed <= MANY_SEEDS else (2,)):
            right.setdefault(str(layout), []).append(worker.error(seed, one, **layout))
        for fault in worker.axes["fault"][1:] if seed <= FAULT_SEEDS else []:
            split = dict(ulysses=2) if fault in ("heads", "text") else dict(ring=2)
            faults.setdefault(fault, []).append(worker.error(seed, one, LATER, ranks=2, fault=fault, **split))
        worker.end()
    for name, errors in [*right.items(), *faults.items()]:
        print(f"{model} {dtype} {name}: {min(errors):.2g} to {max(errors):.2g}", file=sys.stderr, flush=True)
    errors = [error for of_plan in right.values() for error in of_plan]
    return errors, worker.hello["tolerance"], {name: min(of_fault) for name, of_fault in faults.items()}


refused = 0
print("| network | data type | right plans | largest error | tolerance | refused | planted faults, the least error of each |\n"
      "|---|---|---|---|---|---|---|")
for model, dtype in itertools.product(MODELS, DTYPES):
    errors, tolerance, faults = measure(model, dtype)
    above = sum(error > tolerance for error in errors)
    refused += above
    rows = ", ".join(f"{name} {least:.1g}" for name, least in sorted(faults.items(), key=lambda row: row[1]))
    print(f"| `{model}` | {dtype} | {len(errors)} | {max(errors):.2g} | {tolerance:g} | {above} | {rows} |", flush=True)
sys.exit(refused > 0)
