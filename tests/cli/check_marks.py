# SPDX-License-Identifier: MIT
# ctest:
"""tune, check and look-up speak of one truth: a plan that lost in a check is stale in look-ups until it wins or ties; "decided" means
that plans were searched, that there is a noise floor, and that differences of the size that was asked for could be told."""
import json
import os
import shutil
import stat
import subprocess
import sys

from lib_check import TIES, WINS, CheckTest
from dittune_test import BUILD, SOURCE

LOST = [1000000, 1300000, 2000000, 1300000]  # plan 2 is twice as slow as the default
MS = 1_000_000
t = CheckTest()


def entry():
    return json.loads((t.db / "best.json").read_text(encoding="utf-8"))["entries"][0]


def is_told_everywhere(reason):
    """In each format of look-up, on standard error where the format has no place for it; from Python and by the library."""
    ask = ("lookup", "--worker", t.worker, "--devices", 1)
    for form in ("table", "json", "argv", "env"):
        done = t.tool(*ask, "--format", form)
        t.check(f"--format {form}", done.code == 0 and done.out and reason in done.err, done)
    t.check("as text", reason in t.tool(*ask).out and t.tool("lookup", *ask[1:], "--json").json["stale"], t.tool(*ask))
    if not (BUILD / "libdittune.so.1").exists():
        print("skip the library: this build has none")
        return
    t.write("machine.json", t.tool("machine", "--json").json)
    here = {"LIBDITTUNE": BUILD / "libdittune.so.1", "LD_PRELOAD": "", "PYTHONPATH": SOURCE / "workers"}
    done = t.run(sys.executable, SOURCE / "examples/lookup/lookup.py", t.db, t.path / "machine.json", "worker=planted", "workload=planted", "devices=1", env=here)
    t.check("the library", done.code == 0 and "(stale: measure it again)" in done.out, done)
    python = f"import dittune; dittune.lookup({str(t.db)!r}, {str(t.path / 'machine.json')!r}, worker='planted', workload='planted', devices=1)"
    done = t.run(sys.executable, "-c", python, env=here)
    t.check("the Python package warns", done.code == 0 and "UserWarning: this plan is stale" in done.err and reason in done.err, done)


def a_loss_is_known_to_lookups():
    t.plant(WINS)
    t.tuned("won")
    t.stored("won")
    t.check("decided after the session", t.look("--require", "decided").code == 0)
    t.plant(LOST)
    found = t.verdict("a plan that lost", t.again(), 4, "loses", "the default plan is better")
    t.check("its record says that the store was marked", found["updated"] == "marked" and found["note"] is None, found)
    done = t.look()
    t.check("look-up shows it as stale, with that reason", done.code == 0 and done.json["stale"] and any(
        "it lost in the check of 2026-09-01" in why and "the default plan is better: it ran" in why for why in done.json["stale_reasons"]), done)
    t.exits("--require decided refuses it", t.tool("lookup", "--worker", t.worker, "--devices", 1, "--require", "decided"), 10,
            "is no longer the best: it lost in the check of 2026-09-01")
    t.exits("--require exact takes it", t.tool("lookup", "--worker", t.worker, "--devices", 1, "--require", "exact"), 0)
    is_told_everywhere("it lost in the check of 2026-09-01")
    t.exits("the store is whole", t.tool("db", "verify"), 0)
    t.exits("a rebuild", t.tool("db", "rebuild"), 0)
    t.check("keeps the mark", t.look().json["stale"], t.look())
    t.plant(WINS)
    found = t.verdict("it wins again", t.again(), 0, "wins")
    t.check("the mark is taken back", found["updated"] == "cleared" and not t.look().json["stale"] and t.look("--require", "decided").code == 0, found)
    t.plant(LOST)
    t.again()
    t.plant([1000000, 1100000, 1000000, 1100000])
    found = t.verdict("so does a tie", t.again(), 0, "ties")
    t.check("take it back", found["updated"] == "cleared" and "lost_ns" not in entry()["fingerprint"]["info"], found)


def a_store_that_cannot_be_written():
    t.stored("won")
    t.plant(LOST)
    if os.geteuid() == 0:
        if not shutil.which("chattr") or not shutil.which("lsattr"):
            print("skip a store that cannot be written: root writes everywhere, and there is no chattr here")
            return
        subprocess.run(["chattr", "+i", t.db / "best.json"], check=False, capture_output=True)
        if os.access(t.db / "best.json", os.W_OK) and "i" not in subprocess.run(
                ["lsattr", t.db / "best.json"], capture_output=True, text=True, check=False).stdout.split(" ")[0]:
            print("skip a store that cannot be written: root writes everywhere here")
            return
    else:
        (t.db / "best.json").chmod(stat.S_IRUSR)
    try:
        found = t.verdict("a plan that lost, in a store that cannot be changed", t.again(), 4, "loses")
        t.check("which is said", found["updated"] is None and "look-ups go on recommending it" in (found["note"] or ""), found)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", t.db / "best.json"], check=False, capture_output=True)
        else:
            (t.db / "best.json").chmod(stat.S_IRUSR | stat.S_IWUSR)


def only_what_must_be_tried():
    """The default and nothing else: there was no time for more."""
    t.plant([MS] * 40, faults=[{"at": "prepare", "do": "delay", "ns": 4_000 * MS, "when": {"plan": n}} for n in range(1, 40)])
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "4s", "--db", t.path / "must", "--json")
    stored = json.loads((t.path / "must" / "best.json").read_text(encoding="utf-8"))["entries"][0]
    t.check("a session that tried only what it must is provisional", done.code == 6 and done.json["verdict"] == "provisional"
            and stored["provisional"] and stored["tried"] <= 2 and stored["plans"] == 40, (done, stored))
    t.check("and says so", "the session ended before its search: 1 of 40 plans was tried" in done.err, done)


def how_many_were_tried():
    t.stored("won")
    t.check("an entry says how many of how many plans were tried", (entry()["tried"], entry()["plans"]) == (4, 4), entry())


def resolution():
    t.stored("won")
    t.plant(WINS)
    smallest = entry()["resolution"]
    t.check("an entry has its resolution", 0 < smallest < 0.2, entry())
    ask = ("lookup", "--worker", t.worker, "--devices", 1, "--require-resolution")
    t.exits("a coarser one is given", t.tool(*ask, f"{100 * smallest + 1:.3f}%"), 0)
    t.exits("a finer one is refused", t.tool(*ask, f"{50 * smallest:.5f}%"), 10, "its comparison could not tell differences below")
    t.plant(TIES)
    t.verdict("check: a tie", t.again(), 0, "ties")
    t.verdict("that is no result where finer differences must be told", t.again("--require-resolution", "0.01%"), 5, "inconclusive",
              "differences below", "--require-resolution asks for 0.01 %")


def the_time_it_takes():
    t.stored("won")
    t.plant(WINS)
    t.verdict("one entry has the whole budget", t.again(budget="3s"), 0, "wins")
    t.exits("no resolution at all", t.again("--require-resolution", "0%"), 2, "--require-resolution must be above 0%")
    t.exits("nor in a look-up", t.look("--require-resolution", "0%"), 2, "--require-resolution must be above 0%")
    t.exits("two ways to say how long", t.again("--until-decided", "2m"), 2, "--budget and --until-decided both say how long")
    t.plant([1000000, 930000, 935000, 930000], cv=0.03, drift_sd=0.0)
    done = t.tool("check", "--worker", t.worker, "--json", "--until-decided", "30m")
    found = t.entry(done)
    t.check("--until-decided makes more sets than a budget does", len(found["sets"]) > 16 or found["verdict"] != "inconclusive", found)


for part in (a_loss_is_known_to_lookups, a_store_that_cannot_be_written, only_what_must_be_tried, how_many_were_tried, resolution, the_time_it_takes):
    part()
t.none_left()
t.finish()
