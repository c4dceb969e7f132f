# SPDX-License-Identifier: MIT
# ctest: dose
"""Other programs come and go in minutes while a session runs, and hit plans unequally: nothing is called faster than its equal, no
slower plan is stored as decided, a true factor of two is found all the same, and without load a true tenth is."""
import random

import truth

MS = 1_000_000
BUDGET = "300s"
SPAN = 330  # seconds that are planted


def load(rng, share=0.5):
    """Moments [(second, factor, cores)]: quiet and busy times of half a minute to two minutes in turn."""
    moments, now, busy = [], 0.0, rng.random() < share
    while now < SPAN:
        factor = rng.uniform(1.2, 3) if busy else 1
        moments.append((now, factor, factor - 1 if busy else 0.02))
        now += rng.uniform(30, 120)
        busy = not busy
    return moments


def sessions(name, n, plans, loaded=True, feels=None):
    """n sessions. feels: by plan, the power with which the load hits it."""
    rng, results = truth.stream(name), []
    for k in range(n):
        moments = load(random.Random(rng.randrange(1 << 40))) if loaded else [(0, 1, 0.02)]
        others = truth.T.write("others", "".join(f"{at} {cores}\n" for at, _, cores in moments))
        planted = truth.Planted("load", ns=plans, cv=0.02, seed=rng.randrange(1 << 40), start_ns=400 * MS, cost_ns=20 * MS,
                                busy=[[at, factor] for at, factor, _ in moments],
                                plans=[{"when": {"plan": plan}, "feels": power} for plan, power in (feels or {}).items()])
        results.append(planted.dittune("tune", "--budget", BUDGET, "--search", "exhaustive", "--seed", str(k + 1),
                                       env={"DITTUNE_CLOCK_OTHERS": others}))
        truth.T.run("rm", "-rf", truth.T.path / "db")
    return results


def decided(result):
    return result["verdict"] not in ("provisional", "inconclusive", "none")


def equal(n):
    """The default has several threads and is hit harder; the others are as fast as it is without load."""
    results = sessions("equal", n, [20 * MS] * 4, feels={0: 2.5})
    truth.at_most(f"load: equal plans, the default hit harder: 'faster' ({sum(map(decided, results))} decided)",
                  sum(r["verdict"] == "faster" for r in results), n, 0.01)


def slower(n):
    """Slower without load, and faster than the default under it."""
    results = sessions("slower", n, [20 * MS, 24 * MS, 26 * MS, 30 * MS], feels={0: 2.5})
    stored = sum(decided(r) and r["best"]["plan"]["plan"] != 0 for r in results)
    truth.at_most(f"load: a slower plan stored as decided ({sum(map(decided, results))} decided)", stored, n, 0.01)


def twice(n):
    results = sessions("twice", n, [20 * MS, 26 * MS, 10 * MS, 24 * MS], feels={2: 1.5})
    found = sum(r["verdict"] == "faster" and r["best"]["plan"]["plan"] == 2 for r in results)
    truth.at_least("load: a true factor of two is decided", found, n, 0.7)


def quiet(n):
    results = sessions("quiet", n, [20 * MS, 26 * MS, 18 * MS, 24 * MS], loaded=False)
    found = sum(r["verdict"] == "faster" and r["best"]["plan"]["plan"] == 2 for r in results)
    truth.at_least("no load: a true tenth is decided", found, n, 0.9)


for check, replicates in ((equal, truth.dose(12, 1000)), (slower, truth.dose(12, 1000)), (twice, truth.dose(6, 1000)), (quiet, truth.dose(4, 1000))):
    if truth.wanted(check.__name__):
        check(replicates)
truth.finish()
