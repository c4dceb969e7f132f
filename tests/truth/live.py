# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune run and tune on a worker whose times are planted (tests/scenario): what is printed against what was planted."""
import json
import statistics

import truth

MS = 1_000_000
LONG = 600 * MS  # of a step so long that two are warm-up enough for dittune run
NOISE = {"drift_sd": 0.02, "drift_tau": 60, "spike_share": 0.02, "spike_mean": 0.15}


def maxima(rows):
    return [max(row) * 1e-9 for row in rows]


def steps(entries, mode=""):
    """All rows of a log's run requests, in order."""
    return [row for entry in entries if entry["op"] == "run" and mode in entry["mode"] for row in entry["ns"]]


def kept(result, log):
    """The samples: the steps after warm-up, those left out in which a rank's clock was low."""
    rows = steps(log)
    clocks = [row for entry in log if entry["op"] == "run" for row in entry.get("clock", [[1]] * len(entry["ns"]))]
    return [row for row, clock in list(zip(rows, clocks))[result["warmup_steps"]:] if min(clock) >= 0.95]


def agrees(result, log):
    """Everything dittune derives from the samples, derived once more."""
    warm = kept(result, log)
    columns = list(zip(*warm))
    slowest = maxima(warm)
    last = [sum(row.index(max(row)) == r for row in warm) for r in range(len(columns))]
    skew = statistics.median((max(row) - min(row)) * 1e-9 for row in warm)
    return (result["warmup_steps"] >= len(steps(log, "warmup")) and len(slowest) == len(result["samples_seconds"])
            and all(truth.close(a, b) for a, b in zip(result["samples_seconds"], slowest))
            and truth.close(result["median_seconds"], statistics.median(slowest))
            and all(truth.close(a, statistics.median(c) * 1e-9) for a, c in zip(result["rank_seconds"], columns))
            and result["last_counts"] == last and truth.close(result["skew_seconds"], skew))


def over_ranks():
    """Eight ranks, each late by 1 % at random: a step takes as long as its slowest rank."""
    n, ranks, late = truth.dose(12, 400), 8, 0.01
    quantile = statistics.NormalDist().inv_cdf(0.5 ** (1 / ranks))  # P(all of 8 below) = 1/2
    true, errors, means, firsts, off = MS * 1e-9 * (1 + late * quantile), [], [], [], 0
    rng = truth.stream("over ranks")
    for k in range(n):
        planted = truth.Planted(f"ranks{k}", ns=[MS], ranks=ranks, lateness=late, seed=rng.randrange(1 << 40))
        result = planted.dittune("run")
        log = planted.log()
        off += not agrees(result, log)
        errors.append(result["median_seconds"] / true - 1)
        warm = steps(log)[result["warmup_steps"]:]
        means.append(statistics.median(statistics.fmean(row) for row in warm) * 1e-9 / true - 1)
        firsts.append(statistics.median(row[0] for row in warm) * 1e-9 / true - 1)
    truth.none_of("ranks: sample = slowest rank, median, last, skew, exactly", off, n)
    truth.mean_within("ranks: 8 ranks late by 1 %, bias of the median", errors, 0.001)
    truth.mean_within("ranks: control, mean over the ranks", means, 0.001, fails=True)
    truth.mean_within("ranks: control, rank 0", firsts, 0.001, fails=True)


def one_late_rank():
    """+3 % planted on rank 2 of 4: it is last, and the step is 3 % slower."""
    planted = truth.Planted("late", ns=[MS], ranks=4, late_rank=2, late_size=0.03, lateness=0.001,
                            seed=truth.stream("late").randrange(1 << 40))
    result = planted.dittune("run")
    last = result["last_counts"]
    truth.report("ranks: +3 % on rank 2 is named", 1, str(last), "rank 2 in all steps", last[2] == sum(last))
    truth.mean_within("ranks: +3 % on one rank is the step's", [result["median_seconds"] / (1.03e-9 * MS) - 1], 0.002)


TRANSIENTS = {
    "none": {},
    "first sample x2.5": {"warm_size": 1.5, "warm_steps": 1, "warm_skip": 2},
    "+30 % decaying over 4": {"warm_size": 0.3, "warm_tau": 4},
    "+5 % for 20 samples": {"warm_size": 0.05, "warm_steps": 20, "warm_skip": 2},
    "-4 % for 15 samples": {"warm_size": -0.04, "warm_steps": 15, "warm_skip": 2},
}


def warm_up():
    """Slow (or fast) starts after verification: left out, or called unsteady."""
    n = truth.dose(6, 1000)
    for name, transient in TRANSIENTS.items():
        rng, errors, unsteady, off = truth.stream(name), [], 0, 0
        for k in range(n):
            planted = truth.Planted(f"warm{k}", ns=[LONG], cv=0.01, seed=rng.randrange(1 << 40), **transient)
            result = planted.dittune("run")
            off += not agrees(result, planted.log())
            if result["steady"]:
                errors.append(result["median_seconds"] / (LONG * 1e-9) - 1)
            unsteady += not result["steady"]
        truth.none_of(f"warm-up: {name}: samples, median, exactly", off, n)
        if len(errors) > 1:
            truth.mean_within(f"warm-up: {name}: residual ({unsteady} unsteady)", errors, 0.002)


def long_warm_up():
    """On a quiet machine eight samples of a level slow start look like the truth: dittune run warms up for a second."""
    n, rng, errors = truth.dose(8, 200), truth.stream("long warm-up"), []
    for k in range(n):
        planted = truth.Planted(f"long{k}", ns=[MS], cv=0.001, seed=rng.randrange(1 << 40), warm_size=0.05, warm_steps=20)
        errors.append(planted.dittune("run")["median_seconds"] / (MS * 1e-9) - 1)
    truth.mean_within("warm-up: +5 % for 20 samples, noise 0.1 %: residual", errors, 0.002)


def throttled():
    """The clock of one rank at 60 % for ten steps: labelled, left out, made up for; and for ever: it ends all the same."""
    n, rng = truth.dose(8, 100), truth.stream("throttled")
    errors, off = [], 0
    for k in range(n):
        planted = truth.Planted(f"throttled{k}", ns=[LONG], ranks=4, cv=0.01, seed=rng.randrange(1 << 40),
                                slow_clock=0.6, slow_rank=rng.randrange(4), slow_at=rng.randrange(7, 10), slow_steps=10)
        result = planted.dittune("run")
        off += not (agrees(result, planted.log()) and result["throttled_steps"] == 10 and result["series"]["throttled"])
        errors.append(result["median_seconds"] / (LONG * 1e-9) - 1)
    truth.none_of("throttle: ten steps are told and left out, exactly", off, n)
    truth.mean_within("throttle: what is left", errors, 0.002)
    planted = truth.Planted("always", ns=[MS, 900000], cv=0.002, slow_clock=0.6, slow_at=60, slow_steps=1 << 30,
                            seed=rng.randrange(1 << 40))
    result = planted.dittune("tune", "--budget", "10s", "--search", "exhaustive")
    rows = sum(len(entry["ns"]) for entry in planted.log() if entry["op"] == "run")
    truth.report("throttle: that never ends ends", 1, f"{rows} steps", "< 4000", rows < 4000 and result["rounds"] >= 8)


def few_samples():
    """A plan that is dropped after three samples has no interval; what is printed about it is its three samples."""
    planted = truth.Planted("few", ns=[MS, int(1.6 * MS)], cv=0.01, seed=truth.stream("few").randrange(1 << 40))
    trials = planted.dittune("tune", "--budget", "10s", "--search", "exhaustive")["trials"]
    slow = [trial for trial in trials if trial["outcome"] == "slow"]
    ok = len(slow) == 1 and len(slow[0]["samples_seconds"]) < 6 and slow[0]["interval_seconds"] in (None, [None, None])
    truth.report("few samples: no interval below six", 1, f"{len(slow)} dropped", "interval null", ok)


def mirrored(visits, plans):
    """The rounds of a set are whole, and each second one is the mirror of the one before."""
    rounds = [tuple(visits[at:at + plans]) for at in range(0, len(visits), plans)]
    return all(len(set(r)) == plans for r in rounds) and all(a == b[::-1] for a, b in zip(rounds[::2], rounds[1::2]))


def turns():
    """Sets of fresh processes, the plans prepared in different orders; rounds in pairs, each second one the mirror of the
    first, and not all pairs alike."""
    n, odd, stale = truth.dose(3, 20), 0, 0
    rng = truth.stream("turns")
    for k in range(n):
        planted = truth.Planted(f"turns{k}", ns=[MS, MS, int(0.999 * MS)], cv=0.02, seed=rng.randrange(1 << 40))
        result = planted.dittune("tune", "--budget", "20s", "--search", "exhaustive", "--against", "plan=2", "--seed", str(k + 1))
        orders, prepared = set(), set()
        for log in planted.processes()[-result["sets"]:]:
            visits = [entry["handle"] for entry in log if entry["op"] == "run" and entry["mode"] == "measure"]
            prepared.add(tuple(entry["plan"]["plan"] for entry in log if entry["op"] == "prepare"))
            orders.add(tuple(visits[:len(set(visits))]))
            odd += not mirrored(visits, len(set(visits)))
        stale += len(orders) < 2 or len(prepared) < 2 or result["sets"] < 4
    truth.none_of("turns: sets whose rounds are not whole, or not mirrored", odd, n)
    truth.none_of("turns: comparisons of one order only", stale, n)


def winners_curse():
    """The best of 128 plans that are all alike looks faster than it is; the published figure must not."""
    n, plans, published, raw = truth.dose(4, 1000, thin=4), 128, [], []
    rng = truth.stream("winner")
    for k in range(n):
        planted = truth.Planted(f"winner{k}", ns=[int(1.3 * MS)] + [MS] * plans, cv=0.03, seed=rng.randrange(1 << 40))
        result = planted.dittune("tune", "--budget", "60s", "--search", "exhaustive", "--seed", str(k + 1))
        published.append(result["best"]["median_seconds"] / (MS * 1e-9) - 1)
        raw.append(min(t["median_seconds"] for t in result["trials"] if t["outcome"] == "ok") / (MS * 1e-9) - 1)
    truth.mean_within("winner: published time of the best of 128 alike", published, 0.005)
    truth.mean_within("winner: control, least trial", raw, 0.01, fails=True)


def replay():
    """The record of a session, analysed again, is what the session printed: byte for byte."""
    for name, scenario in (("alike", {"ns": [MS] * 6, "cv": 0.02}), ("ranks", {"ns": [MS, 900000], "ranks": 3, "cv": 0.01}),
                           ("slow start", {"ns": [MS, 990000], "cv": 0.01, "warm_size": 0.05, "warm_steps": 9})):
        planted = truth.Planted("replay", seed=truth.stream(name).randrange(1 << 40), **scenario)
        said = planted.dittune("tune", "--budget", "20s", "--search", "exhaustive", raw=True)
        again = truth.analyze_file(truth.T.path / "db" / "runs" / (json.loads(said)["journal"] + ".jsonl"))
        truth.report(f"replay: {name}: analyze prints what tune printed", 1, len(again), f"{len(said)} bytes", said == again)


def tune_many(name, n, plans, budget="20s", **scenario):
    rng, results = truth.stream(name), []
    for k in range(n):
        planted = truth.Planted(f"tune{k}", ns=plans, seed=rng.randrange(1 << 40), **scenario)
        results.append(planted.dittune("tune", "--budget", budget, "--search", "exhaustive", "--seed", str(k + 1)))
    return results


def alike():
    """A/A through the whole session: nothing is faster than its equal."""
    for plans, n in ((2, truth.dose(8, 4000)), (16, truth.dose(4, 1000))):
        for cv in (0.01, 0.03):
            results = tune_many(f"alike {plans} {cv}", n, [MS] * plans, cv=cv, **NOISE)
            hits = sum(result["verdict"] == "faster" for result in results)
            truth.at_most(f"A/A: {plans} plans alike, cv {100 * cv:g} %, drift 2 %: 'faster'", hits, n, 0.05)


def gain():
    """A plan that is 5 % faster is found, and its gain is the planted one."""
    n = truth.dose(12, 500)
    results = tune_many("gain", n, [MS, int(0.95 * MS), int(1.05 * MS)], cv=0.02, **NOISE)
    found = [result for result in results if result["verdict"] == "faster" and result["best"]["plan"]["plan"] == 1]
    truth.at_least("gain: 5 % faster, cv 2 %, drift 2 %: found", len(found), n, 0.99)
    errors = [result["gain"]["ratio"] * 0.95 - 1 for result in found]
    truth.mean_within("gain: ratio of the medians", errors, 0.002)
    covered = sum(r["gain"]["interval"][0] <= 1 / 0.95 <= r["gain"]["interval"][1] for r in found)
    truth.at_least("gain: interval holds the planted ratio", covered, len(found), 0.95)


for check in (over_ranks, one_late_rank, warm_up, long_warm_up, throttled, few_samples, turns, winners_curse, replay, alike, gain):
    if truth.wanted(check.__name__):
        check()
truth.finish()
