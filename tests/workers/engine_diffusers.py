# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-diffusers with the real engine: every plan gives the output of one rank, planted faults are found, and
rules and engine agree."""
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


# The planted fault, the network, the plan: ring of 2 ranks when there is none.
RING = dict(ranks=2, ring=2)
RANKS = [("slice", "tiny-flux", RING), ("noise", "tiny-flux", RING), ("stale", "tiny-flux", RING), ("stale1", "tiny-flux", RING),
         ("third", "tiny-flux", RING), ("token", "tiny-flux", RING), ("heads", "tiny-flux", dict(ranks=2, ulysses=2)),
         ("sixth", "tiny-flux", RING), ("nan", "tiny-flux", RING), ("scale", "tiny-flux", RING), ("before", "tiny-flux", RING),
         ("image", "tiny-flux", RING), ("images", "tiny-flux", RING), ("half", "tiny-qwen-image", RING),
         ("old half", "tiny-qwen-image", RING), ("noise", "tiny-wan", dict(ranks=2, cfg=2)), ("half", "tiny-wan", dict(ranks=2, cfg=2))]


def faults_of_ranks():
    """A fault of any rank, of a later step, of a part of the batch or of one half of guidance is a wrong answer."""
    for fault, model, plan in RANKS:
        batch = ("--batch", 2) if fault.startswith("image") else ()
        done = t.tool("run", "--worker", PLANTED, "--model", model, "--size", "192x192", *batch,
                      "--plan", " ".join(f"{name}={value}" for name, value in {**plan, "threads": 1}.items()), "--quick",
                      *(("--", "--cfg") if "cfg" in plan else ()), env={"PLANTED": fault})
        t.check(f"run: {fault} in {model}, {plan}: {(done.err.strip().splitlines() or [''])[-1][:150]}",
                done.code != 0 and "wrong answer" in done.err, done)
    for fault, model, _ in [RANKS[0], *RANKS[2:5], RANKS[7], RANKS[14]]:
        done = t.tool("worker-test", PLANTED, "--model", model, env={"PLANTED": fault})
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


def rules_and_engine():
    """What the rules forbid fails in the engine, too."""
    for model, plan, why in (("tiny-flux", dict(ranks=3, ring=3), "divisible"), ("tiny-wan", dict(ranks=3, ulysses=3), "shape")):
        worker = Worker(t, [PLANTED], model, PLANTED="rules")
        answer = worker.prepare(**plan)
        t.check(f"{model}: the engine refuses {plan}: {answer.get('say')}", answer["op"] == "failed" and why in answer["say"], answer)
        worker.end()


# Both sides of each boundary: what divides is never uneven, what does not is, by ulysses alone or ring alone. 23 x 21 tokens of the
# image, 46 x 42 of Wan; 8 heads, 64 tokens of text.
UNEVEN = [("tiny-qwen-image", dict(ranks=2, ulysses=2), True), ("tiny-qwen-image", dict(ranks=2, ring=2), True), ("tiny-qwen-image", dict(ranks=3, ulysses=3), True),
          ("tiny-qwen-image", dict(ranks=4, ulysses=2, ring=2), False), ("tiny-flux", dict(ranks=2, ulysses=2), True), ("tiny-flux", dict(ranks=3, ring=3), True),
          ("tiny-wan", dict(ranks=2, ulysses=2), False), ("tiny-wan", dict(ranks=3, ulysses=3), True), ("tiny-wan", dict(ranks=3, ring=3), False)]


def uneven():
    """ulysses_anything and ring_anything give the output of one rank; without them the engine refuses what does not divide."""
    for model in dict.fromkeys(model for model, _, _ in UNEVEN):
        worker = Worker(t, [WORKER], model, job=dict(width=368, height=336))
        one = worker.prepare(ranks=1)
        for plan, legal in ((plan, legal) for name, plan, legal in UNEVEN if name == model):
            answer = worker.prepare(**plan, uneven="anything")
            said = answer.get("say") or error(answer, one)
            t.check(f"{model}: {plan} uneven: {said}", answer["op"] == "prepared" and said < worker.hello["tolerance"] if legal
                    else answer["op"] == "failed" and answer["kind"] == "infeasible", answer)
            if legal:
                answer = worker.prepare(**plan)
                t.check(f"{model}: {plan} even: refused", answer["op"] == "failed" and "unless uneven=anything" in answer["say"], answer)
        worker.end()


for name in ("tiny-flux", "tiny-wan", "tiny-qwen-image"):
    worker = Worker(t, [WORKER, "--cfg"], name)
    equal_plans(t, worker, name, 5)
    worker.end()
    done = t.tool("worker-test", WORKER, "--model", name)
    t.check(f"{name}: worker-test", done.code == 0, done)
uneven()
planted_faults()
faults_of_ranks()
stuck()
rules_and_engine()
t.finish()
