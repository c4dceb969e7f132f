# SPDX-License-Identifier: MIT
"""The machine is half as fast for a while, and nothing shows why. Plans tried in that time are compared with the incumbent as it is
then: the best one among them is not lost, whether it was dropped as slow or only ranked so. Times are planted and virtual."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
PLANS, BEST = 48, 17
t = Dittune()


def session(busy, best=70):
    shutil.rmtree(t.path / "db", ignore_errors=True)
    ns = [100 * MS] + [(104 + k % 9) * MS for k in range(1, PLANS)]
    ns[BEST] = best * MS
    t.scenario(ns=ns, cv=0.01, start_ns=400 * MS, busy=busy)
    (t.path / "clock").unlink(missing_ok=True)
    done = t.tune("--budget", "5m", "--search", "exhaustive", "--json")
    journal = sorted((t.path / "db" / "runs").glob("*.jsonl"))[-1]
    return done, [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]


def trials(records, plan):
    return [r for r in records if r["kind"] == "trial" and r["plan"]["plan"] == plan]


done, records = session([[0, 1]], best=106)
tried = (trials(records, BEST)[0]["t_mono_ns"] - records[0]["t_mono_ns"]) * 1e-9
t.check("on a steady machine nothing is undone", not [r for r in records if r["kind"] == "undone"], done)
t.check("the incumbent is visited now and then", [r for r in records if r["kind"] == "visit"], done)
t.check("in a tenth of the time", sum(r["cost_ns"] for r in records if r["kind"] == "visit") * 1e-9 < 0.12 * 70, done)

for before, after in ((2, 25), (14, 14), (10, 200)):
    done, records = session([[0, 1], [max(tried - before, 0), 2], [tried + after, 1]])
    of_best = trials(records, BEST)
    t.check(f"slow from {before} s before to {after} s after its trial: the best plan is found", done.code == 0 and
            done.json["verdict"] == "faster" and done.json["best"]["plan"]["plan"] == BEST, done)
    t.check("it came back, or is known not to have met the slow time", len(of_best) > 1 or of_best[0].get("slowdown"), of_best)
    again = t.tool("analyze", sorted((t.path / "db" / "runs").glob("*.jsonl"))[-1], "--json")
    t.check("a session that is read back is the same", again.json and again.json["best"] == done.json["best"], again)
t.finish()
