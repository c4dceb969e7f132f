# SPDX-License-Identifier: MIT
# ctest:
"""The documented plan of a worker's hello in dry runs, `--resume`, `check` and `check --update`, and what a hello may not say of it."""
import json

from lib_check import NOISE, CheckTest, near

MS = 1_000_000
WRITTEN = {"source": "the manual", "date": "2026-08-27", "says": "set plan to 1"}
t = CheckTest()


def plant(ns, plan="1", **row):
    rows = [{"plan": {"plan": plan}, **WRITTEN, **row}]
    t.plant([round(time * MS) for time in ns], documented=rows, **NOISE)


def entry(db="db"):
    return json.loads(t.read(f"{db}/best.json"))["entries"][0]


def rival(found, role):
    return next(row for row in found["rivals"] if row["role"] == role)


plant([2, 1.5, 1, 1.8])
done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s", "--dry-run", "--json")
t.check("a dry run names it", [row["role"] for row in done.json["first"]][:2] == ["default", "documented"], done)

t.tuned("db")
stored = entry()
t.check("the entry has it, and what the gain is over", stored["documented"]["plan"]["plan"] == 1 and stored["gain"]["over"] == "documented"
        and near(stored["gain"]["ratio"], 1.5, 0.05) and stored["documentation"]["date"] == "2026-08-27", stored)
look = t.look()
t.check("look-up says so", look.json["gain"]["over"] == "documented" and look.json["entry"]["documented"]["plan"]["plan"] == 1, look)
found = t.entry(t.again())
t.check("check measures it: its gain is over the same plan", found["verdict"] == "wins" and found["gain_now"]["over"] == "documented"
        and near(found["gain_now"]["ratio"], 1.5, 0.05) and near(rival(found, "documented")["ratio"], 1 / 1.5, 0.05), found)

plant([2, 0.8, 1, 1.8])  # a new version of the engine: what its documentation says is faster now
found = t.entry(t.again("--update"))
t.check("the plan loses to it", found["verdict"] == "loses" and rival(found, "documented")["verdict"] == "loses", found)
t.check("it takes the place", found["updated"] == "replaced" and found["replaced_by"]["plan"] == 1, found)
stored = entry()
t.check("as the documented plan, with the gain over the default", stored["verdict"] == "documented" and "over" not in stored["gain"]
        and near(stored["gain"]["ratio"], 2.5, 0.05) and stored["documented"]["plan"]["plan"] == 1, stored)
words = " ".join(t.tool("why").out.split())
t.check("why says it is enough", "Use plan=1: the documented plan is enough here. It is 2.5" in words, words)
found = t.entry(t.again())
t.check("it wins over the default from then on", found["verdict"] == "wins" and not any(row["role"] == "documented" for row in found["rivals"]), found)

plant([2, 1.5, 1, 1.8])
t.tuned("db")
plant([2, 0.8, 1, 0.799])  # a third plan leads by less than the noise
found = t.entry(t.again("--update"))
t.check("the documented plan takes the place where another one is not shown faster", found["updated"] == "replaced" and found["replaced_by"]["plan"] == 1
        and entry()["verdict"] == "documented", found)

plant([2, 1, 1.5, 1.8])
first = t.tool("--worker", t.worker, "--devices", 1, "--budget", "1s", "--json", "--db", t.path / "cut")
again = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s", "--json", "--db", t.path / "cut", "--resume")
t.check("a session goes on with it, though its comparison had no time for a twin", again.code == 0 and again.json["verdict"] == "documented", str(again)[:300] + str(again)[-1500:])

# the baseline, whose output is the reference, is the default on one rank; the default fails
t.plant([MS], documented=[{"plan": {"plan": "1", "ranks": "2"}, **WRITTEN}], faults=[{"when": {"ranks": 2, "plan": 0}, "at": "prepare", "do": "memory", "say": "no room"}],
        parameters=[{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 2}, {"name": "plan", "values": [0, 1, 2], "default": 0}],
        rules=[{"if": "ranks == 2 || plan == 0", "say": "only plan 0 runs on one rank"}],
        plans=[{"when": {"ranks": 1}, "ns": 4 * MS}, {"when": {"ranks": 2, "plan": 1}, "ns": 3 * MS // 2}, {"when": {"ranks": 2, "plan": 2}, "ns": MS}], **NOISE)
for budget in ("1050ms", "1200ms", "1300ms"):
    first = t.tool("--worker", t.worker, "--devices", 2, "--budget", budget, "--json", "--db", t.path / budget)
    again = t.tool("--worker", t.worker, "--devices", 2, "--budget", "60s", "--json", "--db", t.path / budget, "--resume")
    t.check(f"{budget}: the same where the default fails, and the documented plan is first", again.code == 0 and again.json["verdict"] == "faster"
            and again.json["gain"]["over"] == "documented", str(again)[:300] + str(again)[-1500:])
    t.check(f"{budget}: its report says what it lacked", first.code == 0 or "known: :" not in first.err, first.err)

plant([2, 1, 1.5, 1.8], plan="2 - 2")  # an expression: the default itself
done = t.tuned("same", "--json")
t.check("where it is the default, it is not measured twice", done.json["documented"]["plan"] == done.json["default"]["plan"]
        and sum(trial["plan"]["plan"] == 0 for trial in done.json["trials"]) == 1, done)
done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s", "--db", t.path / "same")
t.check("and the report says so", "which is the default" in " ".join(done.out.split()), done)

for plan, why in (("nothing", "unknown name 'nothing'"), (["1"], "has no expression")):
    plant([2, 1], plan=plan)
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s")
    t.refused(f"a plan of {plan!r}", done, 2, why) if hasattr(t, "refused") else t.check(f"{plan!r}", done.code == 2 and why in done.err, done)
t.plant([2 * MS, MS], documented={"plan": {"plan": "1"}}, **NOISE)
done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s")
t.check("one row without a list is refused", done.code == 2 and "'documented' is not a list of rows" in done.err, done)
WORDS = {"parameters": [{"name": "plan", "values": [0, 1, 2], "default": 0}, {"name": "kind", "values": ["plain", "fast"], "default": "plain"}]}
for row, why in (({"plan": "1 / 0"}, "cannot be computed"), ({"kind": "5"}, "has no such word"), ({"kind": "fast", "plan": "1"}, "was narrowed away")):
    t.plant([2 * MS, MS, MS], documented=[{"plan": row, **WRITTEN}, {"plan": {"plan": "2"}, **WRITTEN}], **WORDS, **NOISE)
    narrow = t.write("narrow.json", {"parameters": [{"name": "kind", "values": ["plain"]}]})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s", "--json", "--space", narrow, "--db", t.path / "rows")
    t.check(f"a row whose value {why} gives way to the next", done.code == 0 and done.json["documented"]["plan"]["plan"] == 2, done)
t.plant([2 * MS, MS], documented=[{"plan": {"plan": "1", "attention": "_native", "split": "1 + 1", "whole": "2 - 1"}, **WRITTEN}], **NOISE)
done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s", "--json", "--db", t.path / "left")
t.check("settings that the space does not have are named", done.code == 0 and done.json["documentation"]["says"] ==
        "set plan to 1; left out, as it is no parameter here: attention, split", done)
t.plant([2 * MS, MS], documented=[{"plan": {**{f"p{i}": "1" for i in range(100)}, "plan": "p99"}, **WRITTEN}], **NOISE)
done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "60s")
t.check("more names than are known are no other names", done.code == 2 and "unknown name 'p99'" in done.err, done)
plant([2, 1], plan="7")
done = t.tuned("none", "--json")
t.check("a plan that the space does not have is none", done.json["documented"] is None and done.json["documentation"] is None, done)
t.none_left()
t.finish()
