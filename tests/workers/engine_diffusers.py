# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-diffusers with the real engine: every plan gives the output of one rank, planted faults are found
(rules: boundaries.py)."""
import json
import pathlib
import select
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import Worker, environment, equal_plans, error, program

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
WORKER = program(t, "dittune-worker-diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
PLANTED = program(t, "planted", PYTHON, f"import runpy\nrunpy.run_path('{SOURCE}/tests/workers/lib_planted.py', run_name='__main__')")


def planted_faults():
    for fault, plan, least in (("ring", dict(ranks=2, ring=2), 1e-3), ("text", dict(ranks=2, ulysses=2), 1e-3)):
        worker = Worker(t, [PLANTED], "tiny-flux", PLANTED=fault)
        wrong = error(worker.prepare(**plan), worker.prepare(ranks=1))
        t.check(f"the planted fault '{fault}' is no rounding: {wrong}", wrong > least)
        worker.end()
    done = t.tool("worker-test", PLANTED, "--model", "tiny-flux", env={"PLANTED": "ring"})
    t.check("worker-test finds a ring that never turns", done.code == 1 and "FAILED   agree" in done.out, done)


TEXT = "64", "tiny-qwen-image"  # tokens of the prompts of a network that does not pad them: plans that split them are legal
# The planted fault, the network, the plan: ring of 2 ranks when there is none.
RING = dict(ranks=2, ring=2)
RANKS = [("slice", "tiny-flux", RING), ("noise", "tiny-flux", RING), ("stale", "tiny-flux", RING), ("stale1", "tiny-flux", RING),
         ("third", "tiny-flux", RING), ("token", "tiny-flux", RING), ("heads", "tiny-flux", dict(ranks=2, ulysses=2)),
         ("sixth", "tiny-flux", RING), ("nan", "tiny-flux", RING), ("scale", "tiny-flux", RING), ("before", "tiny-flux", RING),
         ("image", "tiny-flux", RING), ("images", "tiny-flux", RING), ("half", "tiny-qwen-image", RING),
         ("old half", "tiny-qwen-image", RING), ("noise", "tiny-wan", dict(ranks=2, cfg=2)), ("half", "tiny-wan", dict(ranks=2, cfg=2))]


def text(model):
    return ("--text-tokens", TEXT[0]) if model in TEXT[1:] else ()


def faults_of_ranks():
    """A fault of any rank, of a later step, of a part of the batch or of one half of guidance is a wrong answer."""
    for fault, model, plan in RANKS:
        batch = ("--batch", 2) if fault.startswith("image") else ()
        done = t.tool("run", "--worker", PLANTED, "--model", model, "--size", "192x192", *batch, *text(model),
                      "--plan", " ".join(f"{name}={value}" for name, value in {**plan, "threads": 1}.items()), "--quick",
                      *(("--", "--cfg") if "cfg" in plan else ()), env={"PLANTED": fault})
        t.check(f"run: {fault} in {model}, {plan}: {(done.err.strip().splitlines() or [''])[-1][:150]}",
                done.code != 0 and "wrong answer" in done.err, done)
    for fault, model, _ in [RANKS[0], *RANKS[2:5], RANKS[7], RANKS[14]]:
        done = t.tool("worker-test", PLANTED, "--model", model, *text(model), env={"PLANTED": fault})
        t.check(f"worker-test: {fault} in {model}", done.code == 1 and "FAILED   agree" in done.out, done)
    for fault, model in (("stale1", "tiny-flux"), ("third", "tiny-flux")):
        done = t.tool("--worker", PLANTED, "--model", model, "--search", "exhaustive", "--budget", "4m", "--json", env={"PLANTED": fault})
        best = json.loads(done.out or "{}").get("best", {}).get("plan", {})
        t.check(f"tune: {fault} in {model}: {best}", best.get("ranks") == 1 or best.get("ring") == 1 and fault == "stale1", done)


def stuck():
    """Ranks that wait for each other for ever send no heartbeat: those of the start and of 1 rank's plan end."""
    worker = Worker(t, [PLANTED], "tiny-flux", PLANTED="stuck")
    t.check("one rank works", worker.prepare(ranks=1)["op"] == "prepared")
    worker.process.stdin.write(json.dumps(dict(op="prepare", plan={**worker.plain, "ranks": 2, "ring": 2}, seed=1, verify=None)) + "\n")
    worker.process.stdin.flush()
    message, until = "{}", time.monotonic() + 60
    while message and time.monotonic() < until:  # no line for 15 s is silence
        message = worker.process.stdout.readline() if select.select([worker.process.stdout], [], [], 15)[0] else None
    t.check("a deadlock is silent", message is None, message)
    worker.process.kill()
    worker.process.wait(60)


for name in ("tiny-flux", "tiny-wan", "tiny-qwen-image"):
    worker = Worker(t, [WORKER, "--cfg"], name, job=dict(text_tokens=TEXT[0]) if name in TEXT[1:] else None)
    equal_plans(t, worker, name, 5)
    worker.end()
    done = t.tool("worker-test", WORKER, "--model", name)
    t.check(f"{name}: worker-test", done.code == 0, done)
planted_faults()
faults_of_ranks()
stuck()
t.finish()
