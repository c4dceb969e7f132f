# SPDX-License-Identifier: MIT
# ctest:
"""Plans that fit alone but not beside each other, as large networks on one GPU: the final comparison and check make one resident at
a time, and come to the same end. Memory that is short for a moment decides nothing."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
NS = [MS, 0.8 * MS, 1.2 * MS, 1.1 * MS]  # plan 0 is the default, plan 1 the fastest
t = Dittune()
LOG = t.path / "scenario.json.log"
FINALS = range(2, 6)  # processes: those before them are of the trials and of the shoot-out


def session(*options, **scenario):
    LOG.unlink(missing_ok=True)
    t.scenario(cv=0.005, drift_sd=0.01, **scenario)
    return t.tune("--budget", "60s", "--json", "--search", "exhaustive", *options)


def most_resident():
    """In any process: the most plans at a time."""
    most = now = 0
    for line in LOG.read_text(encoding="utf-8").splitlines():
        entry = {"op": "start"} if line.startswith("#") else json.loads(line)
        now = 0 if entry["op"] == "start" else now + (entry["op"] == "prepare") - (entry["op"] == "release")
        most = max(most, now)
    return most


def struck():
    return '"op":"fault"' in LOG.read_text(encoding="utf-8")


def is_told(done, verdict, plan):
    result = done.json or {}
    return done.code == 0 and result["verdict"] == verdict and result["best"]["plan"] == {"plan": plan} and result["sets"] >= 4


done = session(ns=NS, room=1)
t.check("one at a time: the fastest is found", is_told(done, "faster", 1) and most_resident() == 1, done)
gain = done.json["gain"]
t.check("its gain is the planted one", gain["interval"][0] < 1.25 < gain["interval"][1] and gain["interval"][1] / gain["interval"][0] < 1.1, gain)
t.check("the twin ran, too", done.json["noise"] is not None, done)
again = t.tool("analyze", t.path / "db" / "runs" / f"{done.json['journal']}.jsonl", "--json")
t.check("analyze says the same", again.out == done.out, again)
done = t.tool("check", "--worker", t.worker, "--json", "--budget", "120s")
t.check("check: the stored plan wins", done.code == 0 and done.json["entries"][0]["verdict"] == "wins", done)
done = session(ns=NS, room=2)
t.check("two at a time: the same", is_told(done, "faster", 1), done)

for n in FINALS:
    done = session(ns=[MS, 1.1 * MS, 1.2 * MS, 1.3 * MS], faults=[{"when": {"plan": 0}, "do": "memory", "first": 1, "from": n}])
    t.check(f"the default has no memory once, in process {n}: it stays, decided", is_told(done, "default", 0) and struck(), done)
done = session(ns=NS, faults=[{"when": {"plan": 0}, "do": "memory", "from": FINALS[0]}])
t.check("the default never has memory in the final comparison, but ran before: nothing is decided",
        done.code == 6 and done.json["verdict"] == "provisional", done)
for n in FINALS:
    done = session(ns=NS, faults=[{"when": {"plan": 1}, "do": "hang", "at": "measure", "first": 1, "from": n, "skip": 3}])
    t.check(f"the fastest hangs once, in process {n}: it is the best all the same", is_told(done, "faster", 1) and struck(), done)
t.none_left()
t.finish()
