# SPDX-License-Identifier: MIT
# ctest:
"""The job of a foreign worker (docs/protocol.md): what the command line asks for, what the worker obeys, how exact it is."""
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
ALL = ["model", "revision", "pipeline", "width", "height", "frames", "steps", "guidance", "dtype", "batch", "text_tokens"]
OPTIONS = {"model": "org/net-1", "revision": "abc", "pipeline": "my.py:make", "size": "832x480", "frames": "81", "steps": "28", "guidance": "3.5",
           "dtype": "bfloat16", "batch": "2", "text-tokens": "37,17,37"}
JOB = {"model": "org/net-1", "revision": "abc", "pipeline": f"{os.getcwd()}/my.py:make", "width": 832, "height": 480, "frames": 81, "steps": 28, "guidance": 3.5,
       "dtype": "bfloat16", "batch": 2, "text_tokens": "17,37"}


def requests(t, op):
    """What the worker was told, by its own log."""
    lines = pathlib.Path(f"{t.environment['SCENARIO']}.log").read_text().splitlines()
    return [line for line in (json.loads(line) for line in lines if line.startswith("{")) if line["op"] == op]


def scenario(t, **fields):
    (t.path / "scenario.json.log").unlink(missing_ok=True)
    t.scenario(**{"ns": [2 * MS, MS], "cv": 0.01, "protocol": 2, **fields})


def words(options):
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def asked(t):
    """hello carries the job and the devices."""
    scenario(t, obeys=ALL)
    done = t.tune("--budget", "20s", "--json", "--devices", "3", *words(OPTIONS))
    hellos = requests(t, "hello")
    t.check("a job that is obeyed is tuned", done.code == 0, done)
    t.check("each hello has the whole job and the devices",
            hellos and all(h["job"] == JOB and h["devices"] == 3 and h["protocol"] == 2 for h in hellos), hellos)
    scenario(t)
    done = t.tune("--budget", "20s", "--json")
    t.check("no option, no field", done.code == 0 and all(h["job"] == {} for h in requests(t, "hello")), requests(t, "hello"))
    scenario(t, obeys=["width", "height"])
    done = t.tune("--budget", "40s", "--json", "--size", "64,32x16")
    sizes = {(h["job"]["width"], h["job"]["height"]) for h in requests(t, "hello")}
    t.check("several sizes share the budget", done.code == 0 and sizes == {(64, 64), (32, 16)}, sizes)


def refused(t):
    """An option that the worker does not obey."""
    for option, field in (("model", "model"), ("revision", "revision"), ("pipeline", "pipeline"), ("size", "width"), ("frames", "frames"), ("steps", "steps"),
                          ("guidance", "guidance"), ("dtype", "dtype"), ("batch", "batch"), ("text-tokens", "text_tokens")):
        scenario(t, obeys=[name for name in ALL if name != field])
        done = t.tool("run", "--worker", t.worker, f"--{option}", OPTIONS[option])
        t.exits(f"--{option} is refused", done, 2, f"--{option} has no effect: the worker planted decides by itself on {field}; it obeys --")
    scenario(t, protocol=1, obeys=ALL)
    t.exits("a worker of version 1 obeys nothing", t.tool("run", "--worker", t.worker, "--steps", "4"), 2,
            "--steps has no effect: the worker planted decides by itself on steps; it obeys no such option")
    for name, value, why in (("obeys", "all", "'obeys' is not a list of names"), ("obeys", [1], "'obeys' is not a list of names"),
                             ("dtype", "int4", "'dtype' is neither float32, bfloat16 nor float16"), ("dtype", 4, "'dtype' is neither"),
                             ("tolerance", 0, "'tolerance' is not a number above 0 and up to 1"), ("tolerance", "x", "'tolerance'"),
                             ("tolerance", 2, "'tolerance'"), ("least_fault", 0, "'least_fault' is not a number above 0"),
                             ("least_fault", "x", "'least_fault'"), ("reference", "x", "'reference' is neither float32 nor same")):
        scenario(t, **{name: value})
        t.exits(f"hello with {name} {value!r}", t.tool("run", "--worker", t.worker), 2, f"the worker's hello: {why}")
    scenario(t, dtype="bfloat16", reference="float32")
    t.exits("a reference that cannot be made", t.tool("run", "--worker", t.worker), 2, "'reference' is float32, which needs dtype in 'obeys'")
    scenario(t, faults=[{"do": "infeasible", "at": "hello", "say": "diffusers is not installed: pip install diffusers"}])
    t.exits("a job that the worker cannot do", t.tool("run", "--worker", t.worker), 2, "dittune: diffusers is not installed: pip install diffusers")
    scenario(t, faults=[{"do": "infeasible", "at": "ready", "say": "no weights"}])
    t.exits("the same after hello", t.tool("run", "--worker", t.worker), 2, "dittune: no weights")


def exact(t):
    """The error that is still right: --max-error, else the worker's, else by its data type."""
    wrong = [{"do": "wrong", "at": "prepare", "when": {"plan": 1}, "size": 0.01}]  # 0.01 / sqrt(16) = 2.5e-3
    for what, fields, options, right in (
            ("float32", {}, [], False), ("bfloat16", {"dtype": "bfloat16"}, [], True), ("float16", {"dtype": "float16"}, [], True),
            ("a tolerance of its own", {"tolerance": 3e-3}, [], True), ("a smaller one", {"dtype": "bfloat16", "tolerance": 2e-3}, [], False),
            ("--max-error", {"dtype": "bfloat16"}, ["--max-error", "0.002"], False), ("a large --max-error", {}, ["--max-error", "0.003"], True),
            ("version 1", {"protocol": 1, "dtype": "bfloat16"}, [], False)):
        scenario(t, faults=wrong, **fields)
        done = t.tune("--budget", "20s", "--json", *options)
        outcome = {trial["plan"]["plan"]: trial["outcome"] for trial in done.json["trials"]}
        t.check(f"{what}: an error of 2.5e-3 is {'right' if right else 'wrong'}",
                done.code == 0 and outcome[1] == ("ok" if right else "wrong answer"), done)
    for least, blind in ((0.05, True), (0.07, False)):
        scenario(t, protocol=2, dtype="bfloat16", tolerance=0.02, least_fault=least)
        note = "in bfloat16 verification cannot tell a small fault from rounding: right plans may differ by 0.02, and the smallest of the planted faults by 0.05"
        for words in (("run",), ("tune", "--budget", "20s")):
            done = t.tool(*words, "--worker", t.worker)
            t.check(f"a smallest fault of {least} beside 0.02 is {'not ' * (not blind)}said by {words[0]}",
                    done.code == 0 and (note in " ".join(done.out.split())) == blind, done)
    scenario(t, workload="halved", dtype="bfloat16", reference="float32", obeys=["dtype"])
    done = t.tune("--budget", "20s", "--json")
    types = [h["job"].get("dtype") for h in requests(t, "hello")]
    t.check("a reference in float32 is computed in a process of its own", done.code == 0 and types.count("float32") == 1, types)
    done = t.tool("lookup", "--worker", t.worker, "--json")
    t.check("the entry knows the data type and is found again",
            done.code == 0 and done.json["tier"] == "exact" and done.json["entry"]["fingerprint"]["hard"]["dtype"] == "bfloat16", done)


def keyed(t):
    """The job as the worker understood it is the key, for tune, lookup and check."""
    told = {"weights": "random", "steps": 28, "model": "org/net", "guidance": 3.5, "width": 64, "height": 32}
    scenario(t, obeys=["steps"], job=told)
    done = t.tune("--budget", "20s", "--json", "--steps", "28", "--db", t.path / "jobs")
    found = t.tool("lookup", "--worker", t.worker, "--json", "--db", t.path / "jobs", "--steps", "28")
    t.check("the printed look-up line has its options", " --steps 28 --devices" in t.tune("--budget", "20s", "--steps", "28", "--db", t.path / "jobs").out)
    t.check("the entry has the job", done.code == 0 and found.code == 0 and found.json["tier"] == "exact"
            and found.json["entry"]["key"]["job"] == told, found)
    scenario(t, obeys=["steps"], job=told)
    done = t.tool("check", "--worker", t.worker, "--db", t.path / "jobs", "--budget", "60s", "--json")
    t.check("check starts the worker with the entry's job", done.json["entries"][0]["verdict"] not in ("not checked", "unsupported") and requests(t, "hello")
            and all(h["job"] == {k: v for k, v in told.items() if k != "weights"} for h in requests(t, "hello")), done)
    scenario(t, obeys=["steps"], job={**told, "steps": 4})
    done = t.tool("lookup", "--worker", t.worker, "--json", "--db", t.path / "jobs", "--steps", "4")
    t.exits("another job is another entry", done, 10)
    scenario(t, job={str(i): 1 for i in range(24)})
    t.check("a job of 24 fields", t.tool("run", "--worker", t.worker).code == 0)
    for bad in ([1], {"a": []}, {"a": "x" * 4001}, {str(i): 1 for i in range(25)}):
        scenario(t, job=bad)
        t.exits(f"a hello with the job {str(bad)[:20]}", t.tool("run", "--worker", t.worker), 2, "the worker's hello: 'job' is not an object")


def arguments(t):
    """--worker PROGRAM -- ARGS"""
    script = t.write("worker.sh", f'#!/bin/sh\necho "$@" >> {t.path}/args\nexec "{t.worker}"\n')
    script.chmod(0o755)
    scenario(t)
    done = t.tool("run", "--json", "--worker", script, "--", "--a b", "-c", "--", "$HOME")
    t.check("the words after -- are the worker's", done.code == 0 and set((t.path / "args").read_text().splitlines()) == {"--a b -c -- $HOME"}, done)
    (t.path / "args").unlink()
    done = t.tool("worker-test", script, "--", "x")
    t.check("also of worker-test", done.code == 0 and set((t.path / "args").read_text().splitlines()) == {"x"}, done)
    scenario(t, obeys=["steps", "model"], job={"steps": 28, "model": "m"})
    done = t.tool("worker-test", t.worker)
    t.check("worker-test: a complete job", done.code == 0 and re.search(r"^ok +job ", done.out, re.M), done)
    scenario(t, obeys=["steps", "model"], job={"steps": 28})
    done = t.tool("worker-test", t.worker)
    t.check("an incomplete one", done.code == 1 and "it obeys model, but hello's job lacks it" in done.out, done)
    done = t.tool("machine", "--json", "--worker", script, "--", "y")
    t.check("and of machine", done.code == 0 and "y" in (t.path / "args").read_text().splitlines(), done)


t = Dittune()
asked(t)
refused(t)
exact(t)
keyed(t)
arguments(t)
t.finish()
