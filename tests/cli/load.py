# SPDX-License-Identifier: MIT
# ctest:
"""What other programs did on the cores, how many plans were tried and what there was no time for: told by the session, kept in the entry,
and told again by look-up, `why`, page and `db show`, also without the journal."""
import json
import re
import shutil

from lib_check import TODAY, WINS, CheckTest

MS = 1_000_000
LONG = {"start_ns": 2_000 * MS}  # sets of two seconds and more
t = CheckTest(DITTUNE_CLOCK_OTHERS="")
t.environment["DITTUNE_CLOCK_OTHERS"] = str(t.path / "others")


def entry():
    return json.loads(t.read("db/best.json"))["entries"][0]


def session(others, budget="60s", *options):
    """A session while others keep cores busy: lines "SECOND CORES STOLEN"."""
    shutil.rmtree(t.db, ignore_errors=True)
    (t.path / "clock").unlink(missing_ok=True)
    t.write("others", "\n".join(others) + "\n")
    return t.tool("--worker", t.worker, "--devices", 1, "--budget", budget, "--search", "exhaustive", *options)


def flat(text):
    return " ".join(text.split())


def is_told(name, *parts):
    """Each place has all parts."""
    line = next(row for row in t.tool("lookup", "--worker", t.worker, "--devices", 1).out.splitlines() if row.startswith("  load "))
    for place, text in (("look-up", line), ("why", flat(t.tool("why").out)), ("page", flat(t.tool("report", "--format", "md").out))):
        t.check(f"{name}: {place}", all(part in text for part in parts), text)


def quiet():
    t.plant(WINS, **LONG)
    done = session(["0 0.1 0.02"])
    load = entry()["load"]
    t.check("a little load, a part of it stolen: kept with the entry", done.code == 0 and load["of"] == "sets" and load["left_out"] == 0
            and 0.05 < load["cores"] <= load["cores_most"] <= 0.1 and abs(load["stolen_most"] - 0.02) < 0.001 and "program" not in load, load)
    is_told("quiet", f"thers kept {load['cores']:.2g} cores busy in the sets that count", "of which a hypervisor gave up to 0.02 to other machines")
    t.check("tune says so", "Load: others kept 0.0" in flat(done.out), done)
    answer = t.look().json
    t.check("JSON of look-up", answer["load"] == load and (answer["tried"], answer["plans"], answer["skipped"]) == (4, 4, None), answer)
    rows = [line.split() for line in t.tool("db", "show").out.splitlines()]
    at = [rows[0].index(name) for name in ("TRIED", "LOAD")]
    t.check("db show", [rows[1][i] for i in at] == ["4/4", f"{load['cores_most']:.2f}"], rows)
    t.check("analyze prints the session's JSON", t.tool("analyze", t.db / "runs" / f"{entry()['journal']}.jsonl", "--json").json["load"] == load)


def disturbed():
    """Others come when the second set of the final comparison is made, and go. When that is, a session without them says."""
    t.plant(WINS, **LONG)
    session(["0 0.01"], "3m")
    ends = [(record["t_wall_ns"] - TODAY) / 1e9 for record in t.records("sets") if record["name"] == "final comparison"]
    t.plant(WINS, **LONG)
    done = session(["0 0.01", f"{ends[0] + 0.1} 1.7", f"{ends[1]} 0.01"], "3m", "--json")
    load = entry()["load"]
    t.check("sets under load are left out, and their program is named", done.code == 0 and load["left_out"] >= 1
            and 0.2 < load["left_out_most"] <= 1.7 and load["program"] == "planted" and load["cores_most"] < 0.2, (load, done))
    is_told("disturbed", f"{load['left_out']} set", "other programs (planted) kept up to ", "left out")
    t.check("of the session, too", done.json["load"] == load, done.json["load"])
    t.exits("exported", t.tool("db", "export", t.path / "file.json"), 0)
    shutil.rmtree(t.db)
    t.exits("imported", t.tool("db", "import", t.path / "file.json"), 0)
    answers = t.tool("why", "--json").json["answers"]
    t.check("why, without the journal", "other programs (planted) kept up to" in answers["Load by others"]
            and answers["Tried"] == "4 of 4 plans.", answers)


def without_sets():
    t.plant(WINS, start_ns=3_000 * MS, cost_ns=200 * MS)
    done = session(["0 0.4"], "14s")
    load, left = entry()["load"], entry()["skipped"]
    t.check("without a final comparison it is that of the trials", done.code == 6 and load["of"] == "trials" and load["left_out"] >= 1
            and "cores" not in load and load["left_out_most"] > 0.3, load)
    t.check("which was left out for want of time", "the final comparison" in left and f"{4 - entry()['tried']} of 4 plans" in left, left)
    told = f"{entry()['tried']} of 4 plans; left out: {left}"
    t.check("as look-up says", told in t.tool("lookup", "--worker", t.worker, "--devices", 1, "--require", "exact").out
            and t.look().json["skipped"] == left, t.look())
    t.check("and why, page and tune", all(f"eft out: {left}" in flat(text) for text in (
        t.tool("why").out, t.tool("report", "--format", "md").out, done.out)), done)


def more_time_is_not_enough():
    """A budget that is named while others are busy is one for when they are not."""
    t.plant(WINS, **LONG)
    text = flat(session(["0 0.01", "6 1.5"], "12s").out)
    t.check("the budget named is for a quiet machine", "kept up to 1.5 of the cores busy" in text
            and re.search(r"a decided answer needs about --budget \w+, beside no other programs", text), text)


def after_an_update():
    t.plant(WINS, **LONG)
    session(["0 0.05"])
    t.write("others", "0 0.15\n")
    t.plant([1_000_000, 600_000, 1_100_000, 1_300_000], **LONG)
    done = t.again("--update", "--against", "plan=1")
    t.check("an update has the load of its own sets", t.entry(done)["updated"] == "replaced" and 0.1 < entry()["load"]["cores"] < 0.15, (entry(), done))


for part in (quiet, disturbed, without_sets, more_time_is_not_enough, after_an_update):
    part()
t.none_left()
t.finish()
