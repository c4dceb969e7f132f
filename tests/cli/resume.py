# SPDX-License-Identifier: MIT
# ctest:
"""tune --resume: a session that ended at any point of its journal, killed or interrupted, goes on: what was measured is not measured
again, the time that was spent counts, the end is that of an undisturbed session. A plan that ran twice when a session ended is left out."""
import json
import pathlib
import re
import shlex
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
NS = [MS, 1.1 * MS, 0.8 * MS, 1.2 * MS, 0.95 * MS, 1.3 * MS]  # plan 0 is the default, plan 2 the fastest
OPTIONS = ("--budget", "60s", "--json", "--search", "exhaustive")
t = Dittune()
DB = t.path / "db"
RUNS = DB / "runs"
t.scenario(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS)


def records(path):
    """The whole ones: a session that is killed may leave a part of one."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def plans(path, kind):
    return [record["plan"]["plan"] for record in records(path) if record["kind"] == kind]


def resumed(*options, **how):
    """Goes on with what lies in the store; its result and its journal."""
    done = t.tune(*OPTIONS, "--resume", *options, **how)
    return done, RUNS / f"{(done.json or {'journal': 'none'})['journal']}.jsonl"


def sets(path, name):
    """The comparison after each of its sets, each entrant's times."""
    return [(record["sets"], [entrant["ns"] for entrant in record["entrants"]]) for record in records(path)
            if record["kind"] in ("sets", "comparison") and record["name"] == name]


def goes_on(journal, path):
    """What was compared before is in the new journal as it was, and all that follows has it at its beginning."""
    for name in ("shoot-out", "final comparison"):
        before, after = sets(journal, name), sets(path, name)
        if before and (after[0] != before[-1] or any(many[:len(before[-1][0])] != before[-1][0] for many, _ in after)
                       or any(ns[:len(old)] != old for _, entrants in after for ns, old in zip(entrants, before[-1][1]))):
            return False
    return True


def is_whole(done):
    o = done.json or {}
    return done.code == 0 and o["verdict"] == "faster" and o["best"]["plan"] == {"plan": 2} and o["elapsed_seconds"] <= 61


whole = t.tune(*OPTIONS)
t.check("an undisturbed session", is_whole(whole), whole)
journal = RUNS / f"{whole.json['journal']}.jsonl"
bytes_of = journal.read_bytes()
ends = [i + 1 for i, byte in enumerate(bytes_of) if bytes_of[i:i + 1] == b"\n" and bytes_of[i - 1:i] == b"}"]
kinds = [record["kind"] for record in records(journal)]
last = kinds.index("end")
t.check("each trial has its beginning", plans(journal, "begin") == plans(journal, "trial"), kinds)
done, _ = resumed()
t.check("a session that came to its end is not resumed", is_whole(done) and "came to its end; a new one begins" in done.err, done)

repeated = most_repeated = missing = 0
for n in range(1, last + 1):
    for more in (0, 20):  # and within the next record
        shutil.rmtree(DB)
        RUNS.mkdir(parents=True)
        journal.write_bytes(bytes_of[:ends[n - 1] + (more if n < last else 0)])
        done, path = resumed()
        before, all_of_it = plans(journal, "trial"), plans(path, "trial")
        again = [plan for plan in plans(path, "begin") if plan in before]
        if not is_whole(done) or again or not goes_on(journal, path) or all_of_it[:len(before)] != before or len(set(all_of_it)) < len(NS):
            t.check(f"cut after {n} records and {more} bytes", False, (again, before, all_of_it, done))
        printed = t.tool("analyze", path, "--json")
        missing += printed.out != done.out
t.check(f"resumed after each of {last} records: the same end, no trial and no set again", True)
t.check("there were sets to go on with", kinds.count("sets") > 4 and len(sets(journal, "final comparison")) > 3, kinds)
t.check("analyze prints the same of each", missing == 0, missing)

shutil.rmtree(DB)
RUNS.mkdir(parents=True)
at = [i for i, kind in enumerate(kinds) if kind == "begin"][3]
journal.write_bytes(bytes_of[:ends[at]])
ran = records(journal)[-1]["plan"]["plan"]
first, path = resumed()
t.check("the plan that ran is tried once more", is_whole(first) and ran in plans(path, "begin") and plans(path, "lost") == [ran], plans(path, "begin"))
cut = path.read_bytes()
where = cut.index(b'"kind":"begin"', cut.index(b'"kind":"lost"'))
path.write_bytes(cut[:cut.index(b"\n", where) + 1])
begun = plans(path, "begin")[-1]
second, path = resumed()
if begun == ran:
    left = [trial for trial in second.json["trials"] if trial["plan"] == {"plan": ran}]
    t.check("then it is left out", is_whole(second) and ran not in plans(path, "begin") and len(left) == 1 and left[0]["outcome"] == "infeasible"
            and "2 sessions ended while this plan ran" in left[0]["cause"], (second, plans(path, "lost")))
else:
    t.check("the other that ran then is tried again", is_whole(second) and begun in plans(path, "begin"), second)

def spent(lines):
    """Seconds of the budget that a session with this journal has spent, as the one says that resumes it."""
    shutil.rmtree(DB)
    RUNS.mkdir(parents=True)
    journal.write_text("".join(f"\n{line}\n" for line in lines), encoding="utf-8")
    done, _ = resumed()
    found = re.search(r"which spent (\d+) s of the budget", done.err)
    return int(found.group(1)) if found else done


def crc32c(data):
    """Castagnoli's polynomial, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def restarted(line):
    """The record of a machine that was started again meanwhile: its monotonic clock began anew."""
    record = json.loads(line)
    record["t_mono_ns"] -= 10**13
    del record["crc"]
    text = json.dumps(record, separators=(",", ":"))[:-1]
    return f'{text},"crc":"{crc32c(text.encode())}"}}'


lines = [line for line in bytes_of.decode().splitlines() if line][:last]
steady, jumps = spent(lines), spent(lines[:4] + [restarted(line) for line in lines[4:]])
t.check("a clock that begins anew does not change the time spent", steady == jumps and steady > 1, (steady, jumps))

shutil.rmtree(DB)
t.scenario(ns=NS, sleep=0.2)
session = t.start("tune", "--worker", t.worker, *OPTIONS, "--prior", "none", "--", "an argument", clock="real")
t.until(lambda: list(RUNS.glob("*.jsonl")) and "trial" in [r["kind"] for r in records(next(RUNS.glob("*.jsonl")))][:-1])
session.send_signal(signal.SIGINT)
code, said = session.wait(), t.read("err")
line = [line for line in said.splitlines() if line.startswith("dittune: go on with: ")]
words = shlex.split(line[0].removeprefix("dittune: go on with: ")) if line else []
t.check("Ctrl-C: the whole command that goes on", code == 130 and words == [str(t.program("real")), "tune", "--worker", t.worker, *OPTIONS, "--prior", "none",
        "--resume", "--", "an argument"], said)
t.check("and what was found", '"best":{"plan":{"plan":' in t.read("out").replace(" ", ""), t.read("out")[:500])
old = next(RUNS.glob("*.jsonl"))
t.scenario(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS)
shutil.copytree(DB, t.path / "other")
done = t.tune(*OPTIONS, "--db", t.path / "other")
t.check("without --resume: a note", is_whole(done) and f"session {old.stem} of this work was cut short" in done.err and "--resume goes on" in done.err, done)
done = t.tune(*OPTIONS, "--db", t.path / "other")
t.check("after a whole one: none", is_whole(done) and "cut short" not in done.err, done)
done, path = resumed()
t.check("after Ctrl-C: its trials are taken over", is_whole(done) and [plan for plan in plans(path, "begin") if plan in plans(old, "trial")[:-1]] == [], done)
t.scenario(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS, versions={"library": "2"})
path.unlink()
done, path = resumed()
t.check("other software: a new session, which says why", is_whole(done) and "its software has changed" in done.err, done)
t.none_left()
t.finish()
