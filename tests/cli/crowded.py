# SPDX-License-Identifier: MIT
# ctest:
"""Plans that fit alone but not beside each other, as large networks on one GPU: the final comparison and check make two resident at a
time, or one, say so, and come to the same end. Memory that is short for a moment decides nothing."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, log_of_processes

MS = 1_000_000
NS = [MS, 0.8 * MS, 1.2 * MS, 1.1 * MS]  # plan 0 is the default, plan 1 the fastest
t = Dittune()
LOG = t.path / "scenario.json.log"
FINALS = range(2, 6)  # processes of the four sets, where there is one candidate and so no shoot-out


def session(*options, **scenario):
    LOG.unlink(missing_ok=True)
    t.scenario(**{"cv": 0.005, "drift_sd": 0.01, **scenario})
    return t.tune("--budget", "60s", "--json", "--search", "exhaustive", *options)


def most_resident(entries):
    most = now = 0
    for entry in entries:
        now += (entry["op"] == "prepare") - (entry["op"] == "release")
        most = max(most, now)
    return most


def struck():
    return '"op":"fault"' in LOG.read_text(encoding="utf-8")


def is_told(done, verdict, plan):
    result = done.json or {}
    return done.code == 0 and result["verdict"] == verdict and result["best"]["plan"] == {"plan": plan} and result["sets"] >= 4


def says_the_same(done):
    again = t.tool("analyze", t.path / "db" / "runs" / f"{done.json['journal']}.jsonl", "--json")
    t.check("analyze prints the same", again.out == done.out, again)


done = session(ns=NS, room=1)
t.check("one at a time: the fastest is found", is_told(done, "faster", 1), done)
gain = done.json["gain"]
t.check("its gain is the planted one", gain["interval"][0] < 1.25 < gain["interval"][1] and gain["interval"][1] / gain["interval"][0] < 1.1, gain)
t.check("the twin ran, too", done.json["noise"] is not None, done)
says_the_same(done)
done = t.tool("check", "--worker", t.worker, "--json", "--budget", "120s")
t.check("check: the stored plan wins", done.code == 0 and done.json["entries"][0]["verdict"] == "wins", done)
done = session(ns=NS, room=2)
t.check("two at a time: the twin ran, too, beside the default", is_told(done, "faster", 1) and done.json["noise"] is not None
        and done.json["resident"] == "pairs", done)

done = session("--against", "plan=2", ns=NS, room=2)
t.check("three plans, two at a time: the fastest is found", is_told(done, "faster", 1), done)
t.check("each of them beside the default", done.json["resident"] == "pairs" and done.json["against"]["plan"] == {"plan": 2}, done)
t.check("after the first set two plans are resident at a time", [most_resident(entries) for entries in log_of_processes(LOG)[-3:]] == [2] * 3,
        [most_resident(entries) for entries in log_of_processes(LOG)])
t.check("loads: four a set with the twin, and those that did not fit", 0 < done.json["loads"] - 4 * done.json["sets"] <= 4, done)
says_the_same(done)
words = t.tune("--budget", "60s", "--search", "exhaustive", "--against", "plan=2").out
t.check("and the report says so", "each was measured in turn with the first of them, two at a time. Plans were loaded" in " ".join(words.split()),
        words)
done = session("--against", "plan=2", ns=NS, room=1)
t.check("three plans, one at a time: the fastest is found", is_told(done, "faster", 1) and done.json["resident"] == "one", done)
says_the_same(done)

done = session("--against", "plan=2", ns=NS, room=2, drift_sd=0.2, drift_tau=2000)
gain = done.json["gain"]
t.check("in pairs a slow drift of 20 % cancels within the set", is_told(done, "faster", 1) and done.json["resident"] == "pairs"
        and gain["interval"][0] < 1.25 < gain["interval"][1] and gain["interval"][1] / gain["interval"][0] < 1.1, gain)
done = t.tool("check", "--worker", t.worker, "--json", "--budget", "120s")
t.check("check in pairs: the stored plan wins", done.code == 0 and done.json["entries"][0]["verdict"] == "wins", done)
t.check("and says how", done.json["entries"][0]["resident"] == "pairs", done)
for at in ("prepare", "measure"):
    done = session("--against", "plan=2", ns=NS, room=2, faults=[{"when": {"plan": 2}, "do": "exit", "at": at, "first": 1, "from": FINALS[2]}])
    t.check(f"in pairs, one crashes once at {at}: the fastest is found, none is left out", is_told(done, "faster", 1) and struck()
            and done.json["against"] is not None and done.json["resident"] == "pairs", done)
    says_the_same(done)

for n in FINALS:
    done = session(ns=[MS, 1.1 * MS, 1.3 * MS, 1.4 * MS], faults=[{"when": {"plan": 0}, "do": "memory", "first": 1, "from": n}])
    t.check(f"the default is out of memory once, in process {n}: it stays, decided", is_told(done, "default", 0) and struck(), done)
    says_the_same(done)
done = session(ns=NS, faults=[{"when": {"plan": 0}, "do": "memory", "from": FINALS[0]}])
t.check("the default never has memory in the final comparison, but ran before: nothing is decided",
        done.code == 6 and done.json["verdict"] == "provisional", done)
says_the_same(done)
for n in FINALS:
    done = session(ns=NS, faults=[{"when": {"plan": 1}, "do": "hang", "at": "measure", "first": 1, "from": n, "skip": 3}])
    t.check(f"the fastest hangs once, in process {n}: it is still the best", is_told(done, "faster", 1) and struck(), done)
    says_the_same(done)
done = session(ns=NS, room=1, faults=[{"when": {"plan": 0}, "do": "exit", "at": "measure", "first": 1, "from": FINALS[1], "skip": 1}])
t.check("one at a time, the default crashes once: the fastest is found", is_told(done, "faster", 1) and struck(), done)
says_the_same(done)
done = session(ns=NS, faults=[{"when": {"plan": 1}, "do": "memory", "at": "measure", "first": 1, "from": FINALS[0], "skip": 1}])
t.check("the fastest is out of memory in a visit beside the others: it is found", is_told(done, "faster", 1) and struck(), done)
says_the_same(done)
done = session(ns=NS, faults=[{"when": {"plan": 1}, "do": "exit", "at": "measure", "from": FINALS[0]}])
t.check("the fastest crashes in all sets: the default stays, decided", is_told(done, "default", 0), done)
says_the_same(done)
t.none_left()
t.finish()
