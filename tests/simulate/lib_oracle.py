# SPDX-License-Identifier: MIT
"""The scores of docs/search.md once more, from a recorded table and the keys that were evaluated, with binomials of
whole numbers."""
import gzip
import json
import math
import statistics


def near(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(b))


def load(path):
    """{key: time, None where it failed}"""
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        cache = json.load(file)["cache"]
    return {key: None if isinstance(row["time"], str) else row["time"] for key, row in cache.items()}


def expected(costs, most):
    """The expected least of 1 to `most` draws: it is the k-th of M with probability C(M-k, t-1) / C(M, t)."""
    values, m = sorted(costs), len(costs)
    return [math.fsum(values[k - 1] * (math.comb(m - k, t - 1) / math.comb(m, t)) for k in range(1, m - t + 2))
            for t in range(1, most + 1)]


def found(keys, cost, slowest, evals):
    """The best of the first 1 to `evals` evaluations."""
    best, curve = slowest, []
    for t in range(evals):
        best = min(best, cost[keys[t]]) if t < len(keys) else best
        curve.append(best)
    return curve


def middle(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def differences(o, path):
    """Names of what `dittune simulate --json` printed that the table and the evaluated keys do not give."""
    table, n = load(path), o["evals"]
    ran = [time for time in table.values() if time is not None]
    optimum, slowest = min(ran), max(ran)
    cost = {key: slowest if time is None else time for key, time in table.items()}
    drawn = expected(cost.values(), n)
    curves = [found(keys, cost, slowest, n) for keys in o["evaluated"]]
    each = [statistics.fmean((r - f) / (r - optimum) for r, f in zip(drawn, curve)) for curve in curves]
    regret = [math.exp(statistics.fmean(math.log(curve[t] / optimum) for curve in curves)) for t in range(n)]
    facts = {
        "a key evaluated once": all(len(set(keys)) == len(keys) for keys in o["evaluated"]),
        "score_p.mean": near(o["score_p"]["mean"], statistics.fmean(each)),
        "score_p.each": len(each) == len(o["score_p"]["each"]) and all(map(near, o["score_p"]["each"], each)),
        "regret": len(regret) == len(o["regret"]) and all(map(near, o["regret"], regret)),
        "optimum": near(o["optimum"], optimum),
        "feasible": o["feasible"] == len(table),
        "failed": o["failed"] == len(table) - len(ran),
        "gap": all(near(gap["mean"], regret[int(t) - 1]) for t, gap in o["gap"].items()),
    }
    for percent, row in o["within"].items():
        limit = optimum * (1 + int(percent) / 100)
        first = [next((t for t, best in enumerate(curve, 1) if best <= limit), math.inf) for curve in curves]
        evals = None if middle(first) == math.inf else middle(first)
        facts[f"within {percent}: share"] = near(row["share"], sum(t < math.inf for t in first) / len(first))
        facts[f"within {percent}: median"] = row["median_evals"] == evals
        facts[f"within {percent}: by"] = all(near(by["share"], sum(t <= int(most) for t in first) / len(first))
                                             for most, by in row["by"].items())
    return [name for name, true in facts.items() if not true]
