# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune tune and check on plans whose times differ from start to start, as they do where buffers, pages and cores fall anew: nothing
is called faster than its equal, slower plans are not stored, a real gain is found and its interval holds the truth. Each level alone,
and on each of seven kinds of noise."""
import math
import statistics

import truth

MS = 1_000_000
START = 400 * MS  # a start of a worker's processes
LEVELS = {
    "none": {},
    **{f"{kind} {share} %": {f"{kind}_sd": share / 100} for kind in ("residency", "process", "rank") for share in (0.5, 1, 2)},
    "two modes 8 % apart": {"residency_share": 0.5, "residency_size": 0.08},
}
QUIET = {"cv": 0.01}
NOISES = {
    "3 %": {"cv": 0.03},
    "correlated": {"cv": 0.02, "ar1": 0.95},
    "drift": {"cv": 0.01, "drift_sd": 0.02, "drift_tau": 60},
    "spikes": {"cv": 0.01, "spike_share": 0.02, "spike_mean": 0.15},
    "modes": {"cv": 0.01, "mode_share": 0.3, "mode_size": 0.08},
    "late ranks": {"cv": 0.01, "lateness": 0.03},
    "slow starts": {"cv": 0.01, "warm_size": 0.3, "warm_tau": 4},
}
RANKS = {"parameters": [{"name": "plan", "values": list(range(8)), "default": 0},
                        {"name": "ranks", "values": [1, 2], "role": "ranks", "default": 1}]}


def sessions(name, n, noises, plans, level, **scenario):
    """n sessions; they take the noises in turn."""
    rng, results = truth.stream(name), []
    for k in range(n):
        planted = truth.Planted("starts", ns=plans, seed=rng.randrange(1 << 40), start_ns=START,
                                **{**noises[k % len(noises)], **LEVELS[level], **scenario})
        results.append(planted.dittune("tune", "--budget", "60s", "--search", "exhaustive", "--seed", str(k + 1)))
    truth.T.run("rm", "-rf", truth.T.path / "db")
    return results


def equal(name, n, noises, level):
    results = sessions(f"equal {name}", n, noises, [MS] * 8, level, **RANKS)
    truth.at_most(f"starts: 16 equal plans, {name}: 'faster'", sum(r["verdict"] == "faster" for r in results), n, 0.01)


def slower(name, n, noises, level):
    results = sessions(f"slower {name}", n, noises, [MS] + [int((1.01 + k / 1500) * MS) for k in range(16)], level)
    stored = sum(r["best"]["plan"]["plan"] != 0 for r in results)
    truth.at_most(f"starts: the others slower by 1 to 2 %, {name}: stored", stored, n, 0.002)


def faster(name, n, noises, level):
    """The gain's interval, and how many sets and seconds a decision takes. 5 %, and two modes, may be too hard."""
    for share in (0.05, 0.1):
        results = sessions(f"faster {share} {name}", n, noises, [MS, int((1 - share) * MS)], level)
        found = [r for r in results if r["verdict"] == "faster"]
        sets = statistics.fmean(r["sets"] for r in results)
        seconds = statistics.fmean(r["elapsed_seconds"] for r in results)
        told = f"starts: {100 * share:g} % faster, {name}: found ({sets:.1f} sets, {seconds:.1f} s)"
        if share == 0.1 and "modes" not in level:
            truth.at_least(told, len(found), n, 0.95)
        else:
            truth.report(told, n, f"{100 * len(found) / n:.4g} %", "none, it is told", True)
        if found:
            covered = sum(r["gain"]["interval"][0] <= 1 / (1 - share) <= r["gain"]["interval"][1] for r in found)
            truth.at_least(f"starts: {100 * share:g} % faster, {name}: the gain's interval holds it", covered, len(found), 0.94)


def checks(name, n, noises, level):
    """The default against seven equal plans, stored as a session left it, then checked."""
    rng, said = truth.stream(f"checks {name}"), []
    for k in range(n):
        fields = {**noises[k % len(noises)], **LEVELS[level], "ns": [MS] * 8, "start_ns": START}
        truth.Planted("starts", seed=rng.randrange(1 << 40), **fields).dittune("tune", "--budget", "60s")
        done = truth.T.tool("check", "--worker", truth.T.worker, "--json", "--budget", "120s", env={
            "SCENARIO": truth.Planted("starts", seed=rng.randrange(1 << 40), **fields).path})
        said.extend(entry["verdict"] for entry in done.json["entries"])
        truth.T.run("rm", "-rf", truth.T.path / "db")
    wrong = said.count("wins") + said.count("loses")
    truth.at_most(f"starts: equal plans, {name}: WINS or LOSES ({said.count('ties')} ties)", wrong, n, 0.01)
    truth.none_of(f"starts: equal plans, {name}: entries that were not checked", said.count("not checked") + n - len(said), n)


def half(gain):
    low, high = gain["interval"]
    return math.log(high / low) / 2


def later(name, n, noises, level):
    """The gain that a check finds in starts of its own differs from the stored one by no more than both intervals allow. The best of seven
    plans that are up to a tenth faster is stored: what was lucky is chosen, too."""
    rng, differences = truth.stream(f"later {name}"), []
    for k in range(n):
        fields = {**noises[k % len(noises)], **LEVELS[level], "ns": [MS] + [int((1 - rng.uniform(0, 0.1)) * MS) for _ in range(7)], "start_ns": START}
        then = truth.Planted("starts", seed=rng.randrange(1 << 40), **fields).dittune("tune", "--budget", "60s", "--search", "exhaustive")["gain"]
        done = truth.T.tool("check", "--worker", truth.T.worker, "--json", "--until-decided", "10m", env={
            "SCENARIO": truth.Planted("starts", seed=rng.randrange(1 << 40), **fields).path})
        now = [entry["gain_now"] for entry in done.json["entries"]]
        truth.T.run("rm", "-rf", truth.T.path / "db")
        if then and now and now[0]:
            differences.append(abs(math.log(now[0]["ratio"] / then["ratio"])) / math.hypot(half(then), half(now[0])))
    truth.at_least(f"starts: the gain in later starts, {name}: within both intervals", sum(d <= 1 for d in differences), len(differences), 0.93)


for level in list(LEVELS)[::1 if truth.FULL else 3]:
    for kind, replicates, noises in (("alone", truth.dose(2, 1000), [QUIET]), ("on noise", truth.dose(0, 1001), list(NOISES.values()))):
        for check in (equal, slower, faster, checks, later):
            if replicates > 0 and truth.wanted(f"{check.__name__} {level} {kind}"):
                check(f"{level}, {kind}", replicates, noises, level)
truth.finish()
