# SPDX-License-Identifier: MIT
# ctest: ranks
"""`run`, `space`, `explain`: fields, laws between them, faults that verification must catch."""
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FAULTY, SOURCE, Dittune

SMALL = SOURCE / "tests/cli/small.json"
RING = "ranks=2 ring=2"
WRONG = "wrong answer"


def near(a, b, most):
    return abs(a / b - 1) <= most


def check_default(t):
    done = t.tool("run", "--model", SMALL, "--json")
    o = done.json
    t.check("run of the default plan", done.code == 0 and o["median_seconds"] > 0 and o["cold_seconds"] > 0, done)
    t.check("samples per second is batch over median",
            near(o["samples_per_second"] * o["median_seconds"], o["batch"], 1e-9), o)
    t.check("flop rate is flops over median", near(o["flop_rate"] * o["median_seconds"], o["flops"], 1e-9), o)
    t.check("peak fraction", math.isclose(o["peak_fraction"], o["flop_rate"] / o["peak_flop_rate"], rel_tol=1e-6), o)
    phases = o["phases"]
    total = sum(kind["ns"] for kind in phases["kinds"])
    t.check("phases make up the step", near(total, phases["step_ns"], 0.02), phases)
    blocks = {block["name"]: block["count"] for block in phases["blocks"]}
    t.check("blocks are counted", blocks["block"] > 0 and blocks["block"] % (3 * phases["steps"]) == 0, phases)


def on_two_processors(run):
    """run() with no more than two processors to see, on any machine."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:2])
    try:
        return run()
    finally:
        os.sched_setaffinity(0, every)


def check_ranks(t):
    done = t.tool("run", "--model", SMALL, "--plan", "ranks=2 ulysses=1 ring=2 overlap=1", "--quick", "--json")
    o = done.json
    t.check("two ranks agree with one", done.code == 0 and o["verified_error"] <= 1e-5 and
            len(o["rank_seconds"]) == 2 and o["baseline"]["ranks"] == 1, done)
    done = on_two_processors(lambda: t.tool("run", "--model", SMALL, "--plan", "ranks=3 ulysses=3", "--quick"))
    t.check("more ranks than cores: runs, says oversubscribed",
            done.code == 0 and "oversubscribed" in done.out and "oversubscribed" in done.err, done)
    done = t.tool("run", "--model", SMALL, "--plan", "ranks=1", "--quick", "--sweep", "batch=1,2,4", "--json")
    t.check("sweep gives the curve", done.code == 0 and [row["batch"] for row in done.json["sweep"]] == [1, 2, 4], done)


def check_quick(t):
    done = t.tool("run", "--model", SMALL, "--plan", RING, "--quick", "--json")
    o = done.json
    t.check("a quick run ends with its first look, verified", done.code == 0 and len(o["samples_seconds"]) == 8
            and o["verified_error"] <= 1e-5, done)
    t.check("and times nothing beside the step", not o["fits"].get("exchanges") and not o.get("peak_flop_rate"), o)


def check_space(t):
    o = t.tool("space", "--model", SMALL, "--devices", 4, "--oversubscribe", "--list", "--json").json
    fewer = on_two_processors(lambda: t.tool("space", "--model", SMALL, "--devices", 4, "--list", "--json").json)
    t.check("what tune leaves out is not counted without --oversubscribe", all(plan["ranks"] <= 2 for plan in fewer["plans"])
            and fewer["feasible"] == len(fewer["plans"]) < o["feasible"], (fewer["feasible"], o["feasible"]))
    t.check("space counts what it lists", o["feasible"] == len(o["plans"]) > 0 and
            math.prod(parameter["size"] for parameter in o["parameters"]) == o["cartesian"], o)
    t.check("degrees multiply to the ranks", all(
        plan["cfg"] * plan["ulysses"] * plan["ring"] == plan["ranks"] for plan in o["plans"]), o)
    done = t.tool("explain", "--model", SMALL, "ranks=4 ulysses=2", "--json")
    t.check("explain names the rule and the way out", done.code == 3 and not done.json["feasible"] and
            done.json["nearest"] and any("heads" in violation["rule"] for violation in done.json["violations"]), done)
    t.exits("explain of a legal plan", t.tool("explain", "--model", SMALL, "ranks=2 ring=2 cfg=1"), 0)


def check_faults(t):
    """Exchanges are counted from 1; the first four of this plan's two verification steps carry keys and values."""
    for fault in ("flip:rank=1:exchange=1:element=5", "flip:rank=0:exchange=4:element=40"):
        done = t.tool("run", "--model", SMALL, "--plan", RING, "--json", env={"DITTUNE_WORKER": FAULTY, "DITTUNE_FAULT": fault})
        t.check(f"one flipped element ({fault}) is a wrong answer", done.code == 1 and WRONG in done.err, done)
    done = tune(t, "flip:rank=1:exchange=1:element=5")
    o = done.json
    wrong = [trial["plan"] for trial in o["trials"] if trial["outcome"] == WRONG]
    t.check("and is never stored", done.code in (0, 6) and wrong and o["best"]["plan"] not in wrong, done)
    # two of the default plan's are in its verification: however few steps there is time for, the third is among them
    done = tune(t, "crash:rank=1:exchange=3")
    o = done.json
    t.check("a crash in an exchange costs its trial", done.code in (0, 6) and o["best"]["plan"]["ranks"] == 1 and
            any(trial["outcome"] == "crashed" for trial in o["trials"]), done)


def tune(t, fault):
    """The budget ends after so many looks at the clock, however long steps take here. On a busy machine, where a step may take more
    looks than there are, again with looks that take less of it."""
    for look in "100000000", "20000000", "2000000":
        done = t.tool("--budget", "60s", "--devices", 2, "--model", SMALL, "--json",
                      env={"DITTUNE_WORKER": FAULTY, "DITTUNE_FAULT": fault, "DITTUNE_CLOCK_LOOK": look})
        if done.code in (0, 6):
            break
    return done


test = Dittune()
check_default(test)
check_ranks(test)
check_quick(test)
check_space(test)
check_faults(test)
test.none_left()
test.finish()
