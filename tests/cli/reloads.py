# SPDX-License-Identifier: MIT
# ctest: dose
"""Plans that share a loaded group follow each other where the order of trials is free, and the session says at the start how
long a decided answer takes, with loads wherever a worker spends their time."""
import itertools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, Dittune

MS, SECOND = 1_000_000, 1_000_000_000
UNITS = {"s": 1, "min": 60}
RANKS, TILES = [1, 2, 3, 4], list(range(1, 13))
PLANS = {(ranks, tile) for ranks in RANKS for tile in TILES}
stores = itertools.count()  # no session knows plans of another
t = Dittune(DITTUNE_CLOCK_LOOK="0")
MEMORY = t.tool("machine", "--json").json["limits"]["memory_bytes"]


def session(budget, *args, share=0.45, chunks=1, **fields):
    """Of groups that need this share of the memory: two stay loaded at 0.45. chunks: so many times 48 plans."""
    faults = [{"when": {"ranks": n}, "at": "prepare", "do": "answer", "fields": {"peak_bytes": [int(share * MEMORY / n)] * n}}
              for n in RANKS]
    t.scenario(axes={"ranks": RANKS, "tile": TILES, **({"chunk": list(range(chunks))} if chunks > 1 else {})},
               weights={"ranks": .1, "tile": .1}, best={"ranks": 2, "tile": 4}, base=20 * MS, cv=.01, faults=faults, **fields)
    t.path.joinpath("scenario.json.log").unlink(missing_ok=True)
    done = t.tool("--worker", t.worker, "--devices", 4, "--budget", budget, "--db", t.path / f"store{next(stores)}", "--json", *args)
    tried = [tuple(trial["plan"].values())[:2] for trial in done.json["trials"]] if done.json else []
    return done, tried, sum(one[0] != other[0] for one, other in zip(tried, tried[1:]))


def said_seconds(done):
    found = re.search(r"a decided answer takes about (\d+) (s|min)(?: (\d+) s)? for (\d+) plans", " ".join(done.err.split()))
    return (int(found[1]) * UNITS[found[2]] + int(found[3] or 0), int(found[4])) if found else (0, 0)


def grouped():
    best = {"ranks": RANKS[2], "tile": TILES[4]}
    for where in "start_ns", "load_ns":
        for seed in (1, 2, 3) if FULL else (1,):
            done, tried, changes = session("15m", "--seed", seed, **{where: 20 * SECOND})
            t.check(f"{where}: every plan is tried in the time for trials, seed {seed}", done.code == 0 and set(tried) == PLANS, done)
            t.check(f"{where}: each group is loaded once", changes == len(RANKS) - 1, tried)
            t.check(f"{where}: the best plan is found", done.json["best"]["plan"] == best, done)
    orders = {tuple(dict.fromkeys(ranks for ranks, _ in session("15m", "--seed", seed, load_ns=20 * SECOND)[1])) for seed in range(1, 9 if FULL else 6)}
    t.check("the order of the groups follows from the seed", len(orders) > (2 if FULL else 1), orders)
    _, tried, changes = session("15m", load_ns=20 * SECOND, switch=4, protocol=2, launch="self")
    t.check("plans that a worker switches in place need no order", set(tried) == PLANS and changes > 20, tried)
    _, tried, changes = session("15m")
    t.check("loads that take no time change little", set(tried) == PLANS and changes > 20, tried)


def short_starts():
    """Each run of a command is a start of 0.3 s that prints steps of 10 ms: the budget that is named decides, and the time that is said is
    the session's."""
    def session(budget):
        t.scenario(axes={"a": [0, 1, 2, 3]}, weights={"a": .5}, best={"a": 2}, base=10 * MS, cv=.01, protocol=2, launch="self", unit="run",
                   faults=[{"at": at, "do": "delay", "ns": 300 * MS} for at in ("prepare", "measure")])
        return t.tool("--worker", t.worker, "--devices", 2, "--budget", budget, "--db", t.path / f"short{next(stores)}", "--json")
    done = session("10s")
    named = re.findall(r"a decided answer needs (?:about|at least) --budget (\d+)s", " ".join(done.err.split()))
    t.check("starts of 0.3 s: 10 s are too few, and a budget is named", done.code == 6 and named, done)
    done = session(f"{named[0]}s")
    t.check("which decides", done.code == 0 and done.json["verdict"] == "faster", done)
    done = session("60s")
    t.check("the time that is said is what it takes", done.code == 0 and said_seconds(done)[1] == 4
            and .75 < done.json["elapsed_seconds"] / said_seconds(done)[0] < 1.15, (said_seconds(done), done.json["elapsed_seconds"]))


def planned():
    """Starts of minutes are planned and said: before the first trial where the first start shows them, else after it."""
    for where in "start_ns", "load_ns":
        for share, tiles, budget, plan in (
                (.6, 12, "2h", r"48 plans need 4 \(1[23] min[^)]*\), as those of a group share one and are tried in a row; "
                               r"the final comparison starts its plans in each of 4 sets \(\d+ min[^)]*\)"),
                (.6, 12, "30m", r"48 plans need 4, and there is time for 1, the most promising first;")):
            done, _, _ = session(budget, share=share, **{where: 180 * SECOND})
            err = " ".join(done.err.split())
            notes = re.findall(rf"a start takes about 3 min(?: \d+ s)?: {plan}", err)
            t.check(f"{where} of 180 s in {budget}: it says once how many starts it plans", len(notes) == 1 and err.count("a start takes") == 1, err[:800])
            t.check(f"{where} of 180 s in {budget}: before the first trial where that is known",
                    (err.find("a start takes") < err.find("trial 1")) == (where == "start_ns"), done)
    t.check("starts that take no time are not planned", "a start takes" not in session("15m")[0].err)


def durations():
    for budget, load, share, where in (("15m", 20, .45, "start_ns"), ("15m", 20, .45, "load_ns"), ("40m", 90, .45, "load_ns"),
                                       ("40m", 90, .01, "load_ns"), ("30m", 1, .45, "load_ns")):
        done, tried, _ = session(budget, share=share, **{where: load * SECOND})
        (said, plans), used = said_seconds(done), done.json["elapsed_seconds"]
        name = f"loads of {load} s at {where}, groups of {share} of the memory: "
        t.check(name + "the session says how many plans it will try", plans == len(tried) == len(PLANS), done)
        t.check(name + "and how long it will take", done.code == 0 and said / 2 < used < said, (said, used))
    done, tried, _ = session("30m", "--search", "bayes:stop=0", chunks=40, load_ns=20 * SECOND)
    journal = next(t.path.glob(f"*/runs/{done.json['journal']}.jsonl"))
    search = [json.loads(line) for line in journal.read_text().splitlines() if '"kind":"search"' in line.replace(" ", "")]
    t.check("a search that learns: how many trials fit", len(search) == 1 and 0.5 < len(tried) / search[0]["evaluations"] < 2, search)
    t.check("the journal has the plans that make up for a load", search[0]["in_a_row"] == 64, search)  # the most
    minutes = re.search(r"a decided answer takes about (\d+) min($|\s(?!for))", done.err)
    t.check("and how long it takes, of some of the plans", done.code == 0 and minutes and
            done.json["elapsed_seconds"] < 60 * int(minutes[1]), done)
    done, _, _ = session("3m", load_ns=60 * SECOND)
    needed = re.findall(r"a decided answer needs (?:about|at least) --budget (\d+m)", " ".join(done.err.split()))
    t.check("a budget that is too short: one that is long enough is named", said_seconds(done) == (0, 0) and needed, done)
    done, tried, _ = session(needed[-1], load_ns=60 * SECOND)
    t.check("which decides", done.code == 0, done)


grouped()
short_starts()
planned()
durations()
t.none_left()
t.finish()
