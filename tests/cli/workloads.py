# SPDX-License-Identifier: MIT
# ctest:
"""tune --workloads: rows are command lines that share the budget; the mix's gain is that of its shares, worked out here anew; a list that
was killed at any point goes on, and tunes nothing again that came to its end."""
import itertools
import json
import math
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
NS = [MS, 1.1 * MS, 0.8 * MS, 1.2 * MS]  # plan 0 is the default, plan 2 the fastest
t = Dittune()
RUNS = t.path / "db" / "runs"
t.scenario(ns=NS, cv=0.02, drift_sd=0.01, cost_ns=50 * MS, protocol=2,
           obeys=["model", "width", "height", "batch"])
MIX = t.write("mix.json", {"workloads": [
    {"model": "one", "share": 3}, {"model": "two", "size": "64x32", "devices": 1, "share": 1.5},
    {"model": "three", "batch": 2, "objective": "throughput", "lossy": True}]})


WORKS = [(2, "latency"), (1, "latency"), (2, "throughput")]


def work(session):
    return session["key"]["devices"], session["key"]["objective"]


def tune(*options, mix=MIX, budget="90s"):
    return t.tune("--workloads", mix, "--budget", budget, *options)


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def journals():
    """In the order in which their sessions began; names have the second only."""
    return sorted(RUNS.glob("*.jsonl"), key=lambda path: (path.name[:16], records(path)[0]["t_wall_ns"]))


# ---- three workloads: each its part of the time, its entry, its options
done = tune("--json")
results, mix = done.json["results"], done.json["mix"]
t.check("three results, each with its best plan", done.code == 0 and [r["best"]["plan"] for r in results] == [{"plan": 2}, {"plan": 2}, {"plan": 2, "replicas": 2}], done)
first = [records(path)[0] for path in journals()]
t.check("each is a session of its own", [work(r) for r in first] == WORKS, first)
jobs = [job for job, _ in itertools.groupby(json.loads(line)["job"] for line in t.read("scenario.json.log").splitlines() if '"hello"' in line)]
t.check("with the options of its row", [(j.get("model"), j.get("width"), j.get("batch")) for j in jobs] == [("one", None, None), ("two", 64, None), ("three", None, 2)], jobs)
t.check("the budget is shared by the shares", abs(first[0]["budget_ns"] - 90e9 * 3 / 5.5) < 1e9
        and first[1]["budget_ns"] >= 90e9 * 1.5 / 5.5 and first[2]["budget_ns"] > first[1]["budget_ns"], [r["budget_ns"] for r in first])
t.check("each is stored", len(t.tool("db", "show", "--json").json["entries"]) == 3)
shares = [3 / 5.5, 1.5 / 5.5, 1 / 5.5]
seconds = [r["default"]["median_seconds"] / r["default"]["batch"] for r in results]
gains = [r["gain"]["ratio"] for r in results]
tuned = [s * t0 / g for s, t0, g in zip(shares, seconds, gains)]
gain = sum(s * t0 for s, t0 in zip(shares, seconds)) / sum(tuned)
width = math.sqrt(sum((part / sum(tuned) * math.log(r["gain"]["interval"][1] / r["gain"]["ratio"])) ** 2 for part, r in zip(tuned, results)))
t.check("the mix's gain, worked out here", abs(mix["gain"] / gain - 1) < 1e-6 and abs(mix["interval"][1] / (gain * math.exp(width)) - 1) < 1e-6
        and abs(mix["tuned_seconds"] / sum(tuned) - 1) < 1e-6, (mix, gain, width))
t.check("its shares add up to 1", abs(sum(w["share"] for w in mix["workloads"]) - 1) < 1e-9, mix)
text = tune()
t.check("the same as text", "By these shares a step of an image takes" in text.out and " 55 %" in text.out and text.out.count("Stored.") == 3, text)
t.check("of time and device time there is no sum", "their objectives differ" in tune(mix=t.write("two.json", {"workloads": [
    {"model": "one"}, {"model": "two", "objective": "cost"}]})).out)
one = tune("--json", mix=t.write("one.json", {"workloads": [{"model": "one"}]}))
t.check("a list of one is a list", len(one.json["results"]) == 1 and one.json["mix"]["gain"] == one.json["results"][0]["gain"]["ratio"], one)
fails = tune("--json", mix=t.write("fails.json", {"workloads": [{"model": "one", "start-timeout": "1us"}, {"model": "two"}]}))
t.check("one that fails leaves the others, and the command's code is its code", fails.code != 0 and len(fails.json["results"]) >= 1
        and fails.json["results"][-1]["verdict"] == "faster" and "fails.json, workload 1: " in fails.err, fails)

# ---- a list that was killed after any record of its journals
shutil.rmtree(t.path / "db")
whole = tune("--json")
texts = [(path.name, path.read_bytes()) for path in journals()]
kinds = [[r["kind"] for r in records(path)] for path in journals()]
cuts = [(j, at) for j in range(3) for at in range(9 if j == 0 else 0, kinds[j].index("end") + (j < 2), 3)]
for j, at in cuts:
    shutil.rmtree(t.path / "db")
    RUNS.mkdir(parents=True)
    for k, (name, text) in enumerate(texts[:j + 1]):
        lines = text.splitlines(keepends=True)
        ends = [i for i, line in enumerate(lines) if line.endswith(b"}\n")]
        (RUNS / name).write_bytes(text if k < j else b"".join(lines[:ends[at] + 1]))
    ended = [work(r) for r in (records(path)[0] for path in journals()[:j])]
    resumed = tune("--resume", "--json")
    new = [work(records(path)[0]) for path in journals()[j + 1:]]
    ok = resumed.code == 0 and [r["verdict"] for r in resumed.json["results"]] == ["faster"] * 3 and not set(new) & set(ended)
    ok = ok and resumed.json["results"][:j] == whole.json["results"][:j] and sum(r["elapsed_seconds"] for r in resumed.json["results"]) <= 91
    if not ok:
        t.check(f"killed in session {j + 1} after {at} records", False, (ended, new, resumed))
t.check(f"killed at {len(cuts)} points: what came to its end is shown again, the rest is tuned", True)
again = tune("--resume", "--json")
t.check("a list at its end is not resumed", "came to its end" in again.err and len(journals()) > j + 3, again)

# ---- bad rows, found before anything runs
BAD = [({"workloads": []}, "has 0 workloads, expected 1 to 64"), ({"workloads": [{}] * 65}, "has 65 workloads"), ({"works": []}, "'works'"),
       ([], "is not a JSON object"), ({"workloads": [{"model": "one"}, 3]}, "workload 2: it is not a JSON object"),
       ({"workloads": [{"modle": "one"}]}, "workload 1: unknown option --modle, did you mean --model?"),
       ({"workloads": [{"model": "one"}, {"size": "0"}]}, "workload 2: --size '0'"), ({"workloads": [{"size": "64,32"}]}, "one size, not 2"),
       ({"workloads": [{"budget": "3s"}]}, "'budget' is the same for all workloads"), ({"workloads": [{"share": 0}]}, "'share' is not a number above 0"),
       ({"workloads": [{"share": "1"}]}, "'share' is not"), ({"workloads": [{"lossy": False}]}, "'lossy' is neither a text, a number nor true"),
       ({"workloads": [{"model": None}]}, "neither a text"), ({"workloads": [{"search": "no"}]}, "workload 1: "), ("{", "is not valid JSON"),
       ({"workloads": [{"": "x"}]}, "'' is not the name of an option"), ({"workloads": [{"size=8": True}]}, "'size=8' is not the name"), ({"workloads": [{"size": 8}, {"model": "x"}, {"share": 2, "size": "8"}]}, "workload 3 is the same as workload 1")]
shutil.rmtree(t.path / "db")
for text, *parts in BAD:
    bad = tune(mix=t.write("bad.json", text))
    if not bad.code == 2 or any(part not in bad.err for part in parts) or "\x1b" in bad.err or bad.err.count("\n") != 1:
        t.check(f"bad: {text}", False, bad)
t.check(f"{len(BAD)} bad files: one sentence each", True)
t.exits("a file that is not there", tune(mix="none.json"), 74, "none.json")
t.check("nothing was stored", not journals())
t.none_left()
t.finish()
