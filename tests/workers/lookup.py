# SPDX-License-Identifier: MIT
# ctest:
"""dittune.lookup and dittune.tune from Python: what libdittune finds in this process is what `dittune lookup --json` prints, for the answer
and for an engine's call; a refusal is a sentence with the program's exit code; and an import is light."""
import json
import os
import pathlib
import subprocess
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune, skip

if b"san" in subprocess.run(["readelf", "-d", BUILD / "libdittune.so"], check=False, capture_output=True).stdout:
    skip("libdittune is built with a sanitizer, which Python would have to be started with")
os.environ["LIBDITTUNE"] = str(BUILD / "libdittune.so")
sys.path.insert(0, str(SOURCE / "workers"))
import dittune

JOB = {"model": "mine/one", "width": 64, "height": 32, "steps": 4, "batch": 1}
t = Dittune()
os.environ.update(t.environment)
warnings.simplefilter("ignore")


def tune(store, **fields):
    t.scenario(**{"ns": [1000000, 900000], "cv": 0.01, "protocol": 2, **fields})
    done = t.tune("--budget", "20s", "--json", "--db", t.path / store)
    t.check("a session stores a plan", done.code == 0, done)
    return done.json["best"]["plan"]


def refused(name, code, words, ask=dittune.lookup, kind=dittune.Failed, **options):
    try:
        t.check(name, False, ask(**options))
    except dittune.Failed as error:
        t.check(f"{name}: {error}", error.code == code and words in str(error) and isinstance(error, kind), error)


t.write("machine.json", t.tool("machine", "--json").json)
HERE = {"machine": t.path / "machine.json"}
plan = tune("store", engine="sglang", job=JOB, obeys=list(JOB))
asked = {"store": t.path / "store", "engine": "sglang", "model": "mine/one", "require": "none", **HERE}
found = dittune.lookup(**asked)
told = t.tool("lookup", "--engine", "sglang", "--model", "mine/one", "--require", "none", "--db", t.path / "store", "--json").json
changing = ("age_seconds", "key", "stale", "stale_reasons", "warning", "tier", "reason")  # a machine that was described without its worker knows less
t.check("an answer from Python is that of the command line", found.keys() == told.keys() and all(
    found["answer"][name] == told["answer"][name] for name in told["answer"] if name not in changing) and found["answer"]["plan"] == plan, (found, told))
t.check("so is the engine's call", all(found[name] == told[name] for name in found if name != "answer"), (found, told))

refused("another model is not found", 10, "only with mine/one", kind=dittune.NotFound, **{**asked, "model": "mine/two", "require": "proxy"})
refused("a wrong value is dittune's sentence", 2, "steps", **{**asked, "steps": "many"})
refused("an unknown name, too", 2, "colour", **{**asked, "colour": "red"})
refused("a weak answer is refused", 10, "no plan of tier decided", kind=dittune.NotFound, **{**asked, "devices": 64, "require": "decided"})
refused("a tier that is none", 2, "require='sure' is not a tier", **{**asked, "require": "sure"})
refused("a machine's file that is not there", 74, "nowhere", **{**asked, "machine": t.path / "nowhere"})
t.write("broken/best.json", "{") if (t.path / "broken").mkdir() is None else None
refused("a damaged store", 7, "best.json", **{**asked, "store": t.path / "broken"})

# Jobs: what a look-up may choose among.
tune("store", engine="sglang", job={**JOB, "steps": 50}, obeys=list(JOB))
refused("two jobs could answer", 2, "--steps", **asked)
from dittune import library

with library.question({"engine": "sglang", "model": "mine/one"}, t.path / "store", HERE["machine"]) as (db, query):
    jobs = library.jobs(db, query)
t.check("both are listed", sorted(job["steps"] for job in jobs) == [4, 50] and all(job.keys() == JOB.keys() for job in jobs), jobs)
for job in jobs:
    t.check(f"one is chosen by its fields, of {job['steps']} steps", dittune.lookup(**{**asked, **job})["answer"]["entry"]["key"]["job"]["steps"] == job["steps"])

# A session from Python: make() is named by its file.
program = t.write("dittune", f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {t.path}/words\nexit $CODE\n")
program.chmod(0o755)
os.environ["PATH"] = f"{t.path}:{os.environ['PATH']}"
t.write("mine.py", "def make():\n    pass\n")
sys.path.insert(0, str(t.path))
import mine

os.environ["CODE"] = "3"
refused("a session that fails has the program's code", 3, "exit code 3", ask=lambda **options: dittune.tune(mine.make, budget="9m", **options), devices=2, lossy=True, arguments=["--cfg"])
words = t.read("words").split("\n")[:-1]
t.check("its command line", words == ["tune", "--engine", "diffusers", "--pipeline", f"{t.path}/mine.py:make", "--budget", "9m", "--devices", "2", "--lossy", "--", "--cfg"], words)
os.environ["CODE"] = "130"
try:
    dittune.tune(mine.make)
    t.check("a session that was interrupted interrupts", False)
except KeyboardInterrupt:
    t.check("a session that was interrupted interrupts", True)
program.unlink()
os.environ["PATH"] = str(t.path)
refused("no program", 1, "the program dittune cannot be run", ask=lambda: dittune.tune(mine.make))
refused("a function without a name cannot be imported", 2, "under a name of its own", ask=lambda: dittune.tune(lambda: None))

light = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE / 'workers')!r}); before = set(sys.modules); import dittune; "
                        "print(len(set(sys.modules) - before), 'torch' in sys.modules, 'ctypes' in sys.modules, 'subprocess' in sys.modules)"],
                       capture_output=True, text=True, check=False).stdout.split()
t.check(f"an import brings {light[0]} modules, and none of the heavy ones", int(light[0]) < 8 and light[1:] == ["False"] * 3, light)
t.finish()
