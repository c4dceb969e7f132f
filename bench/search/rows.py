#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows that bench/search.sh keeps of `dittune simulate --json`, and the tables made of them, in Markdown.

    rows.py held FILE TABLE SEARCH [prior] EVALS REPEATS     exit 0: FILE has the row
    rows.py add FILE TABLE <JSON
    rows.py print FILE EVALS REPEATS"""
import json
import math
import os
import statistics
import sys

# What is to be reached: names of tables -> mean P cold, with prior.
TARGETS = {"the six of data-centre GPUs": (["convolution_milo_A100", "convolution_milo_A4000", "convolution_milo_MI250X",
                                             "dedispersion_milo_A100", "dedispersion_milo_MI250X", "dedispersion_milo_W6600"],
                                            0.72, 0.92),
           "the three of consumer GPUs": (["convolution_RTX_2080_Ti", "convolution_RTX_3090", "gemm_RTX_3090"], 0.88, 0.97)}


def read(path, evals=None, repeats=None):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return [row for row in rows if evals is None or (row["evals"], row["repeats"]) == (evals, repeats)]


def add(path, name):
    row = json.loads(sys.stdin.read())
    row = {"table": name, **{key: row[key] for key in row if key not in ("evaluated", "runs", "landscape")}}
    row["prior"] = row["prior"] and os.path.basename(row["prior"]).split(".json")[0]
    with open(path, "a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{name} {row['search']}{' prior' if row['prior'] else ''}: P {row['score_p']['mean']:.3f}")


def pick(rows, table, search, prior):
    return next((r for r in rows if r["table"] == table and r["search"] == search and bool(r["prior"]) == prior), None)


def half(row):
    low, high = row["score_p"]["interval"]
    return (high - low) / 2 if low is not None else math.nan


def scores(rows, tables, columns):
    yield "| table | " + " | ".join(f"{s}{', prior' if p else ''}" for s, p in columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for table in tables:
        cells = [pick(rows, table, s, p) for s, p in columns]
        yield f"| {table} | " + " | ".join(f"{c['score_p']['mean']:.3f} ± {half(c):.3f}" if c else "" for c in cells) + " |"


def details(rows, tables, search):
    yield ("| table | prior | P | best / optimum at 20, 50, 100, 150 | within 5 % by 100 | within 5, 1 % by the end | "
           "median evaluations to 5 % | ask + tell, ms | refit, ms |")
    yield "|---" * 9 + "|"
    for table in tables:
        for prior in (False, True):
            row = pick(rows, table, search, prior)
            if not row:
                continue
            gap = ", ".join(f"{row['gap'][t]['mean']:.3f}" for t in ("20", "50", "100", "150") if t in row["gap"])
            within, time = row["within"], row["ask_tell_ms"]
            share = within["5"]["by"].get("100", {}).get("share")
            yield (f"| {table} | {row['prior'] or ''} | {row['score_p']['mean']:.3f} | {gap} "
                   f"| {'' if share is None else f'{100 * share:.0f} %'} "
                   f"| {100 * within['5']['share']:.0f} %, {100 * within['1']['share']:.0f} % "
                   f"| {within['5']['median_evals'] or 'never'} | {time['median']:.2f} "
                   f"| {'' if time['refit_median'] is None else '%.1f' % time['refit_median']} |")


def verdict(reached):
    return "reached" if reached else "**not reached**"


def judge(rows, search):
    """The promises, one line each."""
    for name, (tables, cold, warm) in TARGETS.items():
        for prior, target in ((False, cold), (True, warm)):
            found = [r for r in (pick(rows, t, search, prior) for t in tables) if r]
            if not found:
                continue
            mean = statistics.fmean(r["score_p"]["mean"] for r in found)
            error = math.sqrt(sum((half(r) / 2) ** 2 for r in found)) / len(found)
            yield (f"- {name}, {'with prior' if prior else 'cold'}: mean P {mean:.3f} ± {2 * error:.3f} over {len(found)} tables, "
                   f"to be {target} or more: {verdict(mean >= target)}")
    every = [r for r in rows if r["search"] == search]
    least = min(every, key=lambda r: r["score_p"]["mean"])
    yield (f"- lowest P of a table: {least['score_p']['mean']:.3f} ({least['table']}{', prior' if least['prior'] else ''}), "
           f"to be 0 or more: {verdict(least['score_p']['mean'] >= 0)}")
    worst = None
    for row in every:
        cold = pick(rows, row["table"], search, False)
        if not row["prior"] or not cold:
            continue
        pairs = [a - b for a, b in zip(row["score_p"]["each"], cold["score_p"]["each"])]
        error = statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
        slack = statistics.fmean(pairs) + 0.02 + 2 * error
        worst = min(worst or (math.inf,), (slack, statistics.fmean(pairs), error, row["table"]))
    if worst:
        yield (f"- least gain by a prior: {worst[1]:+.3f} ± {2 * worst[2]:.3f} ({worst[3]}), to be -0.02 or more but for two "
               f"standard errors of the paired difference: {verdict(worst[0] >= 0)}")
    names = [name for tables, _, _ in TARGETS.values() for name in tables]
    shares = [r["within"]["5"]["by"]["100"]["share"] for r in every
              if not r["prior"] and r["table"] in names and "100" in r["within"]["5"]["by"]]
    if shares:
        yield (f"- cold, runs within 5 % of the optimum by 100 evaluations: {100 * statistics.fmean(shares):.0f} % of all, "
               f"{100 * min(shares):.0f} % on the worst table, to be 80 % or more: {verdict(statistics.fmean(shares) >= .8)}")
    times = [r["ask_tell_ms"]["median"] for r in every]
    yield f"- ask + tell: median at most {max(times):.2f} ms on any table"


def report(path, evals, repeats):
    rows = read(path, evals, repeats)
    if not rows:
        sys.exit(f"rows.py: no rows of {evals} evaluations and {repeats} repeats in {path}")
    tables = sorted({r["table"] for r in rows})
    searches = list(dict.fromkeys(r["search"] for r in rows))
    columns = [(s, p) for s in searches for p in (False, True) if any(pick(rows, t, s, p) for t in tables)]
    print(f"Score P of {evals} evaluations, mean of {repeats} repeats ± half the 95 % interval (0: random search, 1: the optimum "
          "at once).\n")
    print("\n".join(scores(rows, tables, columns)))
    for search in searches:
        if search.split(":")[0] in ("bayes", "auto"):
            print(f"\n{search}:\n\n" + "\n".join(judge(rows, search)) + "\n")
            print("\n".join(details(rows, tables, search)))


def main():
    words = sys.argv[2:]
    if sys.argv[1] == "held":
        rows = read(words[0], int(words[-2]), int(words[-1]))
        sys.exit(0 if pick(rows, words[1], words[2], words[3] == "prior") else 1)
    elif sys.argv[1] == "add":
        add(words[0], words[1])
    else:
        report(words[0], int(words[1]), int(words[2]))


main()
