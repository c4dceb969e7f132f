# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune analyze on comparisons of known truth: verdicts, peeking, ranking."""
import math
import statistics

import noise
import truth


def comparisons(records):
    return truth.analyze(records)["comparisons"]


# ---- the rule, once more: what docs/measuring-appendix.md says, by plain arithmetic

def set_logs(a, b, sets):
    """The median log ratio of each set in which both were visited at least twice."""
    out, at = [], 0
    for rounds in sets:
        logs = [math.log(y / x) for x, y in zip(a[at:at + rounds], b[at:at + rounds]) if x and y]
        if len(logs) >= 2:
            out.append(statistics.median(logs))
        at += rounds
    return out


T = {(alpha, n): noise.student(1 - alpha, n - 1) for _, alpha in noise.SET_LOOKS for n in range(2, 17)}


def set_ratio(a, b, sets, alpha):
    """(ratio, low, high, sets) by Student's t."""
    logs = set_logs(a, b, sets)
    mean = statistics.fmean(logs)
    if len(logs) < 4:
        return math.exp(mean), None, None, len(logs)
    half = T[alpha, len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs)


def judge_sets(entrants, sets):
    """(sets, [ratio of each entrant]) of a comparison in sets: it stops at the first look at which all is decided."""
    def ratios(made, alpha):
        return [set_ratio(entrants[0]["visits_ns"], e["visits_ns"], sets[:made], alpha) for e in entrants]

    for at, alpha in noise.SET_LOOKS:
        if len(sets) < at:
            return len(sets), ratios(len(sets), alpha)
        said = ratios(at, alpha)
        if all(set_verdict(s) != "undecided" for s, e in zip(said[1:], entrants[1:]) if e["decisive"]):
            return at, said
    return at, said


def set_verdict(said):
    if said is None or said[3] < 4:
        return "undecided"
    _, low, high, _ = said
    return "faster" if high < 1 else "slower" if low > 1 else "tie" if high - low <= 0.01 else "undecided"


def exact_sets():
    """Random comparisons in sets, some visits missing: where they stop, ratios, intervals, verdicts as computed here."""
    rng, n, records = truth.stream("exact sets"), truth.dose(100, 2000), []
    for _ in range(n):
        true = [1.0] + [rng.choice((0.9, 0.97, 0.99, 1.0, 1.01, 1.05)) for _ in range(rng.randrange(1, 5))]
        sets, rounds = rng.choice((16, 16, 16, 3, 5, 7, 10)), rng.choice((2, 4, 8))
        visits = noise.in_sets(rng, true, sets, rounds, rng.choice((.002, .005, .02)), residency=rng.choice((0, .005, .02)))
        if rng.random() < 0.3:
            visits[-1][rng.randrange(len(visits[-1]))] = None
        record = noise.comparison(visits, sets=[rounds] * sets)
        record["entrants"][-1]["decisive"] = rng.random() < 0.8
        records.append(record)
    off = 0
    for record, said in zip(records, comparisons(records)):
        made, want = judge_sets(record["entrants"], record["sets"])
        off += said["rounds"] != sum(record["sets"][:made])
        for got, expected in zip(said["entrants"], want):
            off += got["verdict"] != set_verdict(expected)
            if expected is not None:
                ratio, low, high, count = expected
                same = got["interval"] == [None, None] if low is None else (
                    truth.close(got["interval"][0], low, 1e-7) and truth.close(got["interval"][1], high, 1e-7))
                off += not (truth.close(got["ratio"], ratio) and same and got["sets"] == count)
    truth.none_of("exact: sets, ratio, interval, verdict", off, n)


PLACES = {"1 % a residency": {"residency": 0.01}, "2 % a residency": {"residency": 0.02}, "two modes 8 % apart": {"modes": 0.08}}


def places():
    """Two equal plans that lie better or worse for as long as they are resident."""
    n = truth.dose(400, 4000)
    for name, place in PLACES.items():
        rng = truth.stream(name)
        said = [s["entrants"][1] for s in comparisons(
            [noise.comparison(noise.in_sets(rng, [1, 1], 16, 4, 0.01, **place), sets=[4] * 16) for _ in range(n)])]
        truth.at_most(f"places: {name}: 'faster'", sum(s["verdict"] == "faster" for s in said), n, 0.025)
        truth.at_least(f"places: {name}: interval holds 1", sum(s["interval"][0] <= 1 <= s["interval"][1] for s in said),
                       n, 0.95)


# ---- what chance makes of it

def verdicts(name, n, slower, cv):
    rng = truth.stream(name)
    said = comparisons([noise.comparison(noise.in_sets(rng, [1, 1 + slower], 16, 4, cv), sets=[4] * 16) for _ in range(n)])
    return [result["entrants"][1] for result in said]


def peeking():
    """Five looks at two equal plans: 'faster' or 'slower' in at most 5 % of all, however often it was looked."""
    for cv in (0.01, 0.03):
        n = truth.dose(800, 20000)
        said = verdicts(f"peeking {cv}", n, 0, cv)
        hits = sum(s["verdict"] in ("faster", "slower") for s in said)
        truth.at_most(f"looks: two equal plans, cv {100 * cv:g} %: 'faster' or 'slower'", hits, n, 0.05)
        truth.at_most(f"looks: two equal plans, cv {100 * cv:g} %: 'faster'", sum(s["verdict"] == "faster" for s in said),
                      n, 0.025)


def ratio():
    """A plan 3 % faster: 'faster', and the interval holds the planted ratio."""
    n = truth.dose(400, 8000)
    said = verdicts("ratio", n, -0.03, 0.01)
    truth.at_least("ratio: -3 %, cv 1 %: faster", sum(s["verdict"] == "faster" for s in said), n, 0.99)
    truth.mean_within("ratio: -3 %, cv 1 %", [s["ratio"] / 0.97 - 1 for s in said], 0.002)
    truth.at_least("ratio: interval holds it", sum(s["interval"][0] <= 0.97 <= s["interval"][1] for s in said), n, 0.95)


def rankings(name, n, sets):
    """(mean of Kendall's tau, how often the best is among the three first) of 24 plans 1 % apart."""
    rng, taus, top = truth.stream(name), [], 0
    true = [1.01 ** k for k in range(24)]
    records, orders = [], []
    for _ in range(n):
        order = rng.sample(true, len(true))
        orders.append(order)
        records.append(noise.comparison(noise.in_sets(rng, order, sets, 4, 0.02), sets=[4] * sets))
    for order, said in zip(orders, comparisons(records)):
        ratios = [entrant["ratio"] for entrant in said["entrants"]]
        taus.append(noise.tau(ratios, order))
        best = sorted(range(24), key=ratios.__getitem__)[:3]
        top += any(order[k] == true[0] for k in best)
    return taus, top


def ranking():
    n = truth.dose(60, 1500)
    for sets, target in ((3, 0.94), (5, 0.96)):
        taus, top = rankings(f"ranking {sets}", n, sets)
        mean, slack = statistics.fmean(taus), 3 * statistics.stdev(taus) / math.sqrt(n)
        truth.report(f"ranking: 24 plans 1 % apart, {sets} sets of 4 rounds: Kendall's tau", n, f"{mean:.4f}",
                     f">= {target} - 3 sigma = {target - slack:.4f}", mean >= target - slack)
        truth.at_least(f"ranking: {sets} sets: the best is among the first three", top, n, 0.99)


for check in (exact_sets, places, peeking, ratio, ranking):
    if truth.wanted(check.__name__):
        check()
truth.finish()
