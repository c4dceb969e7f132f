# SPDX-License-Identifier: MIT
"""Real engines in the full dose: where they are installed, a worker asked as the controller asks, and its plans compared."""
import fcntl
import itertools
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from asked import Asked
from dittune_test import BUILD, SOURCE, skip


def environment(engine, package, *more):
    """A Python that has the package, and more. Installs them from the Python registry into the build folder, once; $DITTUNE_ENGINES
    names a virtual environment instead."""
    folder = pathlib.Path(os.environ.get("DITTUNE_ENGINES", BUILD / "engines"))
    python = folder / "bin/python"
    if "DITTUNE_ENGINES" in os.environ:
        for name in (package, *more):
            if subprocess.run([python, "-c", f"import {name}"], check=False, capture_output=True).returncode:
                skip(f"$DITTUNE_ENGINES has no {name}")
        return python
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "-".join((engine, *more))
        if not done.exists():
            install = f"{sys.executable} -m venv {folder} && {python} -m pip install -q '{SOURCE}[{engine}]' {' '.join(more)}"
            if subprocess.run(["bash", "-c", install], check=False).returncode:
                skip(f"the Python registry has not given {package}")
            done.touch()
    return python


def program(t, name, python, run):
    """A program that runs these lines of Python with the workers of the source."""
    path = t.write(name, f"#!{python}\nimport sys\nsys.path.insert(0, '{SOURCE}/workers')\n{run}\n")
    path.chmod(0o755)
    return path


class Worker(Asked):
    """A worker asked as the controller asks."""

    def __init__(self, t, words, model, devices=4, job=None, **how):
        super().__init__(words, {**t.environment, **how})
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=devices, job=dict(job or {}, model=str(model)))
        self.ready = self.hear()
        self.plain = {axis["name"]: axis["default"] if isinstance(axis["default"], str) else 1 for axis in self.hello["parameters"]}

    def prepare(self, **plan):
        return self.ask(op="prepare", plan={**self.plain, **plan}, seed=1,
                        verify=dict(projections=16, seed=7))


def error(one, other):
    """The relative error as the controller estimates it: of each image of each rank, the worst; `other` is of one rank."""
    worst, reference = 0, other["verify"][0]
    for rank in one["verify"]:
        for image, p in enumerate(rank["projections"]):
            r = reference["projections"][image]
            worst = max(worst, (sum((a - b) ** 2 for a, b in zip(p, r)) / len(r)) ** 0.5 / reference["norm"][image])
    return worst


def equal_plans(t, worker, model, least):
    """Every legal plan of 2 and 4 ranks, one thread each, gives the output of one rank; there are at least so many."""
    axes, tried = {axis["name"]: axis["values"] for axis in worker.hello["parameters"]}, 0
    one = worker.prepare(ranks=1)
    for ulysses, ring, cfg, tensor in itertools.product(axes["ulysses"], axes["ring"], axes.get("cfg", [1]), axes.get("tensor", [1])):
        ranks = ulysses * ring * cfg * tensor
        if ranks in (2, 4) and (tensor == 1 or ulysses * ring == 1):
            more = {name: degree for name, degree in (("cfg", cfg), ("tensor", tensor)) if name in axes}
            answer = worker.prepare(ranks=ranks, ulysses=ulysses, ring=ring, **more)
            said = answer.get("say") or error(answer, one)
            tried += 1
            t.check(f"{model}: ulysses={ulysses} ring={ring} cfg={cfg} tensor={tensor} equals 1 rank: {said}",
                    answer["op"] == "prepared" and said < worker.hello["tolerance"], answer)
    t.check(f"{model}: plans were tried: {tried}", tried >= least)
    refused = worker.prepare(ranks=5, ulysses=5)
    t.check(f"{model}: a degree that was not announced is refused", refused["op"] == "failed" and refused["kind"] == "infeasible", refused)
    return one
