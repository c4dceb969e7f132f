# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune analyze on series of known truth: intervals, flags, warm-up, ranks."""
import math
import statistics

import noise
import truth

FLAGS = ("drifting", "stepped", "autocorrelated", "bimodal")


def trials(records):
    return truth.analyze(records)["trials"]


def same(result, samples, level):
    """Median and interval of these samples, computed once more; only for a series that is not autocorrelated."""
    want, got = noise.interval(samples, level), result["interval_seconds"]
    return (truth.close(result["median_seconds"], statistics.median(samples))
            and (want is None and got in (None, [None, None])
                 or want is not None and truth.close(got[0], want[0]) and truth.close(got[1], want[1])))


def exact():
    """Whatever the series: what is printed follows from the samples after warm-up."""
    rng, n, records = truth.stream("exact"), truth.dose(300, 5000), []
    for _ in range(n):
        steps, ranks = rng.randrange(1, 90), rng.randrange(1, 5)
        base = [x * (1.2 if k < 3 else 1) for k, x in enumerate(noise.quiet(rng, steps, 0.02))]
        ns = [[round(x * rng.uniform(1, 1.01) * noise.SECOND) for _ in range(ranks)] for x in base]
        records.append({"kind": "trial", "ns": ns, "least": min(steps, rng.choice((0, 0, 2, 4))), "looks": rng.random() < 0.5,
                        "level": rng.choice((0.95, 0.99))})
    off = wrong_level = 0
    for record, result in zip(records, trials(records)):
        kept = record["ns"][result["warmup_steps"]:]
        slowest = [max(row) * 1e-9 for row in kept]
        least, steps = record["least"], len(record["ns"]) - record["least"]
        spent = next((alpha for at, alpha in noise.LOOKS if len(slowest) <= at), noise.LOOKS[-1][1])
        level = 1 - spent if record["looks"] else record["level"]
        wrong_level += not truth.close(result["interval_level"], level)
        off += len(slowest) != len(result["samples_seconds"])
        off += not all(truth.close(a, b) for a, b in zip(result["samples_seconds"], slowest))
        off += result["warmup_steps"] < least or steps < 8 and result["warmup_steps"] != least
        if slowest and not result["series"]["autocorrelated"]:
            off += not same(result, slowest, result["interval_level"])
        last = [sum(row.index(max(row)) == r for row in kept) for r in range(len(record["ns"][0]))]
        off += bool(slowest) and result["last_counts"] != last
    truth.none_of("exact: samples, median, interval, last ranks", off, n)
    truth.none_of("exact: the level of the look that comes", wrong_level, n)


def coverage():
    """Intervals hold the median as often as they say, and are not wide for nothing."""
    n = truth.dose(300, 4000)
    for name, (draw, median) in noise.DISTRIBUTIONS.items():
        rng = truth.stream(name)
        for size in (10, 20, 30, 50):
            series = [[draw(rng) for _ in range(size)] for _ in range(n)]
            results = trials([noise.trial(x, level=0.95) for x in series])
            pairs = [result["interval_seconds"] for result in results]
            hits = sum(pair[0] is not None and pair[0] <= median <= pair[1] for pair in pairs)
            title = f"interval: {name}, n={size}"
            truth.at_least(f"{title}: coverage", hits, n, 0.94)
            truth.at_most(f"{title}: not too often", hits, n, 0.995)
            theory = statistics.fmean(b - a for a, b in (noise.interval(x, 0.95) for x in series))
            width = statistics.fmean(b - a for a, b in pairs if a is not None) / theory
            truth.report(f"{title}: width over theory", n, f"{width:.3f}", "<= 1.3", width <= 1.3)


def few():
    rng, n = truth.stream("few"), truth.dose(50, 1000)
    records = [noise.trial(noise.quiet(rng, size, 0.02), level=0.95) for size in range(1, 6) for _ in range(n)]
    hits = sum(result["interval_seconds"] not in (None, [None, None]) for result in trials(records))
    truth.none_of("interval: fewer than six samples have none", hits, 5 * n)


def dependent():
    """AR(1) of 0.6: said, or made up for by batches. Of 30 samples a third looks independent, which is known to be short."""
    for size, reached in ((30, 0.80), (64, None)):
        rng, n = truth.stream(f"dependent {size}"), truth.dose(300, 2000)
        results = trials([noise.trial(noise.ar1(rng, size, 0.02, 0.6), level=0.95) for _ in range(n)])
        flagged = sum(r["series"]["autocorrelated"] or not r["steady"] for r in results)
        trusted = [r["interval_seconds"] for r in results if r["steady"] and not r["series"]["interval_unreliable"]]
        held = sum(low is not None and low <= 1 <= high for low, high in trusted)
        truth.at_least(f"AR(1) 0.6, n={size}: reliable intervals hold ({100 * flagged / n:.0f} % flagged)",
                       held, len(trusted), 0.90, reached)


def flags():
    """Drift, a step, two modes are seen; quiet series are not called anything."""
    n, size, cv = truth.dose(600, 4000), 40, 0.01
    rng = truth.stream("flags")
    quiet = trials([noise.trial(noise.quiet(rng, size, cv), level=0.95) for _ in range(n)])
    for flag in FLAGS:
        truth.at_most(f"flags: quiet, n={size}: {flag}", sum(r["series"][flag] for r in quiet), n, 0.015)
    truth.at_most(f"flags: quiet, n={size}: not steady", sum(not r["steady"] for r in quiet), n, 0.015)

    def ramp(k):
        return 1 + 0.02 * k / (size - 1)

    drift = trials([noise.trial([x * ramp(k) for k, x in enumerate(noise.quiet(rng, size, cv))]) for _ in range(n)])
    seen = sum(r["series"]["drifting"] or r["series"]["stepped"] or not r["steady"] for r in drift)
    truth.at_least(f"flags: drift of 2 % over {size}: said", seen, n, 0.70)
    for at, least in ((size // 2, 0.95), (3 * size // 4, 0.90)):
        steps = trials([noise.trial([x * (1.02 if k >= at else 1) for k, x in enumerate(noise.quiet(rng, size, cv))])
                        for _ in range(n)])
        # a step at half may be cut off as a slow start: what is left is then of one piece, and the cut is printed
        cut = sum(r["steady"] and abs(r["warmup_steps"] - at) <= 4 and not r["series"]["stepped"] for r in steps)
        seen = sum(r["series"]["drifting"] or r["series"]["stepped"] or not r["steady"] for r in steps)
        truth.at_least(f"flags: step of 2 % at {at} of {size}: said ({100 * seen / n:.0f} %) or cut off", seen + cut, n, least)


def modes():
    n = truth.dose(200, 1000)
    for size, share, least in ((64, 0.5, 0.95), (64, 0.3, 0.70)):
        rng = truth.stream(f"modes {share}")
        results = trials([noise.trial([noise.two_modes(rng, share, 0.08, 0.01) for _ in range(size)]) for _ in range(n)])
        truth.at_least(f"flags: two modes 8 % apart, {100 * share:g} %, n={size}: said",
                       sum(r["series"]["bimodal"] for r in results), n, least)


TRANSIENTS = {  # name: (factor of sample k - 1, how often it must be cut off or do no harm: the rest is called unsteady)
    "none": (lambda k: 0, 0.98),
    "first sample x2.5": (lambda k: 1.5 if k == 0 else 0, 0.97),
    "+30 % decaying over 4": (lambda k: 0.3 * math.exp(-k / 4), 0.65),
    "+5 % for 20 samples": (lambda k: 0.05 if k < 20 else 0, 0.75),
    "-4 % for 15 samples": (lambda k: -0.04 if k < 15 else 0, 0.75),
}


def after(name, shape):
    """(the median's error where there is a steady state, how many have none) of series that begin so."""
    n, size, cv = truth.dose(300, 4000), 60, 0.01
    rng = truth.stream(name)
    results = trials([noise.trial([x * (1 + shape(k)) for k, x in enumerate(noise.quiet(rng, size, cv))])
                      for _ in range(n)])
    errors = [r["median_seconds"] - 1 for r in results if r["steady"]]
    return errors, n - len(errors), n


def warm_up():
    """Table 1.3 of transients: what is left of them in the median, or that there is no steady state."""
    for name, (shape, least) in TRANSIENTS.items():
        errors, unsteady, n = after(name, shape)
        truth.mean_within(f"warm-up: {name}: residual", errors, 0.002)
        truth.at_least(f"warm-up: {name}: steady", n - unsteady, n, least)
    errors, unsteady, n = after("slow decay", lambda k: 0.1 * math.exp(-k / 15))
    truth.mean_within("warm-up: +10 % decaying over 15: residual", errors, 0.002, reached=0.009)
    truth.at_least("warm-up: +10 % decaying over 15: not steady", unsteady, n, 0.95, reached=0.80)


def ranks():
    """Eight ranks late by 1 % at random: the median of the maxima."""
    n, size, count = truth.dose(200, 1250), 16, 8
    rng = truth.stream("ranks")
    true = 1 + 0.01 * statistics.NormalDist().inv_cdf(0.5 ** (1 / count))
    series = [[[round(noise.SECOND * (1 + 0.01 * rng.gauss(0, 1))) for _ in range(count)] for _ in range(size)]
              for _ in range(n)]
    results = trials([{"kind": "trial", "ns": ns, "least": 0} for ns in series])
    truth.mean_within("ranks: 8 ranks late by 1 %, bias", [r["median_seconds"] / true - 1 for r in results], 0.001)
    means = [statistics.median(statistics.fmean(row) for row in ns) / noise.SECOND / true - 1 for ns in series]
    truth.mean_within("ranks: control, mean over the ranks", means, 0.001, fails=True)


def processes():
    """1 % from start to start, 1 % within: five starts of six steps; all thirty in one heap hold the truth too rarely."""
    n, rng, series = truth.dose(400, 8000), truth.stream("processes"), []
    for _ in range(n):
        starts = [math.exp(0.01 * rng.gauss(0, 1)) for _ in range(5)]
        series.append([start * math.exp(0.01 * rng.gauss(0, 1)) for start in starts for _ in range(6)])
    for fields, name in (({"process_steps": [6] * 5}, "processes: five starts of six steps: coverage"),
                         ({}, "processes: control, in one heap: coverage")):
        results = trials([noise.trial(x, level=0.95, **fields) for x in series])
        hits = sum(r["interval_seconds"][0] <= 1 <= r["interval_seconds"][1] for r in results)
        if fields:
            truth.at_least(name, hits, n, 0.94)
            truth.none_of("processes: not said of how many", sum(r["processes"]["count"] != 5 for r in results), n)
        else:
            truth.report(name, n, f"{100 * hits / n:.4g} %", "< 94 %", hits < 0.94 * n)


for check in (exact, coverage, few, dependent, flags, modes, warm_up, ranks, processes):
    if truth.wanted(check.__name__):
        check()
truth.finish()
