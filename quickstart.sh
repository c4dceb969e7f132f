#!/bin/bash
# SPDX-License-Identifier: MIT
# From a fresh Debian or Ubuntu to the best plan of a small Diffusion Transformer on this machine.
#
#     ./quickstart.sh [BUDGET]     time to spend tuning, 90s when not given; as in 90s, 2m, 1h
#
# Installs what is missing (tools/setup.sh), builds build/release without tests and benchmarks, tunes, stores the plan, looks it
# up. Safe to run again. The example is one where tuning pays: images a second of a small network at 64 px. On two cores the
# documented plan is a copy on each core, with one image a step; the plan found makes four images a step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/path.sh

budget=${1:-90s}
if [ $# -gt 1 ] || ! [[ $budget =~ ^[0-9]+(\.[0-9]+)?(s|m|h)?$ ]]; then
    echo "usage: ./quickstart.sh [BUDGET], as in 90s, 2m or 1h" >&2
    exit 2
fi

say() { printf '\n== %s\n' "$*"; }

say "set up"
tools/setup.sh build

say "build (build/release)"
cmake --preset release -DDT_TESTS=OFF -DDT_BENCH=OFF
cmake --build --preset release

work=(--model dit-s/2 --size 64 --objective throughput --batch 1,4)
say "build/release/dittune ${work[*]} --budget $budget"
status=0
build/release/dittune "${work[@]}" --budget "$budget" || status=$?
# 6: a plan is stored, the budget was too short for the final comparison.
[ $status -eq 0 ] || [ $status -eq 6 ] || exit $status

say "build/release/dittune lookup ${work[*]}"
build/release/dittune lookup "${work[@]}"
exit $status
