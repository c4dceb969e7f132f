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


# Planted faults (lib_planted.py), the network that shows each, and the layout, ring of 2 ranks where there is none.
FAULTS = {**dict.fromkeys(("slice", "noise", "stale", "third", "token", "ring", "stale1", "sixth", "nan", "scale", "before", "image", "images"),
                          ("tiny-flux", "ring=2")),
          **dict.fromkeys(("heads", "text"), ("tiny-flux", "ulysses=2")), **dict.fromkeys(("half", "old_half"), ("tiny-qwen-image", "ring=2"))}
SIZE = ("--size", "128x128")
LATE = "third", "sixth"  # the first wrong step: a plan that is dropped as slow before it is not seen to be wrong, and not used
TEXT = "64", "tiny-qwen-image"  # tokens of the prompts of a network that does not pad them: plans that split them are legal


def text(model):
    return ("--text-tokens", TEXT[0]) if model in TEXT[1:] else ()


def batch(fault):
    return ("--batch", 2) if fault.startswith("image") else ()


def faults_in_sessions():
    """Of one session each, whose plans have all faults: those are wrong answers, the others are right."""
    for model, images in (("tiny-flux", 2), ("tiny-qwen-image", 1)):
        done = t.tool("tune", "--worker", PLANTED, "--model", model, *SIZE, *text(model), "--batch", images, "--devices", 2, "--search", "exhaustive",
                      "--budget", "10m", "--json")
        trials = (done.json or {}).get("trials", [])
        shown = {fault for fault, (network, _) in FAULTS.items() if network == model}
        t.check(f"tune: all faults of {model} were tried", shown <= {trial["plan"]["fault"] for trial in trials}, done)
        for trial in trials:
            right = trial["plan"]["fault"] == "none"
            t.check(f"tune: {model}: {trial['plan']}: {trial['outcome']} {trial['verified_error']}",
                    trial["outcome"] in (("ok", "slow", "interrupted") if right else
                                         ("wrong answer", "slow") if trial["plan"]["fault"] in LATE else ("wrong answer",)), trial)
        t.check(f"tune: {model}: the best plan has no fault", (done.json or {}).get("best", {}).get("plan", {}).get("fault") == "none", done)


def late_faults_in_sessions():
    """A plan that is never dropped, --against, is verified again at its end."""
    for fault in LATE:
        done = t.tool("tune", "--worker", PLANTED, "--model", "tiny-flux", *SIZE, "--devices", 2, "--against", f"ranks=2 ring=2 threads=1 fault={fault}",
                      "--budget", "3m", "--json")
        outcomes = [trial["outcome"] for trial in (done.json or {}).get("trials", []) if trial["plan"]["fault"] == fault and trial["plan"]["ring"] == 2]
        t.check(f"tune --against: {fault}: {outcomes}", "wrong answer" in outcomes, done)


def faults_of_run_and_test():
    """A fault of any rank, of a later step, of a part of the batch or of one half of guidance is a wrong answer."""
    halves = [("noise", "tiny-wan", "cfg=2"), ("half", "tiny-wan", "cfg=2")]
    for fault, model, layout in [(fault, *where) for fault, where in FAULTS.items()] + halves:
        size = ("--size", "96x64", "--frames", 9) if model == "tiny-wan" else SIZE
        done = t.tool("run", "--worker", PLANTED, "--model", model, *size, *text(model), *batch(fault), "--quick",
                      "--plan", f"ranks=2 {layout} threads=1 fault={fault}", *(("--", "--cfg") if "cfg" in layout else ()))
        t.check(f"run: {fault} in {model}, {layout}: {(done.err.strip().splitlines() or [''])[-1][:150]}",
                done.code != 0 and "wrong answer" in done.err, done)
    for fault, (model, _) in FAULTS.items():
        done = t.tool("worker-test", PLANTED, "--model", model, *SIZE, *text(model), *batch(fault), env={"PLANTED": fault})
        t.check(f"worker-test: {fault} in {model}", done.code == 1 and "FAILED   agree" in done.out, done)


def not_applied():
    """A setting that diffusers drops without a word, and blocks that torch would no longer compile, are failures that say so."""
    for planted, plan, how, why in (
            ("split", dict(ranks=2, ring=2), {}, "runs with ring=1, the plan has ring=2"),
            ("split", dict(ranks=2, ulysses=2), {}, "runs with ulysses=1, the plan has ulysses=2"),
            ("split", dict(ranks=2, tensor=2), {}, "runs with tensor=1, the plan has tensor=2"),
            ("degrees", dict(ranks=2, ulysses=2), {}, "runs with ring=2, the plan has ring=1"),
            ("attention", dict(attention="_native_math"), {}, "runs with attention=native, the plan has attention=_native_math"),
            ("blocks", dict(compile="blocks"), {}, "runs with compile=off, the plan has compile=blocks"),
            ("none", dict(compile="blocks"), dict(TORCH_COMPILE_DISABLE="1"), "runs with compile=off, the plan has compile=blocks"),
            ("streams", dict(offload="blocks"), {}, "runs with offload=off, the plan has offload=blocks"),
            ("threads", dict(threads=2), {}, "runs with threads=1, the plan has threads=2"),
            ("variants", dict(compile="blocks"), {}, "torch has 1 compiled variants of a function, its limit in this process")):
        worker = Worker(t, [PLANTED, "--compile"], "tiny-flux", job=dict(width=64, height=64), PLANTED=planted, **how)
        right, answer = worker.prepare(ranks=1), worker.prepare(**plan)
        t.check(f"{planted}, {plan}: {answer.get('say')}", right["op"] == "prepared" and answer["op"] == "failed" and answer["kind"] == "unapplied"
                and why in answer["say"], answer)
        worker.end()


def streamed():
    """Plans whose blocks come from the host's memory, and those that share out the weights in place of it, give the same output,
    resident together."""
    worker = Worker(t, [PLANTED], "tiny-flux", job=dict(width=64, height=64), PLANTED="tight")
    one = worker.prepare(ranks=1, offload="blocks")
    for plan in (dict(ranks=2, ring=2, offload="blocks"), dict(ranks=2, tensor=2, offload="off"), dict(ranks=1, threads=2, offload="blocks")):
        answer = worker.prepare(**plan)
        said = answer.get("say") or error(answer, one)
        t.check(f"{plan}: {said}", answer["op"] == "prepared" and said < worker.hello["tolerance"], answer)
    took = worker.ask(op="run", handle=one["handle"], n=2, mode="measure")
    t.check("the first one goes on", len(took.get("ns", [])) == 2, took)
    worker.end()


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
    done = t.tool("worker-test", WORKER, "--model", name, *(() if name == "tiny-wan" else SIZE))
    t.check(f"{name}: worker-test", done.code == 0, done)
not_applied()
streamed()
stuck()
faults_in_sessions()
late_faults_in_sessions()
faults_of_run_and_test()
t.finish()
