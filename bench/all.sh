#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every benchmark, one after the other, and docs/benchmarks.md of what they found. Wants a quiet machine.
#
#     bench/all.sh [BUILD] [--quick] [OUT]     (default: build/release, docs/benchmarks.md)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=() words=()
for word in "$@"; do
    if [ "$word" = --quick ]; then quick=(--quick); else words+=("$word"); fi
done
build=${words[0]:-build/release} out=${words[1]:-docs/benchmarks.md}
[ -x "$build/dittune" ] || { echo "all.sh: no dittune in $build: cmake --workflow --preset release" >&2; exit 2; }
BENCH_ROWS=$(mktemp) BENCH_LOAD=$(cut -d' ' -f1-3 /proc/loadavg)
export BENCH_ROWS BENCH_LOAD
trap 'rm -f "$BENCH_ROWS" "$out.new"' EXIT
failed=0
for name in kernels step ranks replicas groups overlap overhead search_cpu; do
    "bench/$name.sh" "$build" "${quick[@]}" || {
        failed=1
        echo "all.sh: bench/$name.sh failed" >&2
        echo '{"kind": "failed", "why": "the benchmark ended with an error"}' >>"$BENCH_ROWS"
    }
    echo
done
{
    python3 bench/report.py "$build" "$BENCH_ROWS" "${quick[@]}" || exit 1
    [ ! -e "$out" ] || sed -n '/^## \(Search on recorded tables\|Spaces\)$/,$p' "$out" # from bench/search.sh, search/peers.sh, spaces.sh
} >"$out.new"
mv "$out.new" "$out" || exit 1
echo "$out"
exit $failed
