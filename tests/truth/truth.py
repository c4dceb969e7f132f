# SPDX-License-Identifier: MIT
"""Shared by the checks of tests/truth: seeds, doses, limits, dittune started from outside. Standard library only, and
nothing of dittune's own: what is expected is computed here again.

A check prints   ok|FAILED|SHORT  name  seed  replicates  estimate  limit
SHORT is a check that is known not to reach its target (docs/measuring.md, "How we know"): it does not fail the run as
long as it keeps the limit that it is known to reach.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]
FULL = os.environ.get("DITTUNE_DOSE", "short") == "full"
SEED = int(os.environ.get("TRUTH_SEED") or random.SystemRandom().randrange(1, 1 << 31))
ONLY = os.environ.get("TRUTH_ONLY", "")
FOLDER = tempfile.TemporaryDirectory(prefix="truth-")
failed = 0
known_short = 0


def dose(short, full):
    """Replicates: few in every run of the tests, those of field practice with DITTUNE_DOSE=full."""
    return full if FULL else short


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
    """One scenario, and what the worker logged of it."""

    def __init__(self, name, **scenario):
        self.path = os.path.join(FOLDER.name, name + ".json")
        self.scenario = scenario
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        self.log_path = self.path + ".log"
        if os.path.exists(self.log_path):
            os.unlink(self.log_path)

    def dittune(self, command, *options, raw=False):
        """What dittune --json printed (raw: as text); exits when it did not."""
        args = [f"{BUILD}/dittune", command, "--worker", f"{BUILD}/tests/planted", "--json", *options]
        env = dict(os.environ, PLANTED=self.path, DITTUNE_DB=os.path.join(FOLDER.name, "db"), TMPDIR=FOLDER.name)
        done = subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 6):
            sys.exit(f"{' '.join(args)}: exit code {done.returncode}: {done.stderr[-400:]}")
        return done.stdout if raw else json.loads(done.stdout)

    def log(self, last=False):
        """The worker's own record: [{"op":"prepare"|"run",...}], of all its processes in order, or of the last one."""
        with open(self.log_path, encoding="utf-8") as file:
            text = file.read()
        if last:
            text = text[text.rindex("# process"):]
        return [json.loads(line) for line in text.splitlines() if not line.startswith("#")]


def analyze_file(path):
    done = subprocess.run([f"{BUILD}/dittune", "analyze", path, "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"dittune analyze {path}: exit code {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def analyze(records, name="records"):
    """dittune analyze of a file of these records: its trials and comparisons."""
    path = os.path.join(FOLDER.name, name + ".jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":")))
            file.write("\n")
    said = json.loads(analyze_file(path))
    os.unlink(path)
    return said


def finish():
    if known_short:
        print(f"{known_short} known to be short of the target")
    sys.exit(1 if failed else 0)
