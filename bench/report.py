#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/benchmarks.md, on standard output, of the rows that the benchmarks left in a file.

    bench/report.py BUILD ROWS [--quick]        $BENCH_LOAD: load of the machine when they began"""
import json
import os
import platform
import re
import subprocess
import sys

from lib import BUILD, QUICK, ROOT, Group, preset


def output(*words):
    run = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    return run.stdout.strip() if run.returncode == 0 else ""


def field(path, name):
    found = re.search(rf"^{name}\s*[:=]\s*\"?(.*?)\"?$", open(path).read(), re.M)
    return found[1] if found else "unknown"


def versions():
    """Libraries as a rank of the worker names them."""
    group = Group(1, preset("dit-s-2"), 256)
    rank = group.ready["ranks"][0]
    group.quit()
    return ", ".join(f"{name} {version}" for name, version in rank["versions"].items())


def machine():
    virtual = re.search(r"Hypervisor vendor: *(.*)", output("lscpu"))
    commit = output("git", "describe", "--always", "--dirty")
    yield "processor", f"{field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} logical processors" + (
        f", virtual ({virtual[1]})" if virtual else "")
    yield "memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    yield "system", f"{field('/etc/os-release', 'PRETTY_NAME')}, Linux {platform.release()}"
    yield "libraries", versions()
    yield "MPI", output("mpirun", "--version").split("\n")[0] or "none"
    yield "dittune", f"{output(BUILD + '/dittune', '--version')}" + (f", commit {commit}" if commit else "")
    yield "load", f"{os.environ.get('BENCH_LOAD', 'unknown')} when it began"


def number(value):
    return f"{value:.3f}" if 0.01 <= abs(value) < 100 else f"{value:.3g}"


def table(rows):
    yield "| what | ratio | interval | n | target | |  |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        low, high = row["interval"]
        yield (f"| {row['what']} | {number(row['ratio'])} | {number(low)} to {number(high)} | {row['n']} | {row['target']} "
               f"| {row['verdict']} | {row['note']} |")


def summary(records):
    rows = [record for record in records if record["kind"] == "row" and record["target"]]
    short = [row for row in rows if row["verdict"].startswith("falls")]
    doubtful = sum("doubt" in row["verdict"] for row in rows)
    yield f"{len(rows) - len(short)} of {len(rows)} targets are met ({doubtful} verdicts are not beyond doubt: the interval holds the target)."
    if short:
        yield ""
        yield "Falls short: " + "; ".join(f"{row['what']} ({number(row['ratio'])})" for row in short) + "."


def main():
    records = [json.loads(line) for line in open(sys.argv[2])]
    made = "`bench/all.sh --quick`, which leaves rows out and takes fewer turns" if QUICK else "`bench/all.sh`"
    print(f"# Benchmarks\n\nMade by {made}. How to run one of them: [bench/README.md](../bench/README.md).\n")
    print("| | |\n|---|---|")
    for name, text in machine():
        print(f"| {name} | {text} |")
    print("""
Each ratio was taken side by side in one run: both sides in turn, in mirrored rounds, a ratio each round. The ratio is the
median of the rounds, the interval that of the median by order statistics at 95 % (of fewer than six: least and greatest), n
the number of rounds.
""")
    print("\n".join(summary(records)))
    rows = []
    for record in records + [dict(kind="end")]:
        if record["kind"] != "row" and rows:
            print("\n" + "\n".join(table(rows)))
            rows = []
        if record["kind"] == "row":
            rows.append(record)
        elif record["kind"] == "subject":
            print(f"\n## {record['title']}\n\n{record['intro']}\n\n    {record['command']}")
        elif record["kind"] == "text":
            print(f"\n{record['text']}")
        elif record["kind"] in ("skipped", "failed"):
            print(f"\n{record['kind'].capitalize()}: {record['why']}.")


main()
