#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How much of the exchanges does MPI hide behind the computation? The same plans with overlap off and on, in turn, three
# times: the step, the time a rank stood still for exchanges, and that time as a share of the time they were in flight.
#
#     bench/overlap.sh [BUILD] [SIZE]        (default: build/release 256; needs python3 and a quiet machine)
set -euo pipefail
build=${1:-build/release} size=${2:-256}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
for turn in 1 2 3; do
    for plan in "ranks=2 ring=2 overlap=0" "ranks=2 ring=2 overlap=1" \
        "ranks=2 ulysses=2 overlap=0 chunks=1" "ranks=2 ulysses=2 overlap=1 chunks=3"; do
        echo "turn $turn: $plan" >&2
        "$build/dittune" run --size "$size" --plan "$plan" --json --quiet </dev/null |
            python3 -c 'import json, sys; print(json.dumps([sys.argv[1], json.load(sys.stdin)]))' "$plan" >>"$rows"
    done
done
python3 - "$rows" <<'PY'
import json, statistics, sys
plans = {}
for line in open(sys.argv[1]):
    plan, run = json.loads(line)
    exchange = next(kind for kind in run["phases"]["kinds"] if kind["name"] == "exchange")
    steps = run["phases"]["steps"]
    plans.setdefault(plan, []).append((run["median_seconds"] * 1e3, exchange["ns"] / steps * 1e-6,
                                       exchange["in_flight_ns"] / steps * 1e-6, exchange["bytes"] / steps * 1e-6))
print(f"{'plan':40} {'step, ms':>10} {'exposed, ms':>12} {'in flight, ms':>14} {'exposed':>8} {'MB a rank':>10}")
for plan, runs in plans.items():
    step, exposed, flight, size = (statistics.median(column) for column in zip(*runs))
    print(f"{plan:40} {step:10.1f} {exposed:12.2f} {flight:14.2f} {100 * exposed / flight:7.0f}% {size:10.1f}")
PY
