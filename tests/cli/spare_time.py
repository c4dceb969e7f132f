# SPDX-License-Identifier: MIT
"""Time that the final comparison does not need: further plans are tried between its sets and after them, a better one is compared,
too, and the sets are spread over the time. Times are planted and virtual."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
PLANS, BUDGET = 240, 75  # a trial takes a quarter of a second: the time for trials ends before all were tried
t = Dittune()


def session(best, plans=PLANS, budget=BUDGET, cv=0.01):
    """A session in which one plan takes half as long; its result and the records of its journal."""
    shutil.rmtree(t.path / "db", ignore_errors=True)
    ns = [20 * MS] + [int((20.4 + k % 7 / 10) * MS) for k in range(1, plans)]
    if best:
        ns[best] = 10 * MS
    t.scenario(ns=ns, cv=cv, start_ns=400 * MS)
    done = t.tune("--budget", f"{budget}s", "--search", "exhaustive", "--json")
    journal = sorted((t.path / "db" / "runs").glob("*.jsonl"))[-1]
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
    again = t.tool("analyze", journal, "--json")
    t.check("a session that is read back has the same verdict and figures", again.json and all(
        again.json[field] == done.json[field] for field in ("verdict", "best", "gain", "noise", "sets", "ties")), again)
    return done, records


def kinds(records, name=None):
    return [(r["t_mono_ns"] * 1e-9, r) for r in records if r["kind"] == name]


# Which plans are tried late is learnt from a session without a better one.
done, records = session(None)
first = records[0]["t_mono_ns"] * 1e-9
order = [r["plan"]["plan"] for _, r in kinds(records, "trial")]
searched = next(i for i, r in enumerate(records) if r["kind"] == "searched")
early = [r["plan"]["plan"] for r in records[:searched] if r["kind"] == "trial"]
late = [plan for plan in order if plan not in early]
t.check("the time for trials ended before all plans were tried", len(early) < PLANS, early)
t.check("others are tried in the time that the comparison leaves", len(late) > 5, late)
t.check("no better one is found, so the default stays", done.code == 0 and done.json["verdict"] in ("default", "tie"), done)
t.check("it does not take more time than it has", done.json["elapsed_seconds"] <= BUDGET, done.json["elapsed_seconds"])

# A better plan among those; when it is tried differs a little from session to session.
for best in (late[len(late) // 2], late[len(late) * 2 // 3]):
    done, records = session(best)
    searched = next(i for i, r in enumerate(records) if r["kind"] == "searched")
    begun = [r["plan"]["plan"] for r in records[searched:] if r["kind"] == "trial"]
    compared = [r for _, r in kinds(records, "comparison") if r["name"] == "final comparison"]
    t.check("a plan that is tried after the comparison is compared, and wins", best in begun and done.code == 0 and
            done.json["verdict"] == "faster" and done.json["best"]["plan"]["plan"] == best, done)
    t.check("in a comparison of its own", len(compared) == 2, [r["name"] for r in compared])

# Where the time suffices for all sets, trials are made between them.
done, records = session(None, plans=110, budget=120, cv=0.05)
sets = [at for at, r in kinds(records, "sets") if r["name"] == "final comparison"]
between = [at for at, _ in kinds(records, "trial") if sets[0] < at < sets[-1]]
t.check("trials between the sets", len(between) > 5, [sets, between])

# Four plans: the search ends at once, and the sets follow each other only as fast as the time suggests.
t.scenario(ns=[20 * MS, 16 * MS, 24 * MS, 25 * MS], cv=0.01, start_ns=400 * MS)
done = t.tune("--budget", "5m", "--search", "exhaustive", "--json")
journal = sorted((t.path / "db" / "runs").glob("*.jsonl"))[-1]
records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
sets = [at for at, r in kinds(records, "sets") if r["name"] == "final comparison"]
t.check("the sets that decide are spread over minutes", done.json["verdict"] == "faster" and sets[3] - sets[0] > 60, sets)
t.check("and no more are made than decide", len(sets) == 4 and done.json["elapsed_seconds"] < 200, done.json["elapsed_seconds"])
t.finish()
