#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The score of a search on a recorded table, from the tables and the evaluated keys alone.

  score.py FOUND.json --landscape FILE [--tolerance 1e-9]   recomputes what `dittune simulate --json` printed; exit 1 and a
                                                            sentence a difference where they disagree
  score.py --draws FILE [T]...                              expected best of T random draws, one a line

It shares no code with dittune, and needs the standard library only. Definitions: an entry that failed counts as an
evaluation and as slow as the slowest entry that ran. F(t) is the best of the first t evaluations, R(t) the expected best of t
draws without replacement, P the mean over t = 1..N of (R(t) - F(t)) / (R(t) - optimum). A gap is F(t) / optimum."""
import argparse
import gzip
import json
import math
import sys


class Table:
    """A recorded table: values by key, None where the entry failed; a key is the values of the parameters, by commas."""

    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
            recorded = json.load(file)
        self.path = path
        self.times = _from_t4(recorded) if "results" in recorded else _from_cache(recorded)
        self.names, self.configurations = _parameters(recorded)
        ran = [value for value in self.times.values() if value is not None]
        self.optimum, self.slowest = min(ran), max(ran)
        self.failed = len(self.times) - len(ran)
        self.ranks = {key: self.slowest if value is None else value for key, value in self.times.items()}
        self._sorted = sorted(self.ranks.values())
        self._random = {}

    def random_best(self, t):
        """R(t). Of n sorted values the i-th (from 0) is the least of t draws with probability C(n-1-i, t-1) / C(n, t)."""
        if t not in self._random:
            n, chance, terms = len(self._sorted), t / len(self._sorted), []
            for i in range(n - t + 1):
                terms.append(chance * self._sorted[i])
                chance *= (n - t - i) / (n - 1 - i) if i < n - 1 else 0
            self._random[t] = math.fsum(terms)
        return self._random[t]

    def found(self, keys, evals):
        """F(1..evals); a run that ended early keeps its best."""
        best, curve = math.inf, []
        for t in range(evals):
            best = min(best, self.ranks[keys[t]]) if t < len(keys) else best
            curve.append(best)
        return curve

    def score(self, keys, evals):
        curve = self.found(keys, evals)
        parts = []
        for t, best in enumerate(curve, 1):
            room = self.random_best(t) - self.optimum
            if room > 0:
                parts.append((self.random_best(t) - best) / room)
        return math.fsum(parts) / len(parts)


def _from_cache(recorded):
    objective = recorded.get("objective", "time")
    objective = objective[0] if isinstance(objective, list) else objective
    return {key: _number(entry.get(objective)) for key, entry in recorded["cache"].items()}


def _from_t4(recorded):
    times = {}
    for result in recorded["results"]:
        objective = result["objectives"][0]
        value = next((m["value"] for m in result["measurements"] if m["name"] == objective), None)
        good = result["invalidity"] == "correct"
        times[",".join(str(v) for v in result["configuration"].values())] = _number(value) if good else None
    return times


def _number(value):
    """None of what is no time: a word, no number, or the 1e20 by which old files mark a failure."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e20
    return float(value) if good else None


def _parameters(recorded):
    """Names in the order of the keys, and the values of each configuration by its key."""
    if "results" in recorded:
        entries = [result["configuration"] for result in recorded["results"]]
        names = list(entries[0])
        return names, {",".join(str(v) for v in entry.values()): tuple(entry.values()) for entry in entries}
    names = recorded["tune_params_keys"]
    return names, {key: tuple(entry[name] for name in names) for key, entry in recorded["cache"].items()}


def reached(curve, limit):
    """The evaluation that came within the limit, from 1; infinity where none did."""
    return next((t for t, best in enumerate(curve, 1) if best <= limit), math.inf)


def median(values):
    values, n = sorted(values), len(values)
    return values[n // 2] if n % 2 else (values[n // 2 - 1] + values[n // 2]) / 2


def summary(table, runs, evals, gaps=(20, 50, 100, 150), percents=(10, 5, 1)):
    """What `dittune simulate --json` says of the same runs (lists of keys), without the intervals."""
    curves = [table.found(keys, evals) for keys in runs]
    each = [table.score(keys, evals) for keys in runs]
    within = {}
    for percent in percents:
        at = [reached(curve, table.optimum * (1 + percent / 100)) for curve in curves]
        middle = median(at)
        within[str(percent)] = {"median_evals": None if math.isinf(middle) else middle,
                                "share": sum(t <= evals for t in at) / len(at)}
    return {"score_p": {"mean": math.fsum(each) / len(each), "each": each},
            "gap": {str(t): {"mean": _geometric(curve[t - 1] / table.optimum for curve in curves)} for t in gaps if t <= evals},
            "within": within,
            "regret": [_geometric(curve[t] / table.optimum for curve in curves) for t in range(evals)]}


def _geometric(values):
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def differences(found, table, tolerance):
    """Sentences, one for each thing dittune said that this file finds otherwise."""
    said = []

    def same(what, theirs, ours):
        if (theirs is None) != (ours is None) or ours is not None and not abs(theirs - ours) <= tolerance * max(1, abs(ours)):
            said.append(f"{what}: printed {theirs!r}, recomputed {ours!r}")

    evals, runs = found["evals"], found["evaluated"]
    same("entries", found["feasible"], len(table.times))
    same("failed", found["failed"], table.failed)
    same("optimum", found["optimum"], table.optimum)
    same("runs", len(runs), found["repeats"])
    for run, keys in enumerate(runs):
        if len(set(keys)) != len(keys) or len(keys) > evals:
            said.append(f"run {run}: {len(keys)} evaluations of {len(set(keys))} entries in a budget of {evals}")
        said += [f"run {run}: {key} is not in the table" for key in keys if key not in table.times]
    if said:
        return said
    ours = summary(table, runs, evals)
    same("score_p.mean", found["score_p"]["mean"], ours["score_p"]["mean"])
    same("score_p.each, its length", len(found["score_p"]["each"]), len(ours["score_p"]["each"]))
    for run, (theirs, value) in enumerate(zip(found["score_p"]["each"], ours["score_p"]["each"])):
        same(f"score_p.each[{run}]", theirs, value)
    for t, gap in ours["gap"].items():
        same(f"gap.{t}.mean", found["gap"][t]["mean"], gap["mean"])
    for percent, within in ours["within"].items():
        for name, value in within.items():
            same(f"within.{percent}.{name}", found["within"][percent][name], value)
    same("regret, its length", len(found["regret"]), len(ours["regret"]))
    for t, (theirs, value) in enumerate(zip(found["regret"], ours["regret"]), 1):
        same(f"regret[{t}]", theirs, value)
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", nargs="?", help="what dittune simulate --json printed; - is standard input")
    parser.add_argument("--landscape", help="the table it ran on")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--draws", nargs="+", metavar="FILE [T]")
    args = parser.parse_args()
    if args.draws:
        table = Table(args.draws[0])
        for t in args.draws[1:] or ("1", "20", "50", "100", "150"):
            print(t, repr(table.random_best(int(t))))
        return 0
    if not args.found or not args.landscape:
        parser.error("FOUND.json and --landscape, or --draws")
    with sys.stdin if args.found == "-" else open(args.found) as file:
        found = json.load(file)
    said = differences(found, Table(args.landscape), args.tolerance)
    good = f"{found['landscape']} {found['search']}: P {found['score_p']['mean']:.4f} of {found['repeats']} runs agrees"
    print("\n".join(said) or good)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
