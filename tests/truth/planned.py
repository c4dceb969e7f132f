# SPDX-License-Identifier: MIT
# ctest: dose
"""Engines whose start takes three minutes, tuned in two hours: where plans share starts, all are tried and the best is decided; where
each plan has its own, the most promising are tried first, and nothing is decided but the best; of a published model on GPUs that have a
card these are the ones that are predicted fast, and the best is decided though true times are 12 % off what is predicted."""
import math
import statistics

import truth

MS, SECOND = 1_000_000, 1_000_000_000
START, BUDGET = 180 * SECOND, "2h"
MEMORY = truth.T.tool("machine", "--json").json["limits"]["memory_bytes"]
RANKS, TILES = [1, 2, 3, 4, 6, 8], list(range(5))


def engine(rng, axes, roles, rules, where, share):
    """A planted engine, and its best plan. share: of the memory that a group takes."""
    weights = {name: rng.uniform(.05, .25) for name in axes}
    best = {name: rng.randrange(len(values) - 1) for name, values in axes.items()}
    parameters = [{"name": name, "values": values, "default": values[0], **roles[name]} for name, values in axes.items()]
    bytes_of = [{"when": {"ranks": n} if "ranks" in axes else {}, "at": "prepare", "do": "answer",
                 "fields": {"peak_bytes": [int(share * MEMORY / n)] * n}} for n in (RANKS if "ranks" in axes else [1])]
    scenario = dict(axes=axes, parameters=parameters, weights=weights, best=best, rules=rules, base=500 * MS, cv=.01, process_sd=.003,
                    seed=rng.randrange(1 << 40), launch="self", faults=bytes_of, **{where: START})
    return scenario, {name: axes[name][place] for name, place in best.items()}


def sessions(name, n, axes, roles, rules=(), share=.6):
    """n sessions of engines that start for three minutes, or load for them: their results, and the truth."""
    rng, results = truth.stream(name), []
    for k in range(n):
        scenario, best = engine(rng, axes, roles, list(rules), ("start_ns", "load_ns")[k % 2], share)
        result = truth.Planted("planned", **scenario).dittune("tune", "--devices", 8, "--budget", BUDGET, "--seed", k + 1)
        results.append((result, best))
        truth.T.run("rm", "-rf", truth.T.path / "db")
    return results


def shared(n):
    """26 plans of six rank counts."""
    results = sessions("shared", n, {"ranks": RANKS, "tile": TILES}, {"ranks": {"role": "ranks"}, "tile": {}},
                       [{"if": "tile < 4 || ranks < 3", "say": "no tile 4 on three ranks"}])
    good = [r for r, best in results if r["verdict"] in ("faster", "default") and r["best"]["plan"] == best]
    truth.at_least("planned starts: 26 plans of 6 groups: decided, and best", len(good), n, .95)
    tried = statistics.fmean(r["tried"] for r, _ in results)
    truth.report("planned starts: 26 plans of 6 groups: tried", n, f"{tried:.1f}", "26", tried == 26)


def alone(n):
    """Each of 26 plans starts for itself."""
    own = {"role": "environment"}
    results = sessions("alone", n, {"a": list(range(13)), "b": [0, 1]}, {"a": {**own, "variable": "A"}, "b": {**own, "variable": "B"}})
    order = [[trial["plan"] for trial in r["trials"]] for r, _ in results]
    places = [tried.index(best) for tried, (_, best) in zip(order, results) if best in tried]
    decided = [r["best"]["plan"] == best for r, best in results if r["verdict"] in ("faster", "default", "tie")]
    truth.at_least("planned starts: each plan has its own: the best is tried", len(places), n, .95)
    truth.at_least("planned starts: each plan has its own: among the first ten", sum(place < 10 for place in places), n, .9)
    truth.none_of("planned starts: each plan has its own: decided, and not the best", decided.count(False), n)


DEGREES, JOB = ("cfg", "tensor", "ulysses", "ring"), {"model": "wan2.1-t2v-14b", "width": 832, "height": 480, "frames": 81, "steps": 50}
SHAPE = ("--model", JOB["model"], "--size", "832x480", "--frames", 81)


def predicted_plans():
    """{degrees: predicted nanoseconds of a step} of 30 plans on eight devices."""
    rows = truth.T.tool("plan", *SHAPE, "--engine", "vllm-omni", "--machine", "8xh100", "--json").json["plans"]
    return {tuple(row["plan"].get(name, 1) for name in DEGREES): row["step_seconds"] * SECOND for row in rows
            if all(name in DEGREES or value == 1 for name, value in row["plan"].items())}


def predicted(n):
    """Each of 30 plans starts for itself; with predictions and without."""
    plans, rng = predicted_plans(), truth.stream("predicted")
    axes = [{"name": name, "role": "environment", "variable": name.upper(), "values": sorted({plan[i] for plan in plans}), "default": 1}
            for i, name in enumerate(DEGREES)]
    best = {"predictions": 0, "none": 0}
    for seed in range(1, n + 1):
        true = {plan: ns * math.exp(rng.gauss(0, .12)) for plan, ns in plans.items()}
        truth.T.scenario(parameters=axes, rules=[{"if": "cfg * tensor * ulysses * ring <= 8", "say": "at most eight devices"}], ns=[SECOND],
                         plans=[{"when": dict(zip(DEGREES, plan)), "ns": ns} for plan, ns in true.items()], cv=.01, process_sd=.005,
                         start_ns=START, seed=seed, protocol=2, engine="vllm-omni", obeys=list(JOB), job=JOB, card="NVIDIA H100 80GB HBM3", log=False)
        for name, words in (("predictions", ()), ("none", ("--prior", "none"))):
            done = truth.T.tune(*SHAPE, "--steps", 50, "--budget", BUDGET, "--seed", seed, "--db", truth.T.path / "db", "--json", *words)
            got = tuple(done.json["best"]["plan"][degree] for degree in DEGREES)
            best[name] += done.json["verdict"] in ("faster", "default") and got == min(true, key=true.get)
            truth.T.run("rm", "-rf", truth.T.path / "db")
    truth.at_least("planned starts: predicted plans: decided, and best", best["predictions"], n, .75)
    truth.report("planned starts: the same without predictions", n, f"{best['none']}", "", True)


for check, replicates in ((shared, truth.dose(2, 20)), (alone, truth.dose(2, 20)), (predicted, truth.dose(1, 20))):
    if truth.wanted(check.__name__):
        check(replicates)
truth.finish()
