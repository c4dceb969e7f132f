# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune analyze on comparisons of known truth: verdicts, the gate, peeking, ranking, and what drift does to blocks."""
import math
import statistics

import noise
import truth


def comparisons(records):
    return truth.analyze(records)["comparisons"]


# ---- the rule, once more: what docs/measuring.md says, by plain arithmetic

def judge(entrants, looks):
    """(rounds, [(ratio, interval, pairs)]) of a comparison that stops at the first look at which all is decided."""
    default, rounds = entrants[0]["visits_ns"], len(entrants[0]["visits_ns"])
    rounds = min(rounds, noise.LOOKS[looks - 1][0])

    def ratios(made, alpha):
        out = []
        for entrant in entrants:
            logs = [math.log(b / a) for a, b in zip(default[:made], entrant["visits_ns"]) if a and b]
            pair = noise.interval(logs, 1 - alpha) if len(logs) >= noise.LOOKS[0][0] else None
            out.append((math.exp(statistics.median(logs)), [math.exp(x) for x in pair], len(logs)) if pair else None)
        return out

    said = [None] * len(entrants)
    for k, (at, alpha) in enumerate(noise.LOOKS):
        made = min(at, rounds)
        if made < at and (k == 0 or made == noise.LOOKS[k - 1][0]):
            break
        said = ratios(made, alpha)
        open_ones = [s for s, e in zip(said[1:], entrants[1:]) if e["decisive"] and not decided(s)]
        if made == at and not open_ones or made < at:
            return made, said
    return rounds, said


def decided(said):
    return said is not None and (said[1][1] < 1 or said[1][0] > 1 or said[1][1] - said[1][0] <= 0.01)


def gate(default, tuned, threshold):
    logs = [math.log(b / a) for a, b in zip(default, tuned) if a and b]
    for at, alpha in noise.LOOKS:
        if len(logs) < at:
            break
        low, high = noise.interval(logs[:at], 1 - alpha)
        if high < 0:
            return "win", at
        if high < math.log(1 + threshold):
            return "pass", at
        if low > 0 and statistics.median(logs[:at]) > math.log(1 + threshold):
            return "fail", at
    return "inconclusive", at


def exact():
    """Random comparisons, some visits missing: rounds, ratios, intervals, gate as computed here."""
    rng, n, records = truth.stream("exact"), truth.dose(150, 3000), []
    for _ in range(n):
        true = [1.0] + [rng.choice((0.9, 0.97, 0.99, 1.0, 1.01, 1.05)) for _ in range(rng.randrange(1, 5))]
        visits = noise.interleaved(rng, true, rng.choice((64, 64, 64, 8, 16, 5, 20, 40)), rng.choice((.002, .005, .02)))
        if rng.random() < 0.2:
            visits[-1][rng.randrange(len(visits[-1]))] = None
        record = noise.comparison(visits, looks=rng.choice((4, 4, 4, 1, 2)))
        record["entrants"][-1]["decisive"] = rng.random() < 0.8
        if rng.random() < 0.5 and len(visits[0]) == 64:
            record.update(threshold=0.03, looks=4)
        records.append(record)
    off = gates = 0
    for record, said in zip(records, comparisons(records)):
        rounds, want = judge(record["entrants"], record["looks"])
        off += said["rounds"] != rounds
        for entrant, got, expected in zip(record["entrants"], said["entrants"], want):
            if expected is None:
                off += got["verdict"] != "undecided"
                continue
            ratio, (low, high), pairs = expected
            verdict = "faster" if high < 1 else "slower" if low > 1 else "tie" if high - low <= 0.01 else "undecided"
            off += not (truth.close(got["ratio"], ratio) and truth.close(got["interval"][0], low) and
                        truth.close(got["interval"][1], high) and got["pairs"] == pairs and got["verdict"] == verdict)
            if "threshold" in record and None not in entrant["visits_ns"]:
                expected = gate(record["entrants"][0]["visits_ns"], entrant["visits_ns"], 0.03)
                gates += (got["gate"], got["gate_pairs"]) != expected
    truth.none_of("exact: rounds, ratio, interval, pairs, verdict", off, n)
    truth.none_of("exact: gate and its pairs", gates, n)


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
    """Two equal plans that lie better or worse for as long as they are resident: sets see it, rounds of one start do not."""
    n = truth.dose(400, 4000)
    for name, place in PLACES.items():
        rng = truth.stream(name)
        said = [s["entrants"][1] for s in comparisons(
            [noise.comparison(noise.in_sets(rng, [1, 1], 16, 4, 0.01, **place), sets=[4] * 16) for _ in range(n)])]
        truth.at_most(f"places: {name}: 'faster'", sum(s["verdict"] == "faster" for s in said), n, 0.025)
        truth.at_least(f"places: {name}: interval holds 1", sum(s["interval"][0] <= 1 <= s["interval"][1] for s in said),
                       n, 0.95)
        said = [s["entrants"][1] for s in comparisons(
            [noise.comparison(noise.in_sets(rng, [1, 1], 1, 64, 0.01, **place)) for _ in range(n)])]
        hits = sum(s["verdict"] == "faster" for s in said)
        truth.report(f"places: {name}: control, one start: 'faster'", n, f"{100 * hits / n:.3g} %", "> 10 %", hits > 0.1 * n)


# ---- what chance makes of it

def gates(name, n, slower, cv, make=noise.interleaved):
    """How often each verdict of the gate is given, and the mean number of pairs."""
    rng = truth.stream(name)
    records = [noise.comparison(make(rng, [1, 1 + slower], 64, cv), threshold=0.03) for _ in range(n)]
    said = [result["entrants"][1] for result in comparisons(records)]
    count = {word: sum(s["gate"] == word for s in said) for word in ("pass", "win", "fail", "inconclusive")}
    return count, statistics.fmean(s["gate_pairs"] for s in said)


def gate_alike():
    """A plan against itself, 3 % threshold: at most one false alarm in a hundred."""
    n = truth.dose(300, 8000)
    for cv in (0.005, 0.01, 0.02, 0.03):
        count, pairs = gates(f"alike {cv}", n, 0, cv)
        truth.at_most(f"gate: A/A, cv {100 * cv:g} %, drift 2 %: fail ({pairs:.0f} pairs)", count["fail"], n, 0.01)
    count, pairs = gates("alike blocks", n, 0, 0.02, noise.blocks)
    rate, limit = count["fail"] / n, truth.allowed(n, 0.01) / n
    truth.report("gate: control, A/A in blocks under drift: fail", n, f"{100 * rate:.3g} %", f"> {100 * limit:.3g} %",
                 rate > limit)


def gate_power():
    """Slower by more than the threshold is caught; faster is a win."""
    n = truth.dose(300, 8000)
    for slower, cv, target in ((0.06, 0.01, 0.99), (0.06, 0.03, 0.99), (0.045, 0.01, 0.89), (0.045, 0.02, 0.89),
                               (0.045, 0.03, 0.89)):
        count, pairs = gates(f"power {slower} {cv}", n, slower, cv)
        name = f"gate: +{100 * slower:g} %, cv {100 * cv:g} %"
        truth.at_least(f"{name}: fail ({pairs:.0f} pairs)", count["fail"], n, target)
        truth.at_most(f"{name}: pass or win", count["pass"] + count["win"], n, 0.001)
    count, pairs = gates("win", n, -0.10, 0.03)
    truth.at_least(f"gate: -10 %, cv 3 %: win or pass ({pairs:.0f} pairs)", count["win"] + count["pass"], n, 0.999)


def verdicts(name, n, slower, cv, make=noise.interleaved):
    rng = truth.stream(name)
    said = comparisons([noise.comparison(make(rng, [1, 1 + slower], 64, cv)) for _ in range(n)])
    return [result["entrants"][1] for result in said]


def peeking():
    """Four looks at two equal plans: 'faster' or 'slower' in at most 5 % of all, however often it was looked."""
    for cv, drift in ((0.01, noise.interleaved), (0.03, noise.interleaved), (0.02, noise.blocks)):
        n = truth.dose(800, 20000)
        said = verdicts(f"peeking {cv} {drift.__name__}", n, 0, cv, drift)
        hits = sum(s["verdict"] in ("faster", "slower") for s in said)
        if drift is noise.blocks:
            truth.report("looks: control, two equal plans in blocks: 'faster' or 'slower'", n, f"{100 * hits / n:.3g} %",
                         "> 5 %", hits / n > 0.05)
        else:
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


def rankings(name, n, rounds, make):
    """(mean of Kendall's tau, how often the best is among the three first) of 24 plans 1 % apart."""
    rng, taus, top = truth.stream(name), [], 0
    true = [1.01 ** k for k in range(24)]
    records, orders = [], []
    for _ in range(n):
        order = rng.sample(true, len(true))
        orders.append(order)
        records.append(noise.comparison(make(rng, order, rounds, 0.02)))
    for order, said in zip(orders, comparisons(records)):
        ratios = [entrant["ratio"] for entrant in said["entrants"]]
        taus.append(noise.tau(ratios, order))
        best = sorted(range(24), key=ratios.__getitem__)[:3]
        top += any(order[k] == true[0] for k in best)
    return taus, top


def ranking():
    n = truth.dose(60, 1500)
    for rounds, target in ((10, 0.94), (20, 0.96)):
        taus, top = rankings(f"ranking {rounds}", n, rounds, noise.interleaved)
        mean, slack = statistics.fmean(taus), 3 * statistics.stdev(taus) / math.sqrt(n)
        truth.report(f"ranking: 24 plans 1 % apart, {rounds} rounds: Kendall's tau", n, f"{mean:.4f}",
                     f">= {target} - 3 sigma = {target - slack:.4f}", mean >= target - slack)
        if rounds == 10:
            truth.at_least("ranking: the best is among the first three", top, n, 0.99)
    taus, _ = rankings("ranking blocks", n, 20, noise.blocks)
    mean = statistics.fmean(taus)
    truth.report("ranking: control, in blocks under drift, 20 each", n, f"{mean:.4f}", "< 0.94", mean < 0.94)


for check in (exact, exact_sets, places, gate_alike, gate_power, peeking, ratio, ranking):
    if truth.wanted(check.__name__):
        check()
truth.finish()
