# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-diffusers with the real engine: every plan gives the output of one rank, planted faults are found, and
rules and engine agree. Installs the engine from the Python registry into the build folder, once; $DITTUNE_ENGINES names a
virtual environment that has it."""
import itertools
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune, skip

t = Dittune(clock="real")
HERE = SOURCE / "tests/workers"


def environment():
    """A virtual environment with the engine."""
    folder = pathlib.Path(os.environ.get("DITTUNE_ENGINES", BUILD / "engines"))
    if not (folder / "installed").exists() and "DITTUNE_ENGINES" not in os.environ:
        install = f"{sys.executable} -m venv {folder} && {folder}/bin/python -m pip install -q '{SOURCE}/workers[diffusers]'"
        if subprocess.run(["bash", "-c", install], check=False).returncode:
            skip("the Python registry has not given torch, diffusers and transformers")
        (folder / "installed").touch()
    return folder / "bin/python"


PYTHON = environment()
WORKER = t.write("dittune-worker-diffusers", f"#!{PYTHON}\nimport sys\nsys.path.insert(0, '{SOURCE}/workers')\n"
                 "from dittune_workers.diffusers.worker import main\nmain()\n")
WORKER.chmod(0o755)
PLANTED = t.write("planted", f"#!{PYTHON}\nimport runpy\nrunpy.run_path('{HERE}/lib_planted.py', run_name='__main__')\n")
PLANTED.chmod(0o755)


class Worker:
    """A worker asked as the controller asks."""

    def __init__(self, model, program=WORKER, devices=4, **how):
        self.process = subprocess.Popen([program, "--cfg"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env={**t.environment, **how})
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=devices, job=dict(model=model))
        self.hear()
        self.plain = {axis["name"]: 1 for axis in self.hello["parameters"]}

    def hear(self):
        while (message := json.loads(self.process.stdout.readline() or '{"op": "failed", "say": "it ended"}'))["op"] == "heartbeat":
            pass
        return message

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def prepare(self, **plan):
        return self.ask(op="prepare", plan={**self.plain, **plan}, seed=1,
                        verify=dict(projections=16, seed=7))

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def error(one, other):
    """The relative error as the controller estimates it."""
    p, r = one["verify"]["projections"][0], other["verify"]["projections"][0]
    return (sum((a - b) ** 2 for a, b in zip(p, r)) / len(r)) ** 0.5 / other["verify"]["norm"][0]


def equal_plans(model):
    """Every legal plan of 1, 2 and 4 ranks, one thread each."""
    worker, tried = Worker(model), 0
    axes = {axis["name"]: axis["values"] for axis in worker.hello["parameters"]}
    one = worker.prepare(ranks=1)
    for ulysses, ring, cfg in itertools.product(axes["ulysses"], axes["ring"], axes.get("cfg", [1])):
        ranks = ulysses * ring * cfg
        if ranks in (2, 4):
            halves = dict(cfg=cfg) if "cfg" in axes else {}
            answer = worker.prepare(ranks=ranks, ulysses=ulysses, ring=ring, **halves)
            said = answer.get("say") or error(answer, one)
            tried += 1
            t.check(f"{model}: ulysses={ulysses} ring={ring} cfg={cfg} equals 1 rank: {said}",
                    answer["op"] == "prepared" and said < worker.hello["tolerance"], answer)
    t.check(f"{model}: plans were tried: {tried}", tried >= 5)
    refused = worker.prepare(ranks=3, ulysses=3)
    t.check(f"{model}: an illegal degree is refused", refused["op"] == "failed" and refused["kind"] == "infeasible", refused)
    worker.end()


def planted_faults():
    for fault, plan, least in (("ring", dict(ranks=2, ring=2), 1e-3), ("text", dict(ranks=2, ulysses=2), 1e-3)):
        worker = Worker("tiny-flux", PLANTED, PLANTED=fault)
        wrong = error(worker.prepare(**plan), worker.prepare(ranks=1))
        t.check(f"the planted fault '{fault}' is no rounding: {wrong}", wrong > least)
        worker.end()
    done = t.tool("worker-test", PLANTED, "--model", "tiny-flux", env={"PLANTED": "ring"})
    t.check("worker-test finds a ring that never turns", done.code == 1 and "FAILED   agree" in done.out, done)


def rules_and_engine():
    """What the rules forbid fails in the engine, too."""
    for model, plan, why in (("tiny-flux", dict(ranks=3, ring=3), "divisible"), ("tiny-wan", dict(ranks=3, ulysses=3), "shape")):
        worker = Worker(model, PLANTED, PLANTED="rules")
        answer = worker.prepare(**plan)
        t.check(f"{model}: the engine refuses {plan}: {answer.get('say')}", answer["op"] == "failed" and why in answer["say"], answer)
        worker.end()


for name in ("tiny-flux", "tiny-wan", "tiny-qwen-image"):
    equal_plans(name)
    done = t.tool("worker-test", WORKER, "--model", name)
    t.check(f"{name}: worker-test", done.code == 0, done)
planted_faults()
rules_and_engine()
t.finish()
