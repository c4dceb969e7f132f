# SPDX-License-Identifier: MIT
# ctest: ranks full
"""A real engine from tune to check: the entry that `dittune --engine diffusers` stores is what the command line, Python and C
give as the engine's own call, and `dittune check` judges it. $DITTUNE_ENGINES names a virtual environment with the engine."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune, skip

PYTHON = pathlib.Path(os.environ.get("DITTUNE_ENGINES", BUILD / "engines")) / "bin/python"
if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import diffusers"], check=False, capture_output=True).returncode:
    skip("$DITTUNE_ENGINES names no virtual environment with diffusers; workers_engine_diffusers makes one")
sys.path.insert(0, str(SOURCE / "workers"))
import dittune

t = Dittune(clock="real")
WORKER = t.write("dittune-worker-diffusers", f"#!{PYTHON}\nimport sys\nsys.path.insert(0, '{SOURCE}/workers')\n"
                 "from dittune_workers.diffusers.worker import main\nmain()\n")
WORKER.chmod(0o755)
t.environment.update(PATH=f"{t.path}:{t.environment['PATH']}", DITTUNE_LOAD="none")
ASKED = ("--engine", "diffusers", "--model", "tiny-wan")
JOB = ("--size", "64x64", "--frames", 5, "--steps", 2)


def call(answer):
    return {name: answer[name] for name in ("argv", "kwargs", "environment")}


def tuned():
    done = t.tool("tune", *ASKED, *JOB, "--budget", "4m", "--json")
    best = (done.json or {}).get("best")  # null: the budget ended before any plan was measured
    t.check("tuned and stored", done.code in (0, 6) and best, done)
    return best["plan"] if best else t.finish()


def same_call(plan):
    found = t.tool("lookup", *ASKED, "--require", "none", "--json").json
    told = found["answer"]["plan"]
    t.check("look-up by model and engine alone", {name: told[name] for name in plan} == plan, (told, plan))
    own = ("--engine", "diffusers", "--model", SOURCE / "workers/dittune_workers/tiny/tiny-wan.json", *JOB[:4])
    by_plan = t.tool("lookup", *own, "--plan", " ".join(f"{name}={value}" for name, value in told.items()), "--json").json
    t.check("the call is that of the plan", call(by_plan) == call(found), (by_plan, found))
    os.environ.update(t.environment, LIBDITTUNE=str(BUILD / "libdittune.so"))
    described = t.write("machine.json", t.tool("machine", "--json").json)
    python = dittune.lookup(machine=described, engine="diffusers", model="tiny-wan", steps=2)
    t.check("the same from Python", call(python) == call(found), python)
    program = t.path / "lookup"
    done = t.run(os.environ.get("CC", "cc"), "-I", SOURCE / "db/api", SOURCE / "examples/lookup/lookup.c", "-o", program,
                 BUILD / "libdittune.so", f"-Wl,-rpath,{BUILD}", "-fsanitize=address,undefined")
    t.check("the example in C builds", done.code == 0, done)
    done = t.run(program, t.environment["DITTUNE_STORE"], t.path / "machine.json", "engine=diffusers", "model=tiny-wan")
    line = t.tool("lookup", *ASKED, "--format", "argv").out
    t.check("the same from C", done.code == 0 and line in done.out and "exact: " in done.out and "stale" not in done.out, done)


def checked():
    done = t.tool("check", "--engine", "diffusers", "--budget", "4m", "--json")
    verdict = done.json["entries"][0]["verdict"]
    t.check(f"checked: {verdict}", verdict in ("wins", "ties", "loses", "inconclusive"), done)


def pipelines():
    """Programs of the user's own: two transformers, an adapter, and a class that diffusers cannot split. Each is tuned, looked up without a worker by its file
    and by what tells it from the others, explained, and checked."""
    file, environment = SOURCE / "tests/workers/lib_pipelines.py", {"DITTUNE_STORE": str(t.path / "pipelines")}
    for name, kind, words in (("wan22", "WanPipeline", ("--", "--cfg")), ("flux_lora", "FluxPipeline", ()), ("sd3", "StableDiffusion3Pipeline", ("--", "--cfg"))):
        asked = ("--engine", "diffusers", "--pipeline", f"{file}:{name}")
        done = t.tool("tune", *asked, "--devices", 2, "--budget", "3m", "--json", *words, env=environment)
        t.check(f"{name}: tuned and stored", done.code in (0, 6) and (done.json or {}).get("best"), done)
        found = t.tool("lookup", "--engine", "diffusers", "--pipeline-class", kind, "--require", "none", "--json", env=environment)
        t.check(f"{name}: found by its class", found.code == 0 and found.json["answer"]["plan"] == done.json["best"]["plan"], found)
        by_file = t.tool("lookup", *asked, "--require", "none", env=environment)
        t.check(f"{name}: found by its file, with the engine's own call and no doubt of rules", by_file.code == 0 and "torchrun" in by_file.out and "not checked" not in by_file.out, by_file)
        t.exits(f"{name}: why", t.tool("why", env=environment), 0, kind)
        kinds = done.json["image"]["step_kinds"]
        says = " ".join(kind["say"] for kind in kinds)
        t.check(f"{name}: each kind of step: {kinds}", sum(kind["count"] for kind in kinds) == done.json["image"]["steps"]
                and ("transformer_2" in says) == (name == "wan22") and len(kinds) == 1 + (name == "wan22"), done.json["image"])
        page = t.tool("report", "-o", t.path / "page.html", env=environment)
        t.check(f"{name}: the report says them", page.code == 0 and all(kind["say"].split()[-1] in t.read("page.html") for kind in kinds), page)
        judged = t.tool("check", *asked, "--budget", "5m", "--json", *words, env=environment)
        verdict = (judged.json or {"entries": [{}]})["entries"][0].get("verdict")
        t.check(f"{name}: checked: {verdict}", verdict in ("wins", "ties", "loses", "inconclusive"), judged)
    unclear = t.tool("lookup", "--engine", "diffusers", "--require", "none", env=environment)
    t.check("three programs of one engine: a look-up asks which", unclear.code != 0 and "--pipeline" in unclear.err, unclear)


same_call(tuned())
checked()
pipelines()
t.finish()
