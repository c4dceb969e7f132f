# SPDX-License-Identifier: MIT
"""Shared by the checks of tests/truth: seeds, doses, limits, sessions on planted times. What is expected is computed here
again, with nothing of dittune's own.

A check prints   ok|FAILED|SHORT  name  seed  replicates  estimate  limit
SHORT is a check that is known not to reach its target (docs/measuring-appendix.md, "How we know"): it does not fail the run as
long as it keeps the limit that it is known to reach.

The plain run has a fixed seed, so nothing fails by chance; the full dose (DITTUNE_DOSE=full) draws one and prints it.
TRUTH_SEED=N sets it, TRUTH_ONLY=NAME runs only the checks whose name holds NAME, TRUTH_REPLICATES=N is a dose between.
"""
import json
import math
import os
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, FULL, THIN, log_of_processes

USUAL_SEED = 1
SEED = int(os.environ.get("TRUTH_SEED") or (random.SystemRandom().randrange(1, 1 << 31) if FULL else USUAL_SEED))
ONLY = os.environ.get("TRUTH_ONLY", "")
REPLICATES = int(os.environ.get("TRUTH_REPLICATES", 0))
T = Dittune()
failed = 0
known_short = 0


def dose(short, full, thin=None):
    """Replicates: few in every run of the tests, `thin` or half of them in the thin one, those of field practice with DITTUNE_DOSE=full."""
    return REPLICATES or (full if FULL else (thin or (short + 1) // 2) if THIN else short)


def stream(name):
    """A generator of its own for each check, so that one can be run again alone."""
    return random.Random(f"{SEED}/{name}")


def wanted(name):
    return ONLY in name


def report(name, replicates, estimate, limit, ok, reached=None):
    """reached: what a check known to be short of its target does reach; None for all others."""
    global failed, known_short
    word = "ok    " if ok else "FAILED"
    if not ok and reached:
        word = "SHORT "
        known_short += 1
    elif not ok:
        failed += 1
    print(f"{word} {name:64} seed {SEED}  n {replicates:<6} {estimate:<14} limit {limit}", flush=True)


def allowed(n, rate):
    """The largest count that at most one run in 740 exceeds by chance (as three sigmas of a normal distribution are), of n
    at this rate: the binomial tail itself, because few replicates are not normal."""
    log_odds, below = math.log(rate) - math.log1p(-rate), 0.0
    log_p = n * math.log1p(-rate)
    for k in range(n + 1):
        below += math.exp(log_p)
        if below >= 1 - 0.00135:
            return k
        log_p += math.log((n - k) / (k + 1)) + log_odds
    return n


def at_most(name, hits, n, target, reached=None):
    """A rate, three binomial sigmas allowed for."""
    limit = allowed(n, target)
    short = reached is not None and hits <= allowed(n, reached)
    report(name, n, f"{100 * hits / n:.3g} %", f"<= {100 * target:g} % + 3 sigma = {100 * limit / n:.3g} %", hits <= limit, short)


def at_least(name, hits, n, target, reached=None):
    if n == 0:
        return report(name, 0, "none", "an estimate", False)
    limit = n - allowed(n, 1 - target)
    short = reached is not None and hits >= n - allowed(n, 1 - reached)
    return report(name, n, f"{100 * hits / n:.4g} %", f">= {100 * target:g} % - 3 sigma = {100 * limit / n:.4g} %",
                  hits >= limit, short)


def mean_within(name, errors, target, fails=False, reached=None):
    """The mean of relative errors lies within +-target, three standard errors allowed for; fails: a negative control,
    whose mean must not."""
    n = len(errors)
    if n == 0:
        return report(name, 0, "none", "an estimate", False)
    mean = statistics.fmean(errors)
    slack = 3 * statistics.stdev(errors) / math.sqrt(n) if n > 1 else 0
    if fails:
        return report(name, n, f"{100 * mean:+.3f} %", f"outside +-{100 * target:g} %", abs(mean) > target)
    limit = target + slack
    short = reached is not None and abs(mean) <= reached + slack
    return report(name, n, f"{100 * mean:+.3f} %", f"+-{100 * target:g} % + 3 sigma = {100 * limit:.3f} %",
                  abs(mean) <= limit, short)


def none_of(name, hits, n):
    report(name, n, hits, "none", hits == 0)


def close(a, b, most=1e-9):
    return a is not None and b is not None and abs(a - b) <= most * abs(b)


class Planted:
    """One scenario of the worker, and what it logged of it."""

    def __init__(self, name, **scenario):
        self.path = T.scenario(name + ".json", **scenario)
        self.log_path = pathlib.Path(f"{self.path}.log")
        self.log_path.unlink(missing_ok=True)

    def dittune(self, command, *options, raw=False, env=None):
        """The output of dittune --json (raw: as text) of a session whose clock begins at 0; exits when it did not."""
        (T.path / "clock").unlink(missing_ok=True)
        done = T.tool(command, "--worker", T.worker, "--json", *options, env={"SCENARIO": self.path, **(env or {})})
        if done.code not in (0, 6):
            sys.exit(str(done))
        return done.out if raw else done.json

    def log(self, last=False):
        """The worker's own record: [{"op":"prepare"|"run",...}], of all its processes in order, or of the last one."""
        return sum(self.processes()[-1:] if last else self.processes(), [])

    def processes(self):
        """The records of each process of the worker."""
        return log_of_processes(self.log_path)


def analyze_file(path):
    done = T.tool("analyze", path, "--json")
    if done.code != 0:
        sys.exit(str(done))
    return done.out


def analyze(records):
    """dittune analyze of a file of these records: its trials and comparisons."""
    lines = (json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    return json.loads(analyze_file(T.write("records.jsonl", "".join(lines))))


def finish():
    if known_short:
        print(f"{known_short} known to be short of the target")
    T.folder.cleanup()
    sys.exit(1 if failed else 0)
