# SPDX-License-Identifier: MIT
"""Times as machines make them, of known truth: the noise model of tests/scenario, drawn here for many series at once.

log-normal noise of coefficient of variation cv, spikes of mean +15 % in 2 % of the samples, and drift that all plans of a
process share: an Ornstein-Uhlenbeck process of deviation 2 % and correlation time 60 samples. A scale of 1 s keeps whole
nanoseconds from rounding anything that matters.
"""
import bisect
import math
import statistics

SECOND = 1_000_000_000
SPIKES, SPIKE_MEAN = 0.02, 0.15
DRIFT_SD, DRIFT_TAU = 0.02, 60
LOOKS = ((8, .008), (16, .010), (32, .012), (64, .020))  # samples or rounds, and the alpha spent there


SET_LOOKS = ((4, .006), (6, .008), (8, .010), (12, .012), (16, .014))  # sets of fresh processes


def log_sd(cv):
    return math.sqrt(math.log1p(cv * cv))


def spike(rng):
    return 1 + rng.expovariate(1 / SPIKE_MEAN) if rng.random() < SPIKES else 1.0


def quiet(rng, n, cv):
    """n factors around 1, without drift; spikes lift their median by less than 3 % of cv."""
    sd, gauss = log_sd(cv), rng.gauss
    return [math.exp(sd * gauss(0, 1)) * spike(rng) for _ in range(n)]


class Drift:
    """One process: each step of whatever plan moves it on."""

    def __init__(self, rng, sd=DRIFT_SD, tau=DRIFT_TAU):
        self.rng, self.keep = rng, math.exp(-1 / tau)
        self.move = sd * math.sqrt(1 - self.keep * self.keep)
        self.level = sd * rng.gauss(0, 1)

    def step(self):
        self.level = self.keep * self.level + self.move * self.rng.gauss(0, 1)
        return self.level


def ar1(rng, n, cv, rho):
    sd, z, out = log_sd(cv), rng.gauss(0, 1), []
    for _ in range(n):
        out.append(math.exp(sd * z))
        z = rho * z + math.sqrt(1 - rho * rho) * rng.gauss(0, 1)
    return out


def whole(factors, scale=SECOND):
    return [round(scale * x) for x in factors]


def trial(factors, **fields):
    return {"kind": "trial", "ns": [[x] for x in whole(factors)], "least": 0, **fields}


# ---- several plans in turn

def interleaved(rng, true, rounds, cv, drift_sd=DRIFT_SD):
    """visits[plan][round]: rounds in pairs, a random order and its mirror, as docs/measuring-appendix.md has them."""
    drift, sd, gauss = Drift(rng, drift_sd), log_sd(cv), rng.gauss
    visits, order = [[0] * rounds for _ in true], list(range(len(true)))
    for k in range(rounds):
        if k % 2 == 0:
            rng.shuffle(order)
        for plan in order if k % 2 == 0 else reversed(order):
            visits[plan][k] = round(SECOND * true[plan] * math.exp(drift.step() + sd * gauss(0, 1)) * spike(rng))
    return visits


def in_sets(rng, true, sets, rounds, cv, residency=0.0, modes=0.0, drift_sd=DRIFT_SD):
    """visits[plan][round] of sets of fresh processes: in each, every plan has a place of its own (log-normal of deviation
    `residency`, or slower by `modes` with probability 1/2)."""
    visits = [[] for _ in true]
    for _ in range(sets):
        places = [math.exp(residency * rng.gauss(0, 1)) * (1 + modes if rng.random() < 0.5 else 1) for _ in true]
        made = interleaved(rng, [t * p for t, p in zip(true, places)], rounds, cv, drift_sd)
        for row, more in zip(visits, made):
            row += more
    return visits


def comparison(visits, **fields):
    roles = ["default"] + ["candidate"] * (len(visits) - 1)
    entrants = [{"role": role, "visits_ns": row, "decisive": k > 0}
                for k, (role, row) in enumerate(zip(roles, visits))]
    return {"kind": "comparison", "entrants": entrants, **fields}


# ---- five distributions of known median

def solve(cdf, low, high):
    """The point where an increasing function is one half."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(middle) < 0.5 else (low, middle)
    return (low + high) / 2


def two_modes_median(share, size, cv):
    normal = statistics.NormalDist()
    return solve(lambda x: (1 - share) * normal.cdf((x - 1) / cv) + share * normal.cdf((x - 1 - size) / cv), 0.5, 2)


def two_modes(rng, share, size, cv):
    return rng.gauss(1 + (size if rng.random() < share else 0), cv)


DISTRIBUTIONS = {  # name: (draw, median)
    "gauss 2 %": (lambda rng: rng.gauss(1, 0.02), 1.0),
    "log-normal 5 %": (lambda rng: math.exp(log_sd(0.05) * rng.gauss(0, 1)), 1.0),
    "exponential": (lambda rng: 1 + rng.expovariate(20), 1 + math.log(2) / 20),
    "bimodal 70/30 at +4 %": (lambda rng: two_modes(rng, 0.3, 0.04, 0.01), two_modes_median(0.3, 0.04, 0.01)),
    "Pareto 2.1": (lambda rng: 1 + 0.05 * (rng.paretovariate(2.1) - 1), 1 + 0.05 * (2 ** (1 / 2.1) - 1)),
}


# ---- what the textbooks say, once more

def median_rank(n, level):
    """The largest l with P(l-th smallest < median < l-th largest) >= level (David, Nagaraja 2003, 7.1); 0: none."""
    below, lower = 0, 0
    for l in range(1, n // 2 + 1):
        below += math.comb(n, l - 1)
        if 1 - 2 * below / 2 ** n < level - 1e-12:
            break
        lower = l
    return lower


def interval(x, level):
    lower, x = median_rank(len(x), level), sorted(x)
    return (x[lower - 1], x[-lower]) if lower > 0 else None


def t_below(t, df):
    """P(Student's t of a whole number of degrees of freedom < t), t > 0 (Abramowitz, Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan2(t, math.sqrt(df))
    cos2, term, total = math.cos(theta) ** 2, 1.0, 1.0
    first = 2 if df % 2 else 1
    for k in range(first, df - 1, 2):
        term *= cos2 * k / (k + 1)
        total += term
    if df == 1:
        inside = 2 * theta / math.pi
    elif df % 2:
        inside = 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    else:
        inside = math.sin(theta) * total
    return 0.5 + inside / 2


def student(level, df):
    """The quantile that a share `level` lies within, both sides."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if t_below(middle, df) < (1 + level) / 2 else (low, middle)
    return (low + high) / 2


def tau(values, truth):
    """Kendall's tau of estimates against distinct truths."""
    order = [value for _, value in sorted(zip(truth, values))]
    kept, discordant = [], 0
    for value in order:
        at = bisect.bisect_right(kept, value)
        discordant += len(kept) - at
        kept.insert(at, value)
    pairs = len(order) * (len(order) - 1) / 2
    return 1 - 2 * discordant / pairs
