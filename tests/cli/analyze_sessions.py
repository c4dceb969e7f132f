# SPDX-License-Identifier: MIT
# ctest: dose
"""`analyze` and the journals of sessions: what `tune` printed comes out of its journal again, byte for byte, and only
from the raw samples in it."""
import copy
import json
import pathlib
import signal
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import PATIENCE, Dittune
import sets
import lib_spoilt

# Four plans that nearly tie, measured on two ranks.
TIES = dict(ns=[1000000, 1001000, 1002000, 1003000], ranks=2, cv=0.02, drift_sd=0.02, lateness=0.01, seed=3)
# Another worker's space: texts, ranks of its own, a rule.
AXES = dict(axes={"ranks": [1, 2], "tile": [16, 8, 32, 40, 64], "order": ["row", "column"]},
            weights={"ranks": 0.2, "tile": 0.05, "order": 0.3}, best={"ranks": 1, "tile": 3, "order": 1}, cv=0.01,
            constants={"rows": 64}, rules=[{"if": "rows % tile == 0", "say": "tile must divide the rows"}])
COMPUTED = ("median_seconds", "start", "steady", "ratio", "verdict")  # figures that no measurement's record holds

t = Dittune()


# ---- sessions

def tune(name, budget, **scenario):
    """A session with a store of its own."""
    t.scenario(name + ".json", **scenario)
    return t.tune("--budget", budget, "--db", t.path / name, "--json", "--quiet")


def journal(name):
    """The path of the session's journal."""
    (path,) = (t.path / name / "runs").glob("*.jsonl")
    return path


def is_printed_again(name, done):
    again = t.tool("analyze", journal(name), "--json")
    t.check(f"{name}: it is printed again from its journal", again.code == 0 and again.out == done.out, again)


def another_worker():
    done = tune("axes", "10s", **AXES)
    t.check("a session of another worker", done.code in (0, 6) and len(done.json["trials"]) >= 3, done)
    is_printed_again("axes", done)


def a_crash():
    done = tune("crash", "6s", ns=[1000000, 900000, 1100000, 1200000], cv=0.01,
                faults=[{"when": {"plan": 1}, "do": "segv"}])
    t.check("a session with a crash",
            done.code in (0, 6) and any(r["outcome"] == "crashed" for r in done.json["trials"]), done)
    is_printed_again("crash", done)


def low_clocks():
    """The worker says its ranks' clocks, and one of them is low for 20 steps, in the middle of the first samples."""
    done = tune("clocks", "8s", **TIES, slow_clock=0.6, slow_rank=1, slow_at=190, slow_steps=20)
    t.check("a session with throttled samples",
            done.code in (0, 6) and any(r["throttled_steps"] > 0 for r in done.json["trials"]), done)
    is_printed_again("clocks", done)


def trials_in(store):
    return sum(path.read_text(encoding="utf-8").count('"kind":"trial"') for path in store.glob("runs/*.jsonl"))


def interrupted():
    """Ctrl-C after the first trials: the third plan never answers."""
    t.scenario("interrupted.json", ns=[1000000] * 4, cv=0.01, faults=[{"when": {"plan": 2}, "do": "hang_real"}])
    store = t.path / "interrupted"
    session = t.start("tune", "--worker", t.worker, "--search", "exhaustive", "--budget", "90s", "--db", store,
                      "--json", "--quiet")
    t.until(lambda: trials_in(store) >= 2)
    session.send_signal(signal.SIGINT)
    code, out = session.wait(PATIENCE), t.read("out")
    t.check("an interrupted session", code == 130 and json.loads(out)["verdict"] == "provisional", f"{code} {out}")
    again = t.tool("analyze", journal("interrupted"), "--json")
    t.check("interrupted: it is printed again from its journal", again.code == 0 and again.out == out, again)


# ---- the journal as another program might write it: no crc, one thing changed

def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def without_crc(rows):
    return [{name: value for name, value in row.items() if name != "crc"} for row in rows]


def final(rows):
    return [row for row in rows if row["kind"] == "comparison" and row["name"] == "final comparison"][-1]


def slow_final_step(rows):
    """The fastest step of the default's first visit in the final comparison, on one rank: ten times."""
    entrant = final(rows)["entrants"][0]
    min(entrant["ns"][:entrant["requests"][0]], key=max)[0] *= 10


def slow_trial_step(rows):
    next(row for row in rows if row["kind"] == "trial")["ns"][-1][0] *= 2


def other_end(rows):
    for row in rows:
        if row["kind"] == "end":
            row.update(verdict="none", elapsed_ns=0)


def analyze_copy(rows, change=None, without=()):
    rows = copy.deepcopy([row for row in rows if row["kind"] not in without])
    if change is not None:
        change(rows)
    return t.tool("analyze", t.write("copy.jsonl", "".join(json.dumps(row) + "\n" for row in rows)), "--json")


# ---- the figures, from the definitions

def near(a, b):
    return abs(a - b) <= 1e-12 * abs(b)


def all_near(values, expected):
    return len(values) == len(expected) and all(map(near, values, expected))


def visits(entrant):
    """The median of each visit's slowest ranks."""
    slowest, out = [max(step) * 1e-9 for step in entrant["ns"]], []
    for steps in entrant["requests"]:
        out.append(statistics.median(slowest[:steps]))
        slowest = slowest[steps:]
    return out


def follows(printed, rows):
    """Figures and gain of the session, from the raw samples of its final comparison."""
    made = final(rows)["sets"]
    by_role = {entrant["role"]: visits(entrant)[:printed["rounds"]] for entrant in final(rows)["entrants"]}
    default, best = by_role["default"], by_role["candidate" if printed["verdict"] == "faster" else "default"]
    return (all_near(printed["best"]["samples_seconds"], best)
            and all_near(printed["default"]["samples_seconds"], default)
            and near(printed["best"]["median_seconds"], sets.median(best, made))
            and near(printed["gain"]["ratio"], sets.ratio(best, default, made)))


# ---- a session with near-ties, and its journal

def near_ties():
    done = tune("ties", "6s", **TIES)
    printed, rows = done.json, records(journal("ties"))
    t.check("a session with near-ties", done.code == 0 and printed["noise"] and printed["rounds"] >= 8, done)
    is_printed_again("ties", done)
    names = [row["name"] for row in rows if row["kind"] == "comparison"]
    t.check("it has a shoot-out and a final comparison", names == ["shoot-out", "final comparison"], names)
    t.check("the verdict follows from raw samples", follows(printed, rows), done)
    measured = [row for row in rows if row["kind"] in ("trial", "comparison")]
    t.check("nothing computed is in the journal's measurements",
            measured and not any(name in row for row in measured for name in COMPUTED))
    changed_journals(printed, without_crc(rows))
    t.exits("a report for people", t.tool("analyze", journal("ties")), 0, out=("How sure", "\ndefault "))
    damaged_line()


def changed_journals(printed, rows):
    done = analyze_copy(rows)
    t.check("records without a crc are read, too", done.code == 0 and done.json == printed, done)
    done = analyze_copy(rows, slow_final_step)
    t.check("one raw number changes what is printed", done.code == 0 and done.json["default"] != printed["default"]
            and done.json["trials"] == printed["trials"], done)
    done = analyze_copy(rows, slow_trial_step)
    t.check("one raw number of a trial changes what is printed", done.code == 0 and done.json["default"] == printed["default"]
            and done.json["trials"] != printed["trials"], done)
    done = analyze_copy(rows, other_end)
    t.check("the verdict is not taken from it", done.code == 0 and done.json["verdict"] == printed["verdict"]
            and done.json["elapsed_seconds"] == 0, done)
    done = analyze_copy(rows, without=("end", "comparison"))
    t.check("a session cut short", done.code == 0 and done.json["verdict"] == "provisional"
            and done.json["gain"] is None and "cut short" in done.err, done)


def damaged_line():
    """A digit of the first trial's samples is another."""
    lines = journal("ties").read_text(encoding="utf-8").split("\n")
    at = next(i for i, line in enumerate(lines) if '"kind":"trial"' in line)
    digit = lines[at].index('"ns":[[') + 7
    other = "2" if lines[at][digit] == "1" else "1"
    lines[at] = lines[at][:digit] + other + lines[at][digit + 1:]
    done = t.tool("analyze", t.write("damaged.jsonl", "\n".join(lines)), "--json")
    t.check("a changed digit is reported with its line", done.code == 7 and done.out == ""
            and f"damaged.jsonl: line {at + 1} is damaged: it does not match its crc" in done.err, done)


another_worker()
near_ties()
a_crash()
low_clocks()
lib_spoilt.check(t, "a session", journal("ties"))
interrupted()
t.none_left()
t.finish()
