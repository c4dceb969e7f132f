# SPDX-License-Identifier: MIT
# ctest: ranks
"""`noise`: a plan against itself; what is printed follows from the visits that are printed with it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune
import sets

SMALL = SOURCE / "tests/cli/small.json"


def check_visits(t):
    t.scenario(ns=[1_000_000, 900_000], cv=0.02)
    done = t.tool("noise", "--worker", t.worker, "--json", "--budget", "10h")
    o, copies = done.json, done.json["copies"]
    t.check("all rounds of the default plan", done.code == 0 and o["rounds"] == o["pairs"] >= 64 and
            o["sets"] == 16 and o["plan"] == copies[0]["plan"] == copies[1]["plan"], done)
    made = [o["rounds"] // o["sets"]] * o["sets"]
    ratio = sets.ratio(*(copy["samples_seconds"] for copy in copies), made)
    t.check("the ratio is that of the visits", abs(ratio / o["ratio"] - 1) < 1e-6, done)
    t.check("visits, residencies and starts", o["levels"]["sets"] == 16 and o["levels"]["visit"] > 0 and
            o["levels"]["residency"] >= 0 and o["levels"]["start"] >= 0, o["levels"])
    low, high = o["interval"]
    t.check("the margin is the far end of the interval", abs(o["margin"] - (max(1 / low, high) - 1)) < 1e-12, done)
    t.check("noisy and differs follow from the figures", o["noisy"] == (o["margin"] > .05 or o["cv"] > .05) and
            o["differs"] == (not low <= 1 <= high), done)
    t.check("no trial is stored", not (t.path / "db").exists())


def check_words(t):
    done = t.tool("noise", "--model", SMALL, "--plan", "ranks=1 tile_q=32", "--batch", 2, "--budget", "20s")
    t.check("the report is printed", done.code == 0 and all(part in done.out for part in (
        "ranks=1 ", "tile_q=32", "The smallest difference this machine can resolve now is")), done)
    done = t.tool("noise", "--model", SMALL, "--budget", "1ms")
    t.check("a budget too short", done.code == 6 and "decide nothing" in done.err and done.out == "", done)
    t.exits("a plan that is not legal", t.tool("noise", "--model", SMALL, "--plan", "ranks=2 ring=3"), 3)
    t.exits("one size", t.tool("noise", "--model", SMALL, "--size", "64,128"), 2, "one --size")
    done = t.tool("noise", "--worker", SOURCE / "examples/workers/minimal.py", "--quiet", "--budget", "20s")
    t.check("a foreign worker is compared with itself", done.code == 0 and "minimal" in done.out and done.err == "", done)


test = Dittune(DITTUNE_CLOCK_LOOK="10000000")
check_visits(test)
check_words(test)
test.none_left()
test.finish()
