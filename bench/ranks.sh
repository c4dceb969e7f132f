#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two ranks of one thread beside one rank of two threads, in dittune's own final comparison.
#
#     bench/ranks.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/ranks.sh" exec python3 - "$@" <<'PY'
import glob, shutil
from lib import *

begin("Two ranks beside two threads", """
DiT-S/2, 256 px, guided, float32, on two cores: plans of 2 ranks with a thread each beside 1 rank with 2 threads (the baseline), out of the
final comparison of `dittune tune --against PLAN`: fresh processes, all plans resident, visited in mirrored rounds. Ratio:
the baseline's step over the plan's, round by round, so above 1 two ranks are faster. Of two replicas of one rank, which make two
images a step, the baseline's step counts twice: the ratio is that of the throughputs.""")
if shutil.which("mpirun") is None or cores() < 2:
    skip("there is no mpirun, or no second core")


def words(plan):
    kept = {name: value for name, value in plan.items() if name in ("ranks", "threads", "batch") or
            (name in ("replicas", "cfg", "ulysses", "ring") and value > 1)}
    return " ".join(f"{name}={value}" for name, value in kept.items())


def compared(store):
    """The plans of the last comparison of the session's journal."""
    records = [json.loads(line) for line in open(glob.glob(store + "/runs/*.jsonl")[0]) if line.strip()]
    finals = [record for record in records if "entrants" in record and record.get("name") != "shoot-out"]
    return [entrant["plan"] for entrant in finals[-1]["entrants"]] if finals else []


def session(number, against, least, *options):
    store = f"{FOLDER}/db{number}"
    found = tool("tune", "--size", 256, "--devices", 2, "--search", "random", "--against", against, "--quiet",
                 "--budget", "60s" if QUICK else "120s", "--db", store, *options)
    plans, baseline = compared(store), found["baseline"]
    for role in ("default", "against"):
        plan = found[role]
        if role == "against" and plan["plan"] == found["default"]["plan"]:
            continue
        if plan["plan"] not in plans or baseline["plan"] not in plans or found["rounds"] < 8:
            tell(f"{words(plan['plan'])}: left out, it came into no final comparison of 8 rounds.")
            continue
        row(f"{words(plan['plan'])}: of {words(baseline['plan'])}", ratios([plan["plan"].get("replicas", 1) * step for step in baseline["samples_seconds"]], plan["samples_seconds"]),
            least=least[role],
            note=f"{plan['median_seconds'] * 1e3:.4g} ms against {baseline['median_seconds'] * 1e3:.4g} ms")


session(1, "ranks=2 ulysses=2 threads=1", dict(default=1, against=None))
session(2, "ranks=2 ring=2 threads=1", dict(default=1, against=None))
session(3, "ranks=1 replicas=2 threads=1", dict(default=1, against=1), "--objective", "throughput")
PY
