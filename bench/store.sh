#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A commit of one entry beside a plain temporary file, fsync and rename of the same bytes, in turn, in stores of 1, 100 and 1,000
# full-size entries; and what reading a store of 1,000 entries costs.
#
#     bench/store.sh [BUILD] [--quick]        (build/release)
#
# The disk is that of $TMPDIR. Commits are timed by the clock, as the disk has most of it: they need a quiet machine. Reading is
# processor time, the least of 20 turns.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/store.sh" exec python3 - "$@" <<'PY'
from lib import *

ROUNDS = 20 if QUICK else 100
TOOL = BUILD + "/bench-store-speed"
begin("The store", f"""
{ROUNDS} rounds: one entry committed, and the same bytes written to a temporary file, synced and renamed; entries of about 4.2 kB.
Target: reading a store of 1,000 under 10 ms.""")
for entries in (1, 100, 1000):
    folder = tempfile.mkdtemp(dir=FOLDER)
    o = json.loads(subprocess.run([TOOL, folder, str(entries), str(ROUNDS)], check=True, stdout=subprocess.PIPE).stdout)
    commit, plain = ([1e-6 * ns for ns in o[side]["wall_ns"]] for side in ("commit", "plain"))
    processor = [1e-6 * min(o[side]["processor_ns"]) for side in ("commit", "plain")]
    low, high = order_interval([a / b for a, b in zip(commit, plain)])
    print(f"{entries} entries, {o['bytes'] / 1e6:.2f} MB: a commit {statistics.median(commit):.2f} ms, plain {statistics.median(plain):.2f} ms"
          f" (median of {ROUNDS}); ratio {statistics.median(a / b for a, b in zip(commit, plain)):.2f} [{low:.2f}, {high:.2f}];"
          f" processor {processor[0]:.2f} and {processor[1]:.2f} ms (least)")
print(f"reading 1,000 entries: {1e-6 * o['open_ns']:.2f} ms of processor time, of which the checksum {1e-6 * o['checksum_ns']:.2f} ms")
met = o["open_ns"] < 10e6
print("met" if met else "NOT met", "here: reading under 10 ms")
sys.exit(0 if met else 1)
PY
