#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rows of bench-kernels (bench/kernels/): linear layers, attention, fused passes.
#
#     bench/kernels.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/kernels.sh" exec python3 - "$@" <<'PY'
import re, subprocess
from lib import *

PART = {"linear": "linear layers", "attention": "attention", "passes": "passes"}
begin("Kernels", f"""
bench-kernels, {min(2, cores())} threads: a kernel and what it is held against alternate for 30 ms each; a ratio of rates, ours over
theirs, of each turn. Linear layers, bias and activation included, of 512 rows, against the bare product of the library. Attention (the best and the worst tile pair
are told, and the best once more in fresh turns) against a product of 2048^3. Passes over 100 MB a stream against reading and writing two
arrays in place; what is written is counted as fetched, too. Interval: least and greatest of the turns.""")
program = BUILD + "/bench-kernels"
if not os.access(program, os.X_OK):
    skip(f"no bench-kernels in {BUILD}")
turns = 3 if QUICK else 7


def lines(part):
    """[what, ratio, low, high, rates] of each line, and the heading."""
    text = subprocess.run([program, part, "--turns", str(turns), "--threads", str(min(2, cores()))], capture_output=True, text=True)
    rows = re.findall(r"^(\S.*?) +([\d.]+)  \[([\d.]+), ([\d.]+)\] +(.*)$", text.stdout, re.M)
    if text.returncode != 0 or not rows:
        tell(f"{part}: left out: {text.stderr.strip() or text.stdout.strip()}")
    heading = next((line for line in text.stdout.splitlines() if line.startswith("#")), "")
    return heading, [(what, float(ratio), float(low), float(high), " ".join(rates.split())) for what, ratio, low, high, rates in rows]


def tell_row(line, least, note=""):
    what, ratio, low, high, rates = line
    row(what, (ratio, (low, high), turns), least=least, note=rates + note)


for part in ("linear", "passes"):
    heading, rows = lines(part)
    target = re.search(r"target ([\d.]+)", heading)
    for line in rows:
        tell_row(line, float(target[1]) if target else None)
heading, rows = lines("attention")
targets = dict(re.findall(r"([\d.]+) \(D=(\d+)\)", heading))
targets = {channels: float(target) for target, channels in targets.items()}
groups = {}
for line in rows:
    case = re.match(r"(\S+) S=(\d+) D=(\d+), tile .* of (\S+)$", line[0])
    if case:
        groups.setdefault(case.groups(), []).append(line)
for (dtype, tokens, channels, library), found in groups.items():
    found.sort(key=lambda line: line[1])
    tell_row(found[0], None, f"; worst of {len(found)} pairs")
    tell_row(found[-1], None, f"; best of {len(found)} pairs, flattered by the choice")
    for line in (line for line in rows if line[0].startswith(f"{dtype} S={tokens} D={channels}, chosen tile")):
        known = dtype == "float32" and tokens == "4096" and line[0].endswith(library)
        tell_row(line, targets.get(channels) if known else None, "; that pair once more")
PY
