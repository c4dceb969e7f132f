# SPDX-License-Identifier: MIT
# ctest:
"""`history` of journals and stores that are damaged: what is whole is shown, what is not is counted."""
import os

from lib_check import CheckTest
from lib_history import BEGIN, plant, read, store

t = CheckTest()
RUNS = t.db / "runs"
GONE = {"id": "0123456789abcdef",
        "key": {"worker": "gone", "workload": "w", "devices": 1, "space": "0" * 16, "objective": "latency"},
        "fingerprint": {"hard": {"device": "cpu"}, "soft": {}, "info": {"host": "h", "t_wall_ns": BEGIN}},
        "plan": {"ranks": 2}, "verdict": "faster", "provisional": False, "figures": {"median_ns": 1000000},
        "default": None, "gain": None, "journal": "gone"}


def damage():
    """Files that are no journals, a bit that flipped in one of 20, and another that was cut."""
    (RUNS / "garbage.jsonl").write_text('no journal at all\n{"kind":"best"\n', encoding="utf-8")
    (RUNS / "folder.jsonl").mkdir()
    (RUNS / "empty.jsonl").touch()
    data = bytearray((RUNS / "0005-0.jsonl").read_bytes())
    data[200] ^= 1
    (RUNS / "0005-0.jsonl").write_bytes(data)
    os.truncate(RUNS / "0007-0.jsonl", 300)


def damaged_journals():
    damage()
    done = t.tool("history", "--json")
    moments = t.entry(done)["moments"]
    t.check("damaged records are skipped and counted", done.code == 0 and len(moments) == 18
            and done.json["journals"] == {"read": 21 + 1, "damaged_records": 4, "damaged": 4}, done)
    t.exits("the damage is reported", done, 0, err=["4 damaged records in 3 journals were skipped",
                                              "folder.jsonl: it is not a regular file; what it holds is missing here"])


def a_journal_is_gone():
    store(t.db, GONE)
    done = t.tool("history", "--json", "--filter", "gone")
    moments = t.entry(done)["moments"]
    t.check("an entry whose journal is gone", done.code == 0 and [moment["tuned_ns"] for moment in moments] == [1000000]
            and moments[0]["gain"] is None, moments)
    t.check("its versions are those of its session", moments[0]["soft"] == {}, moments)
    t.exits("its moment has its plan", t.tool("history", "--filter", "gone"), 0, out="; plan ranks=2")
    store(t.db, {**GONE, "fingerprint": {**GONE["fingerprint"], "info": {"t_wall_ns": BEGIN, "checked_ns": BEGIN + 1}}})
    moments = t.entry(t.tool("history", "--json", "--filter", "gone"))["moments"]
    t.check("of an entry that a check has stamped they are not known", moments[0]["soft"] is None, moments)


def another_plan_is_stored():
    store(t.db, {"id": GONE["id"], **read(t.db, "0000-0"), "plan": {"ranks": 77}})
    t.exits("the header names the plan that is stored, not the last that was seen", t.tool("history"), 0,
            out="; plan ranks=77")


def a_damaged_store():
    """With journals that can be read, and without."""
    with open(t.db / "best.json", "a", encoding="utf-8") as file:
        file.write("x")
    done = t.tool("history", "--json")
    t.exits("a store that cannot be read is reported", done, 0, err="the journals were still read")
    t.check("its journals are read",
            done.json["store_unreadable"] is True and len(t.entry(done)["moments"]) == 18, done)
    for path in RUNS.glob("[0-9ge]*.jsonl"):
        path.unlink()
    done = t.tool("history")
    t.check("neither a journal nor a store can be read: an error", done.code == 7
            and done.out == "" and "best.json is cut short" in done.err and "still read" not in done.err, done)
    (t.db / "best.json").unlink()
    done = t.tool("history")
    t.check("no journal that can be read, and no store",
            done.code == 74 and done.out == "" and "folder.jsonl" in done.err, done)
    (t.db / "best.json").mkdir()
    done = t.tool("history")
    t.check("a store that cannot be read at all",
            done.code == 74 and done.out == "" and "not a regular file" in done.err, done)
    (t.db / "best.json").rmdir()


def no_permission():
    RUNS.chmod(0)
    if os.access(RUNS, os.R_OK):
        print("skip a folder that may not be read (this user may read everything)")
    else:
        t.exits("a folder without permission is an error", t.tool("history"), 74)
    RUNS.chmod(0o755)


plant(t.db, {"points": 20})
for part in (damaged_journals, a_journal_is_gone, another_plan_is_stored, a_damaged_store, no_permission):
    part()
t.none_left()
t.finish()
