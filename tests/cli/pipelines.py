# SPDX-License-Identifier: MIT
# ctest:
"""Any pipeline of an engine: entries that differ in what tells two programs apart live side by side, and none answers for another."""
import json
import os
import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
# A worker of the program that is installed now: it refuses a job that has another value than its own, as the workers of engines do.
STRICT = """#!/usr/bin/env python3
import json, os, subprocess, sys, threading
own = json.load(open({own!r}))
hello = sys.stdin.buffer.readline()
asked = json.loads(hello)["job"]
for name, value in asked.items():
    if value != own.get(name, value if name == "pipeline" else None):
        print(json.dumps(dict(op="failed", kind="infeasible", say=f"{{name}} is {{own.get(name)}} here, not {{value}}")), flush=True)
        sys.exit(0)
scenario = json.load(open(os.environ["SCENARIO"]))
scenario["job"] = {{**own, **asked}}
path = f"{{os.environ['SCENARIO']}}.{{os.getpid()}}"
json.dump(scenario, open(path, "w"))
worker = subprocess.Popen([{worker!r}], stdin=subprocess.PIPE, env={{**os.environ, "SCENARIO": path}})
def pass_on():
    worker.stdin.write(hello)
    worker.stdin.flush()
    for line in sys.stdin.buffer:
        worker.stdin.write(line)
        worker.stdin.flush()
    worker.stdin.close()
threading.Thread(target=pass_on, daemon=True).start()
os._exit(worker.wait())
"""

t = Dittune()
BIN = t.path / "bin"
BIN.mkdir()
t.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
OWN = t.path / "own.json"
strict = BIN / "dittune-worker-mine"
strict.write_text(STRICT.format(own=str(OWN), worker=t.worker))
strict.chmod(0o755)
MINE, OTHER = (f"{os.getcwd()}/{name}:make" for name in ("my.py", "other.py"))  # as the key has them
BASE = {"pipeline": MINE, "pipeline_class": "FluxPipeline", "networks": "5f1e", "engine_version": "1.0", "width": 64, "height": 32,
        "steps": 5}
# What differs, and the option that chooses between the two.
PAIRS = (("engine_version", "1.1", "engine-version"), ("pipeline_class", "FluxKontextPipeline", "pipeline-class"), ("networks", "aa07", "networks"),
         ("adapters", "style 0.8 fused, hand 1", "adapters"), ("requests", "64x32 0.7, 32x32 0.3", "request-mix"))


def install(**job):
    OWN.write_text(json.dumps({**BASE, **job}))


def plant(**fields):
    t.scenario(**{"ns": [2 * MS, MS], "cv": 0.01, "protocol": 2, "engine": "mine", "obeys": ["pipeline", "width", "height", "steps"], **fields})


def tune(*words, **job):
    install(**job)
    plant()
    return t.tool("--engine", "mine", "--pipeline", "my.py:make", "--budget", "20s", *words)


def side_by_side(name, other, option):
    """Two entries that differ in one field."""
    db = ("--db", t.path / name)
    plain, changed = tune(*db), tune(*db, **{name: other})
    lines = [re.search("Look it up: dittune (.*)", done.out) for done in (plain, changed)]
    t.check(f"{name}: both are tuned", plain.code == 0 and changed.code == 0 and all(lines), f"{plain}{changed}")
    for line, value in zip(lines, (BASE.get(name), other)):
        found = t.tool(*shlex.split(line[1]), "--json") if line and value else None
        if value:
            t.check(f"{name}: the printed look-up finds its own entry, of {value}", found and found.code == 0
                    and found.json["tier"] == "exact" and found.json["entry"]["key"]["job"].get(name) == value, found)
    quoted = f"'{other}'" if " " in other else other
    listed = (BASE.get(name, "none"), quoted)
    asked = ("lookup", "--engine", "mine", "--pipeline", "my.py:make", *db)
    done = t.tool(*asked)
    t.check(f"{name}: a look-up without it lists the values", done.code == 2 and
            any(f"were tuned with {option} {', '.join(order)}: choose one (--{option})" in done.err for order in (listed, listed[::-1])), done)
    done = t.tool(*asked, f"--{option}", other, "--json")
    t.check(f"{name}: with it, the entry", done.code == 0 and done.json["entry"]["key"]["job"][name] == other, done)
    t.exits(f"{name}: of another value there is none", t.tool(*asked, f"--{option}", "else"), 10, f"none was tuned with {option} else, only with")
    shown = t.tool("db", "show", "--json", *db).json["entries"]
    t.check(f"{name}: the store has both", len(shown) == 2 and len({entry["id"] for entry in shown}) == 2, shown)
    done = t.tool("check", "--engine", "mine", "--budget", "60s", "--json", *db)
    verdicts = {entry["key"]["job"].get(name): (entry["verdict"], entry["reason"]) for entry in done.json["entries"]}
    was = BASE.get(name)
    here, away = verdicts.get(other, ("", "")), verdicts.get(was, ("", ""))
    t.check(f"{name}: check measures the one that is installed", here[0] == "wins", done)
    says = f"{name} is {other} here, not {was}" if was else f"{name} none instead of '{other}'"
    t.check(f"{name}: and says why it cannot measure the other", away[0] in ("not checked", "unsupported") and says in (away[1] or ""), done)


for pair in PAIRS:
    side_by_side(*pair)

# ---- the pipeline itself
db = ("--db", t.path / "names")
tune(*db)
install(pipeline=OTHER)
plant()
done = t.tool("--engine", "mine", "--pipeline", "other.py:make", "--budget", "20s", *db)
t.exits("two pipelines of one engine", t.tool("lookup", "--engine", "mine", *db), 2, f"were tuned with pipeline {shlex.quote(MINE)}, {shlex.quote(OTHER)}: choose one (--pipeline)")
done = t.tool("db", "show", "--pipeline", "my.py:make", "--json", *db)
t.check("db shows the entries of a pipeline", done.code == 0 and [entry["key"]["job"]["pipeline"] for entry in done.json["entries"]] == [MINE], done)
t.exits("and says when there are none", t.tool("db", "show", "--pipeline", "x.py:y", *db), 2, f"no entry was tuned for {os.getcwd()}/x.py:y")
done = t.tool("check", "--engine", "mine", "--pipeline", "other.py:make", "--budget", "60s", "--json", *db)
t.check("check takes those of a pipeline", done.code == 0 and [entry["key"]["job"]["pipeline"] for entry in done.json["entries"]] == [OTHER], done)
t.exits("or has nothing to do", t.tool("check", "--engine", "mine", "--pipeline", "x.py:y", *db), 5, f"tuned on mine for {os.getcwd()}/x.py:y")
folder = t.path / "folder"
folder.mkdir()
for typed in (f"{folder}/my.py:make", f"{folder}/../folder/./my.py:make"):
    t.exits(f"the file of that name in another folder is another program ({typed})", t.tool("lookup", "--engine", "mine", "--pipeline", typed, *db), 10,
            f"none was tuned with pipeline {folder}/my.py:make")
found = t.tool("lookup", "--engine", "mine", "--pipeline", "./my.py:make", "--json", *db)
t.check("and the same file by another name is the same", found.code == 0 and found.json["entry"]["key"]["job"]["pipeline"] == MINE, found)
done = t.tool("history", "--filter", "other.py:make", *db)
t.check("history finds it by its title", done.code == 0 and "other.py:make" in done.out and "my.py:make" not in done.out, done)
for words in (("tune",), ("run",), ("space",), ("noise",), ("lookup",), ("check",), ("explain", "ranks=1")):
    t.exits(f"{words[0]}: a pipeline needs an engine", t.tool(*words, "--pipeline", "my.py:make"), 2,
            f"--pipeline {MINE} is for the worker of an engine: add --engine diffusers, or --worker PROGRAM")
plant(obeys=["steps"])
t.exits("a worker that takes no pipeline", t.tool("run", "--worker", t.worker, "--pipeline", "my.py:make"), 2,
        "--pipeline has no effect: the worker planted decides by itself on pipeline; it obeys --steps")
t.exits("what a worker finds by itself is asked of look-ups alone", t.tool("run", "--worker", t.worker, "--adapters", "x"), 2,
        "--adapters is not an option of 'dittune run' (it belongs to: lookup)")

# ---- the calls that were recorded
db = ("--db", t.path / "calls")
install()
plant(versions={"calls": "77a0", "torch": "2.15"})
done = t.tool("--engine", "mine", "--pipeline", "my.py:make", "--budget", "20s", *db)
asked = ("lookup", "--worker", strict, "--pipeline", "my.py:make", "--json", *db)
found = t.tool(*asked)
t.check("the same calls", done.code == 0 and found.json["tier"] == "exact" and found.json["stale_reasons"] == [], found)
plant(versions={"calls": "93b1", "torch": "2.15"})
found = t.tool(*asked)
t.check("other calls of the same pipeline: stale, and why", found.code == 0 and found.json["tier"] == "exact" and found.json["stale"]
        and found.json["stale_reasons"] == ["the recorded calls of the pipeline differ from those it was tuned for"], found)

install()
plant(log=False)
done = t.tool("worker-test", "--engine", "mine", "--pipeline", "my.py:make", "--no-wait")
t.check("worker-test hands it to the worker", done.code == 0 and re.search("^ok +job ", done.out, re.M), done)
t.none_left()
t.finish()
