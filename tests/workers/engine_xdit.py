# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-xdit with the real engine: one rank equals diffusers' own class, every plan equals one rank, planted faults
and xDiT's own wrong answer are found, and a tuned plan is looked up as xDiT's own call."""
import json
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import Worker, environment, equal_plans, error, program

t = Dittune(clock="real")
PYTHON = environment("xdit", "xfuser")
WORKER = program(t, "dittune-worker-xdit", PYTHON, "from dittune_workers.xdit.worker import main\nmain()")
DIFFUSERS = program(t, "diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
PLANTED = program(t, "planted", PYTHON, f"import runpy\nrunpy.run_path('{SOURCE}/tests/workers/lib_planted_xdit.py', run_name='__main__')")
UNEVEN = t.write("flux-63.json", {**json.loads((SOURCE / "workers/dittune_workers/tiny/tiny-flux.json").read_text()),
                                  "name": "flux-63", "text_tokens": 63})


def equal_engines(name):
    job = dict(text_tokens="64") if name == "tiny-qwen-image" else None
    worker, other = Worker(t, [WORKER], name, job=job), Worker(t, [DIFFUSERS], name, job=job)
    one = equal_plans(t, worker, name, 5)
    apart = error(one, other.prepare(ranks=1))
    t.check(f"{name}: one rank equals the class of diffusers: {apart}", apart < 1e-6)
    t.check(f"{name}: hello names what was replaced", "by replaced functions" in worker.hello["workload"], worker.hello["workload"])
    worker.end()
    other.end()
    done = t.tool("worker-test", WORKER, "--model", name)
    t.check(f"{name}: worker-test", done.code == 0, done)


def planted_faults():
    for fault, model, plan in (("ring", "tiny-flux", dict(ranks=2, ring=2)), ("ring", "tiny-wan", dict(ranks=2, ring=2)),
                               ("text", UNEVEN, dict(ranks=2, ulysses=2)), ("text", UNEVEN, dict(ranks=2, ring=2))):
        worker = Worker(t, [PLANTED], model, PLANTED=fault)
        wrong = error(worker.prepare(**plan), worker.prepare(ranks=1))
        t.check(f"the planted fault '{fault}' is no rounding: {wrong}", wrong > 1e-3)
        worker.end()
    for fault, model in (("ring", "tiny-flux"), ("text", UNEVEN)):
        done = t.tool("worker-test", PLANTED, "--model", model, env={"PLANTED": fault})
        t.check(f"worker-test finds the fault '{fault}'", done.code == 1 and "FAILED   agree" in done.out, done)


def not_applied():
    """A setting that xDiT takes and does not use is a failure that says so."""
    for planted, plan, why in (("degrees", dict(ranks=2, ring=2), "runs with ulysses=2, the plan has ulysses=1"),
                               ("attention", dict(attention="sdpa_math"), "runs with attention=sdpa, the plan has attention=sdpa_math"),
                               ("compiled", dict(compile="on"), "runs with compile=off, the plan has compile=on")):
        worker = Worker(t, [PLANTED, "--compile"], "tiny-flux", job=dict(width=64, height=64), PLANTED=planted)
        right, answer = worker.prepare(ranks=1), worker.prepare(**plan)
        t.check(f"{planted}, {plan}: {answer.get('say')}", right["op"] == "prepared" and answer["op"] == "failed" and answer["kind"] == "unapplied"
                and why in answer["say"], answer)
        worker.end()


def tuned():
    path = {"PATH": f"{WORKER.parent}:{os.environ['PATH']}"}
    job = ("--engine", "xdit", "--model", "tiny-flux", "--size", "256x256", "--steps", 4)
    done = t.tool(*job, "--devices", 2, "--budget", "2m", "--json", env=path)
    t.check("a short session tunes xDiT", done.code in (0, 6) and len(done.json["trials"]) >= 3, done)
    outcomes = {trial["outcome"] for trial in done.json["trials"]}
    t.check("no plan failed", outcomes <= {"ok", "slow", "interrupted"}, outcomes)
    done = t.tool("lookup", *job, "--require", "none", "--format", "argv")
    t.check("a look-up gives xDiT's own call", "--ulysses_degree" in done.out and "torchrun" in done.out, done)
    done = t.tool("explain", "ranks=2 cfg=2", *job, "--devices", 2, env=path)
    t.check("two halves of FLUX's guidance are refused", done.code == 2 and "cfg" in done.err, done)


for network in ("tiny-flux", "tiny-wan", "tiny-qwen-image"):
    equal_engines(network)
planted_faults()
not_applied()
tuned()
t.finish()
