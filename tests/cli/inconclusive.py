# SPDX-License-Identifier: MIT
# ctest:
"""A budget for too few sets of fresh processes: nothing is decided, the default is kept as provisional, and the report says
what was seen and how many sets would decide."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
SLOW_START = dict(ns=[MS, 0.8 * MS], cv=0.01, start_ns=2_000_000_000, cost_ns=200 * MS)  # six seconds a set
t = Dittune()


def session(budget, *args):
    t.scenario(**SLOW_START)
    return t.tune("--budget", budget, "--search", "exhaustive", *args)


def too_short():
    done = session("26s")
    t.check("two or three sets decide nothing", done.code == 6 and
            re.search(r"got [23] of the 4 sets of fresh processes", " ".join(done.out.split())), done)
    t.check("the candidate is shown, with its ratio and no interval", re.search(r"candidate .*1\.2\d\d \[-, -\]", done.out), done)
    t.check("how many sets decide", "about 4 sets decide" in " ".join(done.out.split()), done)
    t.check("no unknown number is printed", not re.search(r"\b(nan|inf)\b", done.out), done)
    found = t.tool("lookup", "--worker", t.worker, "--json", env={"SCENARIO": t.path / "scenario.json"}).json
    t.check("what is stored is the default, provisional", found["plan"] == {"plan": 0} and found["provisional"], found)
    o = session("26s", "--json").json
    t.check("verdict, and no gain", (o["verdict"], o["gain"]) == ("inconclusive", None), o)


def long_enough():
    o = session("120s", "--json").json
    t.check("four sets decide", (o["verdict"], o["sets"], o["best"]["plan"]) == ("faster", 4, {"plan": 1}), o)


def nothing_tried():
    """The start takes the time for trials: the default alone is no answer either."""
    t.scenario(**dict(SLOW_START, cost_ns=0))
    o = t.tune("--budget", "10s", "--search", "exhaustive", "--json")
    t.check("two sets of the default decide nothing", o.code == 6 and o.json["best"]["plan"] == {"plan": 0} and
            o.json["verdict"] in ("inconclusive", "provisional"), o)
    t.check("the report does not claim that every plan was tried", len(o.json["trials"]) == 1 and o.json["search_note"] is None, o)


too_short()
nothing_tried()
long_enough()
t.none_left()
t.finish()
