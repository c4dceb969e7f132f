# SPDX-License-Identifier: MIT
# ctest:
"""Claims of a session about the store are true: "Stored." is printed only after it was, and a session that is killed leaves
its plan as provisional, in the store and for `db rebuild`."""
import shutil
import signal
import struct

from lib_check import CheckTest
from dittune_test import BUILD

FASTER = [1000000, 900000, 800000, 700000]  # plan 3 is, over the default, plan 0
HANG = {"do": "hang_real", "at": "prepare"}

t = CheckTest()
tune = ["--worker", t.worker, "--devices", 1, "--quiet"]
(t.path / "shim.so").symlink_to(BUILD / "tests/db/faults/libfault_shim.so")


# ---- a full disk

def with_faults(what):
    """A session on a store of its own, where the n-th call and all that follow find no space."""
    shutil.rmtree(t.db, ignore_errors=True)
    (t.path / "clock").unlink(missing_ok=True)
    t.plant(FASTER)
    return t.tool(*tune, "--budget", "3s", "--search", "random", "--db", t.db,
                  env={"LD_PRELOAD": t.path / "shim.so", "FAULT": what, "FAULT_ROOT": t.db,
                       "FAULT_SHARED": t.path / "calls"})


def entries():
    done = t.tool("db", "show", "--json", "--db", t.db)
    return (done.json or {}).get("entries", [])


def a_full_disk():
    done = with_faults("0")
    t.exits("where there is room it is stored", done, 0, out="Stored. Look it up: dittune lookup")
    calls = struct.unpack("i", (t.path / "calls").read_bytes()[:4])[0]
    told = said = 0
    for n in sorted({1, calls // 4, calls // 2, 3 * calls // 4, *range(max(1, calls - 40), calls + 1)}):
        done = with_faults(f"{n} ENOSPC ever")
        decided = any(not entry["provisional"] for entry in entries())
        told += "tored." in done.out
        said += done.code == 74
        if not ((done.code == 74 and "tored." not in done.out and done.err)
                or (done.code == 0 and "Stored." in done.out and decided)):
            t.check(f"call {n} of {calls} on a full disk", False, done)
    t.check("on a full disk no result is wrongly reported as stored", said > 20, f"{said} errors, {told} stored")


# ---- a killed session

def killed(name, faults, *options, budget="20m", store="db"):
    """A session that is killed when the worker has stopped at a fault: the virtual time stands still there."""
    (t.path / "clock").unlink(missing_ok=True)
    t.plant(FASTER, faults=faults)
    log = t.path / "scenario.json.log"
    session = t.start(*tune, "--budget", budget, "--search", "exhaustive", "--db", t.path / store, *options)
    t.until(lambda: log.exists() and '"op":"fault"' in log.read_text() or session.poll() is not None)
    running = session.poll() is None
    session.send_signal(signal.SIGKILL)
    session.wait()
    t.check(name, running, t.read("err"))
    t.none_left("nothing of it is left")


def look(*options, store="db"):
    return t.tool("lookup", "--worker", t.worker, "--devices", 1, "--db", t.path / store, *options)


def a_killed_session():
    killed("a session is killed amid its search", [{**HANG, "when": {"plan": 3}}])
    done = look("--json")
    answer = done.json or {}
    t.check("its results are stored as provisional", done.code == 0 and answer["tier"] == "exact"
            and answer["provisional"] and answer["verdict"] == "provisional" and answer["plan"]["plan"] == 0, done)
    top = [row["plan"]["plan"] for row in answer["entry"]["top"]]
    t.check("with a plan that was better in a trial", len(top) > 1 and top[0] == 0 and top[1] in (1, 2), top)
    t.exits("the look-up reports it as provisional", look(), 0, out=["provisional", "decided nothing"], err=["provisional"])
    t.exits("it is not decided", look("--require", "decided"), 10, err=["provisional, not decided", "--require exact"])
    killed("one is killed while its first trials run", [{**HANG, "when": {"plan": 1}}], store="early")
    t.exits("the default was stored by then", look("--require", "exact", store="early"), 0, out="plan=0")


def rebuilt():
    """The store is lost, the journals are not."""
    before = entries()[0]
    (t.db / "best.json").unlink()
    for old in t.db.glob("best.json.*"):
        old.unlink()
    done = t.tool("db", "rebuild", "--db", t.db)
    t.exits("rebuild finds the plan of a session that was killed", done, 0,
            out=["its session did not end", "best.json has 1 entry now"])
    after = (entries() or [{}])[0]
    t.check("the same entry, provisional", after.get("provisional") is True
            and all(after[name] == before[name] for name in ("id", "key", "plan", "figures", "default", "top", "space")),
            (before, after))
    journal = next((t.db / "runs").glob("*.jsonl"))
    lines = journal.read_text().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if '"kind":"trial"' in line)
    cut = t.path / "cut" / "runs"
    cut.mkdir(parents=True)
    (cut / journal.name).write_text("".join(lines[:first + 1]) + '\n{"half')
    t.exits("one trial is enough, and the half of a record no matter", t.tool("db", "rebuild", "--db", cut.parent), 0,
            out=["its session did not end", "1 damaged line", "best.json has 1 entry now"])
    (cut / journal.name).write_text("".join(lines[:first]))
    t.exits("no trial is too little", t.tool("db", "rebuild", "--db", cut.parent), 7, err="holds a result")


def decided_stays():
    t.plant(FASTER)
    t.exits("a session that ends", t.tool(*tune, "--budget", "6s", "--db", t.path / "kept"), 0)
    before = look("--json", store="kept").json
    killed("another one is killed", [{**HANG, "when": {"plan": 3}}], store="kept")
    after = look("--json", store="kept").json
    t.check("a decided entry is not replaced", not before["provisional"] and after["entry"] == before["entry"], after)
    t.plant(FASTER)
    (t.path / "clock").unlink(missing_ok=True)
    t.exits("the session is run again", t.tool(*tune, "--budget", "6s", "--db", t.db), 0)
    t.exits("its end replaces what was provisional", look("--require", "decided"), 0, out="plan=3")


a_full_disk()
shutil.rmtree(t.db, ignore_errors=True)
a_killed_session()
rebuilt()
decided_stays()
t.finish()
