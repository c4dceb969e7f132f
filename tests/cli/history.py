# SPDX-License-Identifier: MIT
# ctest:
"""`history` on journals that another program wrote: planted steps, drifts, versions and plans, and what is a moment."""
import os
import time

from lib_history import BEGIN, DAY, journal, plant, read
from lib_check import CheckTest

HOUR = DAY // 24
t = CheckTest(DITTUNE_CLOCK_WALL=str(BEGIN + 59 * DAY + HOUR // 2))  # half an hour after the last moment of 60
SOFT = [[0, {"mpi": "4.1.4", "environment": {"OMP": "1"}}], [40, {"mpi": "5.0.1", "environment": {"OMP": "2"}}]]
WITH = "mpi 4.1.4 -> 5.0.1, OMP 1 -> 2 at the same time"
LINES = [{"steps": [[40, 1.031]], "cv": 0.01, "soft": SOFT}, {"drift": 1.3, "verdict": "ties"}, {"points": 5},
         {"everyone": [[20, 1.1]], "plans": [[0, {"ranks": 2}], [30, {"ranks": 4}]], "steps": [[30, 0.9]]},
         {"cv": 0.02, "engine": "xdit"}]


def history(*options):
    done = t.tool("history", "--json", *options)
    return done, t.entries(done, 0)


def files():
    return {path: path.read_bytes() for path in t.db.rglob("*") if path.is_file()}


def changes(entry, *names):
    return [tuple(change[name] for name in names) for change in entry["changes"]]


def nothing_there():
    t.exits("a missing store has no history", t.tool("history"), 0, out="no session and no check")
    t.check("a missing store is not created", not t.db.exists())
    table = t.tool("history", "--format", "csv")
    t.check("an empty table", table.code == 0 and table.out.count("\n") == 1, table)


def moments():
    done, entries = history()
    t.check("a moment for each session and check",
            done.code == 0 and [len(entry["moments"]) for entry in entries] == [60, 60, 5, 60, 60], done)
    wanted = [("check" if i else "session", BEGIN + i * DAY) for i in range(60)]
    for entry in entries:
        found = [(moment["kind"], moment["t_wall_ns"]) for moment in entry["moments"]]
        t.check(f"in order: {entry['title']}", found == wanted[:len(found)], found)
    t.check("five moments are too few", [entry["enough"] for entry in entries[:3]] == [True, True, False])
    return entries


def what_changed(step, drift, _, everyone, noise):
    t.check("a step, its place, what came with it", changes(step, "series", "moment", "with")
            == [("tuned time", 40, WITH), ("gain", 40, WITH)], step["changes"])
    t.check("the step has its size", abs(step["changes"][0]["ratio"] - 1.031) < 0.008, step["changes"])
    found = [(row["series"], row["from"], row["to"]) for row in drift["drifts"]]
    t.check("a drift is no step",
            drift["changes"] == [] and found == [("tuned time", 0, 59), ("gain", 0, 59)], drift["drifts"])
    t.check("the drift has its size", abs(drift["drifts"][0]["ratio"] - 1.3) < 0.01, drift["drifts"])
    t.check("a change of default and plan alike is not the plan's", changes(everyone, "series", "moment")
            == [("tuned time", 20), ("tuned time", 30), ("default's time", 20), ("gain", 30)], everyone["changes"])
    t.check("a change of plan is reported", everyone["changes"][3]["with"] == "plan ranks 2 -> 4 at the same time")
    t.check("noise is no change", noise["changes"] == [] and noise["drifts"] == [], noise)


WORDS = ["tuned time rose 3.", "on 2026-10-11, between the check of 2026-10-10 00:00 and the check of 2026-10-11 00:00",
         "; " + WITH, "tuned time drifts by +0.44 % a moment, +", "no step and no drift", "too few moments", "| ^\n"]


def filters():
    _, entries = history("--filter", "W, 3 DEV")
    t.check("--filter selects entries", [entry["title"] for entry in entries] == ["planted: w, 3 devices, latency"], entries)
    _, entries = history("--engine", "XDIT")
    t.check("--engine selects those tuned on it", [entry["title"] for entry in entries] == ["planted: w, 5 devices, latency"], entries)
    _, entries = history("--engine", "worker", "--filter", "W, 3 DEV")
    t.check("--engine and --filter select together", len(entries) == 1, entries)
    done = t.tool("history", "--json", "--engine", "xdi")
    t.check("no part of a name does", done.json["entries"] == [], done)
    _, entries = history("--since", "2026-10-01")
    t.check("since a day", [len(entry["moments"]) for entry in entries] == [30, 30, 30, 30], entries)
    _, entries = history("--since", "1h")
    found = [[moment["t_wall_ns"] for moment in entry["moments"]] for entry in entries]
    t.check("since an hour", found == [[BEGIN + 59 * DAY]] * 4, found)


def wrong_options():
    for wrong in ("--since yesterday", "--since 3", "--since 2026-13-01", "--since -3d", "--format xml",
                  "--format env"):
        done = t.tool("history", *wrong.split(" "))
        t.check(wrong, done.code == 2 and done.out == "", done)


def many_moments():
    plant(t.db, *LINES)
    before = files()
    what_changed(*moments())
    t.exits("the table names the changes", t.tool("history"), 0, out=WORDS)
    filters()
    wrong_options()
    t.check("nothing is written", files() == before)


def gc():
    plant(t.db, {"points": 20})
    old = time.time() - 90 * 86400
    for path in (t.db / "runs").iterdir():
        os.utime(path, (old, old))
    t.exits("gc", t.tool("db", "gc", "--yes"), 0)
    done, entries = history()
    t.check("gc keeps the checks",
            done.code == 0 and [moment["kind"] for moment in entries[0]["moments"]] == ["check"] * 19, done)


def stored_and_taken():
    """Entries that a check stored, and entries merged from another store."""
    plant(t.db, {"points": 4})
    entry, check = read(t.db, "0000-0"), read(t.db, "0002-0")
    for run, day, plan in (("stamped", 5, check["plan"]), ("replaced", 6, {"ranks": 9})):
        journal(t.db, run, [("check", check), ("best", {**entry, "plan": plan, "journal": run})], BEGIN + day * DAY)
    journal(t.db, "taken", [("best", entry)], BEGIN + 7 * DAY)
    done, entries = history()
    found = [(moment["kind"], moment["journal"], moment["plan"]["ranks"]) for moment in entries[0]["moments"]]
    t.check("a confirmed plan is no moment, another is an update, a copy is none", done.code == 0 and found
            == [("session", "0000-0", 2), ("check", "0001-0", 2), ("check", "0002-0", 2), ("check", "0003-0", 2),
                ("check", "stamped", 2), ("check", "replaced", 2), ("update", "replaced", 9)], found)
    times = [moment["t_wall_ns"] for moment in entries[0]["moments"]]
    t.check("an update is of the time when it was written", times[-1] == BEGIN + 6 * DAY + 1, times)


for part in (nothing_there, many_moments, gc, stored_and_taken):
    part()
t.none_left()
t.finish()
