# SPDX-License-Identifier: MIT
# ctest: dose
"""SIGKILL at random times of sessions, some of them several times in a row, then `tune --resume` to the end: what was measured is not
measured again, no plan slower than the default is stored, the store is sound, nothing is left, and a session of planted times finds
what the undisturbed one finds. Sessions of planted times die within a random call on a file of the store (tests/db/faults/shim.h),
those of the built-in network when their journal has a random size. Prints one line of figures."""
import json
import pathlib
import random
import shutil
import signal
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, SOURCE, Dittune, skip

KILLS, REAL = (200, 36) if FULL else (12, 1)
MS = 1_000_000
NS = [MS, 1.1 * MS, 0.8 * MS, 1.2 * MS, 0.95 * MS, 1.3 * MS, 1.05 * MS, 0.9 * MS]  # plan 0 is the default, plan 2 the fastest
PLANTED = dict(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS)
# name, fields of the scenario
SCENARIOS = (("all plans run", {}),
             ("two at a time", {"room": 2}),
             ("one crashes, one hangs", {"faults": [{"when": {"plan": 4}, "at": "prepare", "do": "exit"},
                                                    {"when": {"plan": 5}, "at": "run", "do": "hang"}]}),
             ("the default is the fastest", {"ns": [0.7 * MS, *NS[1:]]}))
MODES = ("before", "after", "first", "half", "last")
OPTIONS = ("--budget", "120s", "--json", "--search", "exhaustive")
SMALL = ("--model", SOURCE / "tests/cli/small.json", "--size", "32", "--backend", "cpu", "--devices", "2", "--budget", "15s", "--json")
SHIM = BUILD / "tests/db/faults/libfault_shim.so"

if not SHIM.exists():
    skip("the shim before libc is not built under a sanitizer")
t = Dittune()
DB = t.path / "db"
(t.path / "shim.so").symlink_to(SHIM)  # LD_PRELOAD ends a name at a blank
figures = {"kills": 0, "begun twice": 0, "sets again": 0, "before a journal": 0}


def records(path):
    """The whole ones: a session that is killed may leave a part of one."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def journals():
    """Records of each, the oldest first."""
    return sorted((found for path in DB.glob("runs/*.jsonl") if (found := records(path))), key=lambda found: found[0]["t_wall_ns"])


def plan_of(record):
    return json.dumps(record["plan"], sort_keys=True)


def measured(found):
    """Trials that are known, and plans that began, of a session's records; those before "resumed" ends are copies."""
    return [plan_of(record) for record in found if record["kind"] == "trial" and record["outcome"] != "interrupted"], \
        [plan_of(record) for record in found if record["kind"] == "begin"]


def sets_of(found, name):
    return [len(record["sets"]) for record in found if record["kind"] == "sets" and record["name"] == name]


def looked_up(words, slower):
    """What is stored now, if anything is, is not slower than the default."""
    done = t.tool("lookup", *words, "--json", "--require", "none")
    answer = done.json or {}
    stored = answer.get("tier") == "exact"
    return done.code == 0 and not (stored and slower(answer))


def judge_chain(name, chain):
    """At most the plan that ran when a session was killed is measured again, at most the set that was being made."""
    good = True
    kinds = lambda found: [record["kind"] for record in found]
    chain = [found for found in chain if "resumed" not in kinds(found) or "taken" in kinds(found)]  # others died while they took over: none goes on with them
    for old, new in zip(chain, chain[1:]):
        if not any(record["kind"] == "resumed" for record in new):
            continue  # nothing had been measured
        had, began_before = measured(old)
        kept, began = measured(new)
        again = [plan for plan in began if plan in had and json.loads(plan) not in retried(old)]
        figures["begun twice"] += sum(plan in began_before for plan in began)
        if kept[:len(had)] != had or again:
            good = t.check(f"{name}: no trial again", False, (had, kept, again))
        for comparison in ("shoot-out", "final comparison"):
            was, now = sets_of(old, comparison), sets_of(new, comparison)
            first = (was[-1:] or [1])[0]
            if now and now != list(range(first, now[-1] + 1)):
                figures["sets again"] += 1
                good = t.check(f"{name}: no set of the {comparison} again", False, (was, now))
    return good


def retried(found):
    """Plans whose failure may be temporary: they are tried again in any session."""
    return [record["plan"] for record in found if record["kind"] == "trial" and record["outcome"] in ("crashed", "hung")]


def sound(name):
    """The store and what is left."""
    done = t.tool("db", "verify")
    return (done.code == 0 or t.check(f"{name}: the store is sound", False, done)) and \
        (not t.until_none() or t.check(f"{name}: nothing is left", False, t.until_none()))


def until_none():
    left = lambda: t.processes() + [path for path in t.path.glob("dittune-*-??????") if path.is_dir()]
    t.until(lambda: not left(), 60)
    return left()


t.until_none = until_none


def shimmed(what):
    return {"LD_PRELOAD": t.path / "shim.so", "FAULT": what, "FAULT_ROOT": DB}


def calls():
    """How many calls on files of the store the undisturbed session makes, and what it ends with."""
    shutil.rmtree(DB, ignore_errors=True)
    counters = t.path / "calls"
    counters.unlink(missing_ok=True)
    done = t.tune(*OPTIONS, env={**shimmed("0"), "FAULT_SHARED": counters})
    return struct.unpack("i", counters.read_bytes()[:4])[0], done


def virtual(dice, number, undisturbed):
    """One session: killed once or more, resumed to its end."""
    name, fields = SCENARIOS[number % len(SCENARIOS)]
    t.scenario(**{**PLANTED, **fields})
    if name not in undisturbed:
        undisturbed[name] = calls()
    most, whole = undisturbed[name]
    shutil.rmtree(DB, ignore_errors=True)
    times = {**PLANTED, **fields}["ns"]
    slower = lambda answer: times[answer["plan"]["plan"]] > times[0]
    name = f"{number}, {name}"
    for kill in range(dice.choice((1, 1, 1, 2, 3))):
        what = f"{dice.randint(1, most)} {dice.choice(MODES)}"
        name += f", {what}"
        done = t.tune(*OPTIONS, *(["--resume"] if kill > 0 else []), env=shimmed(what))
        figures["kills"] += done.code == -signal.SIGKILL
        figures["before a journal"] += not journals()
        t.check(f"{name}: killed, or at its end", done.code in (-signal.SIGKILL, 0), done) if done.code not in (-9, 0) else None
        if not looked_up(("--worker", t.worker), slower):
            t.check(f"{name}: the answer between is not slower than the default", False, t.tool("lookup", "--worker", t.worker))
    done = t.tune(*OPTIONS, "--resume")
    result, expected = done.json or {}, whole.json
    same = done.code == whole.code and result.get("verdict") == expected["verdict"] and result["best"]["plan"] == expected["best"]["plan"]
    if not same:
        t.check(f"{name}: the end of the undisturbed session", False, (done, whole))
    return same and judge_chain(name, journals()) and sound(name)


def real(dice, number):
    """A session of the built-in network, killed when its journal has a random size."""
    shutil.rmtree(DB, ignore_errors=True)
    name = f"real {number}"
    least = dice.randint(1, 60000)
    for resume in ([], ["--resume"])[:dice.choice((1, 2))]:
        session = t.start("tune", *SMALL, *resume, clock="real")
        size = lambda: sum(path.stat().st_size for path in DB.glob("runs/*.jsonl"))
        begun = size()
        t.until(lambda: session.poll() is not None or size() - begun >= least)
        session.kill()
        figures["kills"] += session.wait() == -signal.SIGKILL
    words = SMALL[:-3]  # without the budget and --json
    if not looked_up(words, lambda answer: False):
        t.check(f"{name}: an answer between", False, t.tool("lookup", *words))
    done = t.tool("tune", *SMALL, "--resume", clock="real")
    result = done.json or {}
    ok = done.code == 0 and result.get("best") is not None or done.code == 6  # a busy machine may have had no time for one plan
    if ok and result["gain"] is not None:
        ok = result["gain"]["ratio"] >= 1 or result["best"]["plan"] == result["default"]["plan"]
    if not ok:
        t.check(f"{name}: comes to its end", False, done)
    return ok and judge_chain(name, journals()) and sound(name)


dice, undisturbed = random.Random(19), {}
good = sum(virtual(dice, number, undisturbed) for number in range(KILLS))
t.check(f"{KILLS} sessions of planted times were killed and resumed", good == KILLS, good)
good = sum(real(dice, number) for number in range(REAL))
t.check(f"{REAL} sessions of the built-in network were killed and resumed", good == REAL, good)
t.none_left()
print("resume_killed:", ", ".join(f"{value} {name}" for name, value in figures.items()))
t.finish()
