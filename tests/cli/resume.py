# SPDX-License-Identifier: MIT
# ctest:
"""tune --resume: a session that ended at any point of its journal, killed or interrupted, goes on: what was measured is not measured
again, the time that was spent counts, the end is that of an undisturbed session. A plan that ran twice when a session ended is left out."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune, log_of_processes

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
cut = t.tool("analyze", journal, "--json")
t.check("a journal without an end has no time of its session", cut.code == 0 and cut.json["elapsed_seconds"] == 0, cut)
cut = t.tool("analyze", journal)
t.check("and its report says so", cut.code == 0 and "failed, cut short before its end\n" in cut.out, cut)
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

def caches():
    """The first start of a plan in a session finds the caches of compilers and files as others left them: the record says which it
    was, and no set compares it with a plan that had started before."""
    all_records = [json.loads(line) for line in bytes_of.splitlines() if line.endswith(b"}")]
    entrants = [entrant for record in all_records if record["kind"] == "comparison" for entrant in record["entrants"]]
    trials = [record["loads"] for record in all_records if record["kind"] == "trial"]
    t.check("each start of a comparison is a later one", entrants and all(entrant["loads"] for entrant in entrants) and
            not any(load["first"] for entrant in entrants for load in entrant["loads"]), entrants[:1])
    t.check("each start of a trial is the first, but of the default, which was the reference",
            [loads[0]["first"] for loads in trials] == [False] + [True] * (len(trials) - 1), trials)
    t.check("it has the time of start and prepare", all(load["ns"] >= 50 * MS and load["read_bytes"] >= -1 for loads in trials for load in loads), trials)
    shutil.rmtree(DB)
    RUNS.mkdir(parents=True)
    journal.write_bytes(bytes_of[:ends[kinds.index("searched")]])
    (t.path / "scenario.json.log").unlink()
    done, _ = resumed()
    processes = log_of_processes(t.path / "scenario.json.log")
    compared = {entry["plan"]["plan"] for log in processes for entry in log if entry["op"] == "run" and entry["mode"] == "measure"} - {0}
    first = {plan: next(log for log in processes if any(entry["op"] == "prepare" and entry["plan"]["plan"] == plan for entry in log))
             for plan in compared}
    t.check("a session that goes on with comparisons starts each of their plans once before", is_whole(done) and len(compared) > 1 and not any(
        entry["op"] == "run" and entry["plan"]["plan"] == plan and entry["mode"] == "measure" for plan, log in first.items() for entry in log),
        (compared, processes[:2]))
    shutil.rmtree(DB)
    RUNS.mkdir(parents=True)


caches()


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

# ---- the machine is measured again, and what lies there instead of a journal


def begin_again(ns=None, also=None):
    """A session that was cut after four trials; another machine speed if ns; also: writes beside its journal."""
    shutil.rmtree(DB)
    RUNS.mkdir(parents=True)
    journal.write_bytes(bytes_of[:ends[[i for i, kind in enumerate(kinds) if kind == "trial"][3]]])
    t.scenario(ns=ns or NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS)
    if also:
        also()
    return resumed()


done, path = begin_again()
kinds_now = [r["kind"] for r in records(path)]
best_before = min(plans(journal, "trial"), key=lambda plan: NS[plan])
t.check("the best plan so far is measured again", is_whole(done) and "as slow" not in done.err and plans(path, "visit")[0] == best_before
        and kinds_now.index("taken") < kinds_now.index("visit") < kinds_now.index("search"), done)
done, path = begin_again(ns=[1.5 * ns for ns in NS])
found = re.search(r"this machine is (\S+) times as slow as in the session that goes on", done.err)
t.check("a machine that became slower: said", is_whole(done) and found and abs(float(found.group(1)) - 1.5) < 0.1, done)
done, _ = begin_again(ns=[ns / 1.5 for ns in NS])
found = re.search(r"this machine is (\S+) times as fast as in the session that goes on", done.err)
t.check("or faster", is_whole(done) and found and abs(float(found.group(1)) - 1.5) < 0.1, done)

NEWER = RUNS / "99990101T000000Z-1-00000000.jsonl"


def of_version_2():
    record = json.loads(lines[0])
    record["v"], record["run"] = 2, NEWER.stem
    del record["crc"]
    text = json.dumps(record, separators=(",", ":"))[:-1]
    NEWER.write_text(f'\n{text},"crc":"{crc32c(text.encode())}"}}\n', encoding="utf-8")


def of_another_user():
    NEWER.write_bytes(bytes_of)
    NEWER.chmod(0)


for name, make, says in (("a link", lambda: NEWER.symlink_to(journal), "it is a symbolic link"),
                         ("a link to nothing", lambda: NEWER.symlink_to("nothing"), "it is a symbolic link"),
                         ("a folder", NEWER.mkdir, "it is not a regular file"),
                         ("a pipe", lambda: os.mkfifo(NEWER), "it is not a regular file"),
                         ("a journal of another version", of_version_2, "have version 2, and this program reads 1"),
                         *([("a journal that may not be read", of_another_user, "Permission denied")] if os.geteuid() != 0 else [])):
    done, path = begin_again(also=make)
    t.check(f"{name}: left out, the older one is resumed", is_whole(done) and done.err.count("1 newer journal is left out: ") == 1 and says in done.err
            and NEWER.name in done.err and f"of session {journal.stem}" in done.err and os.path.lexists(NEWER), done)


def damage():
    """One byte of the second trial."""
    at = bytes_of.index(b'"ns":[', ends[kinds.index("trial")])
    with open(journal, "r+b") as file:
        file.seek(at + 8)
        file.write(b"#")


done, path = begin_again(also=damage)
t.check("a damaged record: it is measured again", is_whole(done) and "1 damaged record of its journal is left out" in done.err
        and len(set(plans(path, "trial"))) == len(NS) and len(plans(path, "begin")) == len(NS) - 3, (plans(path, "begin"), plans(path, "trial"), done.err))

def undo():
    """The trial of the slowest plan, as a visit does that finds the machine slower."""
    trial = next(record for record in records(journal) if record["kind"] == "trial" and record["plan"]["plan"] == 3)
    record = {name: trial[name] for name in ("v", "seq", "run", "t_wall_ns", "t_mono_ns", "plan")} | {"kind": "undone"}
    text = json.dumps(record, separators=(",", ":"))[:-1]
    with open(journal, "ab") as file:
        file.write(f'\n{text},"crc":"{crc32c(text.encode())}"}}\n'.encode())


done, path = begin_again(also=undo)
t.check("a trial that was undone: the new journal says so, too, after the trial", is_whole(done) and plans(path, "undone") == [3]
        and [r["kind"] for r in records(path)].index("undone") < [r["kind"] for r in records(path)].index("taken")
        and t.tool("analyze", path, "--json").out == done.out, (plans(path, "trial"), done))
done, path = begin_again(also=lambda: journal.write_bytes(bytes_of[:200]))
t.check("nothing whole in it: a new session", is_whole(done) and "there is none of this work; a new one begins" in done.err, done)

# ---- a full disk, then room again
shutil.rmtree(DB)
t.scenario(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS)
shim = {"LD_PRELOAD": t.path / "shim.so", "FAULT_ROOT": DB, "FAULT_SHARED": t.path / "calls"}
(t.path / "shim.so").symlink_to(BUILD / "tests/db/faults/libfault_shim.so")
t.tune(*OPTIONS, env={**shim, "FAULT": "0"})
calls = struct.unpack("i", (t.path / "calls").read_bytes()[:4])[0]
stopped = whole_ends = 0
for n in range(8, calls, max(1, calls // 12)):
    shutil.rmtree(DB)
    done = t.tune(*OPTIONS, env={**shim, "FAULT": f"{n} ENOSPC ever"})
    stopped += done.code == 74
    before = {path: plans(path, "trial") for path in RUNS.glob("*.jsonl")}
    done, path = resumed()
    again = [plan for plan in plans(path, "begin") if any(plan in measured for measured in before.values())]
    whole_ends += is_whole(done) and (not again or "to its end" in done.err)
t.check("a full disk, then --resume: the same end, and nothing measured again", stopped > 8 and whole_ends == len(range(8, calls, max(1, calls // 12))),
        (calls, stopped, whole_ends))
shutil.rmtree(DB)
RUNS.mkdir(parents=True)
journal.write_bytes(bytes_of[:ends[2]])
t.scenario(ns=NS, cv=0.005, drift_sd=0.01, cost_ns=50 * MS, versions={"library": "2"})
done, path = resumed()
t.check("other software: a new session, which says why", is_whole(done) and "its software has changed" in done.err, done)
t.none_left()
t.finish()
