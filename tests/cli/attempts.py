# SPDX-License-Identifier: MIT
# ctest:
"""Default, baseline and --against that crash, hang or break the protocol are tried again while there is time; the last attempt
that ran counts. What fails alike every time is tried once."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
SLOWER = [MS, 1.2 * MS, 1.3 * MS, 1.4 * MS]  # plan 0, the default, is the fastest
FASTER = [MS, 0.8 * MS, 1.2 * MS, 1.1 * MS]
RANKS = dict(axes={"ranks": [1, 2], "tile": [1, 2]}, weights={"ranks": 0.2, "tile": 0.1}, best={"ranks": 2, "tile": 2})
t = Dittune()


def session(faults, *options, **scenario):
    t.path.joinpath("scenario.json.log").unlink(missing_ok=True)  # where the strikes of "first" are counted
    t.scenario(cv=0.005, faults=faults, **scenario)
    return t.tune("--budget", "60s", "--json", *options)


def outcomes(done, **plan):
    """The outcomes of this plan's trials, in order."""
    return [trial["outcome"] for trial in (done.json or {}).get("trials", [])
            if plan.items() <= trial["plan"].items()]


def once(fault, outcome, at, **how):
    name = f"the default's {outcome} ({at})"
    faults = [{"when": {"plan": 0}, "do": fault, "at": at, "first": 1, **how}]
    done = session(faults, ns=SLOWER)
    t.check(f"{name}: tried again, and stays the best",
            done.code == 0 and outcomes(done, plan=0) == [outcome, "ok"] and done.json["best"]["plan"] == {"plan": 0}
            and done.json["verdict"] == "default", done)
    done = session(faults, ns=FASTER)
    t.check(f"{name}: what is faster still wins",
            done.code == 0 and done.json["best"]["plan"] == {"plan": 1} and done.json["verdict"] == "faster", done)


def before_the_final_comparison():
    done = session([{"when": {"plan": 0}, "do": "exit", "at": "run", "first": 2}], ns=SLOWER)
    trials = [(trial["plan"]["plan"], trial["outcome"]) for trial in (done.json or {}).get("trials", [])]
    t.check("a third attempt comes after the search",
            done.code == 0 and trials[:2] == [(0, "crashed")] * 2 and trials[-1] == (0, "ok") and len(trials) == 6
            and done.json["verdict"] == "default", done)
    report = t.tool("analyze", t.path / "db" / "runs" / f"{done.json['journal']}.jsonl")
    t.exits("the report counts plans, not attempts", report, 0, "4 of 4 plans tried, 0 failed")


def no_fourth():
    done = session([{"when": {"plan": 0}, "do": "exit", "at": "run"}], ns=SLOWER)
    t.check("three attempts are all", outcomes(done, plan=0) == ["crashed"] * 3, done)


def deterministic():
    for fault, outcome in (("infeasible", "infeasible"), ("wrong", "wrong answer"), ("unapplied", "not applied")):
        when = {"when": {"plan": 0}, "do": fault, **({"skip": 1} if fault == "wrong" else {})}  # the reference is plan 0, too
        done = session([when], ns=SLOWER)
        t.check(f"{outcome}: one attempt", outcomes(done, plan=0) == [outcome], done)


def no_memory():
    fault = {"when": {"plan": 0}, "do": "memory", "skip": 1}  # the reference is plan 0, too
    done = session([{**fault, "first": 1}], ns=SLOWER)
    t.check("once out of memory: tried again after the search, and stays the best",
            done.code == 0 and outcomes(done, plan=0) == ["out of memory", "ok"] and done.json["best"]["plan"] == {"plan": 0}
            and done.json["verdict"] == "default", done)
    done = session([fault], ns=SLOWER)
    t.check("always out of memory: two attempts, and the fastest of the others is the best",
            done.code == 0 and outcomes(done, plan=0) == ["out of memory"] * 2 and done.json["best"]["plan"] == {"plan": 1}
            and done.json["verdict"] == "unopposed", done)
    done = session([], "--max-bytes", "2MiB", ns=SLOWER, bytes={"0": 3 << 20})
    t.check("more than --max-bytes: one attempt", outcomes(done, plan=0) == ["out of memory"], done)


def strays():
    done = session([{"when": {"plan": 1}, "do": "exit", "at": "run", "first": 1}], ns=FASTER)
    t.check("the fastest crashes once: it is tried again, and found", outcomes(done, plan=1) == ["crashed", "ok"]
            and done.json["best"]["plan"] == {"plan": 1} and done.json["verdict"] == "faster", done)
    done = session([{"when": {"plan": k}, "do": "exit", "at": "run"} for k in range(2, 6)], ns=[MS, 0.8 * MS] + [MS] * 6)
    t.check("four that crash are not tried again", [outcomes(done, plan=k) for k in range(2, 6)] == [["crashed"]] * 4, done)


def the_others():
    done = session([{"when": {"ranks": 1, "tile": 1}, "do": "exit", "at": "run", "first": 1}], **RANKS,
                   parameters=[{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 2},
                               {"name": "tile", "values": [1, 2], "default": 1}])
    t.check("a crash of the baseline", done.code == 0 and outcomes(done, ranks=1, tile=1) == ["crashed", "ok"]
            and done.json["baseline"]["plan"] == {"ranks": 1, "tile": 1} and done.json["verdict"] == "faster", done)
    done = session([{"when": {"plan": 3}, "do": "segv", "first": 1}], "--against", "plan=3", ns=SLOWER)
    t.check("a crash of --against", done.code == 0 and outcomes(done, plan=3) == ["crashed", "ok"]
            and done.json["against"]["plan"] == {"plan": 3}, done)


def nothing_measured():
    t.path.joinpath("scenario.json.log").unlink(missing_ok=True)
    t.scenario(cv=0.005, ns=SLOWER, faults=[{"when": {"plan": k}, "do": "exit", "at": "run"} for k in range(4)])
    done = t.tune("--budget", "60s")
    t.check("nothing was measured: the report's table has no head", done.code != 0 and "default" in done.out and "interval" not in done.out, done)


once("exit", "crashed", "run")
once("segv", "crashed", "prepare", skip=1)  # the reference is prepared first
once("hang", "hung", "measure")
once("garbage", "protocol", "warmup")
once("error", "failed", "run")
before_the_final_comparison()
no_fourth()
deterministic()
no_memory()
strays()
the_others()
nothing_measured()
t.none_left()
t.finish()
