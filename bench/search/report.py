#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Peers beside dittune, in Markdown: mean P, and the median of the evaluations to within 5 % of the optimum ("-": not within the
budget in half of the runs).

  report.py --landscapes DIR [--searches bayes,auto] [--peers A,B] FILE...

FILE: lines of peers.py, or rows of bench/search.sh (cold ones of the searches named; their scores are taken as they stand). A run
is short when it ended before the budget: its best stays what it is."""
import argparse
import collections
import functools
import json
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import score

PERCENT = "5"


@functools.cache
def student(freedom):
    """The 97.5 % point of Student's t, by the midpoint rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    t, area, step = 0.0, 0.0, 1e-3
    while area < 0.475:
        area += step * scale * (1 + (t + step / 2) ** 2 / freedom) ** (-(freedom + 1) / 2)
        t += step
    return t


def half_width(values):
    """Of the interval of the mean at 95 %, by Student's distribution."""
    n = len(values)
    return student(n - 1) * statistics.stdev(values) / n ** .5 if n > 1 else math.nan


def cells_of_runs(table, runs):
    evals = runs[0]["evals"]
    found = score.summary(table, [run["evaluated"] for run in runs], evals)
    short = sum(len(run["evaluated"]) < evals for run in runs)
    seconds = statistics.fmean(run["cpu_seconds"] for run in runs)
    return {"mean": found["score_p"]["mean"], "half": half_width(found["score_p"]["each"]),
            "median": found["within"][PERCENT]["median_evals"],
            "runs": f"{len(runs)}, {seconds:.1f} s" + (f", {short} short" if short else "")}


def cells_of_row(row):
    low, high = row["score_p"]["interval"]
    return {"mean": row["score_p"]["mean"], "half": math.nan if low is None else (high - low) / 2,
            "median": row["within"][PERCENT]["median_evals"], "runs": str(row["repeats"])}


def read(args):
    """(who, table) -> cells."""
    runs, cells, tables = collections.defaultdict(list), {}, {}
    for path in args.files:
        with open(path) as file:
            for row in map(json.loads, filter(str.strip, file)):
                if "peer" in row and (not args.peers or row["peer"] in args.peers.split(",")):
                    runs[row["peer"], row["table"]].append(row)
                elif "score_p" in row and not row["prior"] and row["search"] in args.searches.split(","):
                    cells["dittune " + row["search"], row["table"]] = cells_of_row(row)
    for (who, name), found in sorted(runs.items()):
        tables[name] = tables.get(name) or score.Table(os.path.join(args.landscapes, name + ".json.gz"))
        cells[who, name] = cells_of_runs(tables[name], found)
    names = {name for _, name in runs} or {name for _, name in cells}
    return {key: cell for key, cell in cells.items() if key[1] in names}


def markdown(title, columns, rows):
    print(f"\n{title}\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for who, words in rows:
        print(f"| {who} | {' | '.join(words)} |")


def middle(medians):
    """The median of the tables' medians, as a word."""
    value = score.median([math.inf if median is None else median for median in medians])
    return "-" if math.isinf(value) else f"{value:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--landscapes", required=True)
    parser.add_argument("--searches", default="bayes,auto")
    parser.add_argument("--peers", default="")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    cells = read(args)
    names = sorted({name for _, name in cells}, key=lambda name: ("RTX" in name, name))
    groups = {"milo": [name for name in names if "milo" in name], "RTX": [name for name in names if "RTX" in name], "all": names}
    whos = list(dict.fromkeys(who for who, _ in cells))

    def has(who, group):
        return group and all((who, name) in cells for name in group)

    def line(who, word, summaries):
        return [word(cells[who, name]) if (who, name) in cells else "" for name in names] + summaries

    means, medians, counts = [], [], []
    for who in whos:
        mean = [f"{statistics.fmean(cells[who, n]['mean'] for n in group):.3f}" if has(who, group) else ""
                for group in groups.values()]
        means.append((who, line(who, lambda cell: f"{cell['mean']:.2f} ± {cell['half']:.2f}", mean)))
        every = [middle([cells[who, name]["median"] for name in names]) if has(who, names) else ""]
        medians.append((who, line(who, lambda cell: middle([cell["median"]]), every)))
        counts.append((who, line(who, lambda cell: cell["runs"], [])))
    means.sort(key=lambda row: row[1][-1] or "-9", reverse=True)
    markdown("Mean P, and half of its interval at 95 %:", names + [f"mean, {group}" for group in groups], means)
    markdown(f"Median evaluations to within {PERCENT} % of the optimum, and the median of the tables:", names + ["all"], medians)
    markdown("Runs, and processor time of one:", names, counts)


if __name__ == "__main__":
    main()
