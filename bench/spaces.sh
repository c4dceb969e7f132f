#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The published spaces of bench/spaces and of another folder, then the planted ones of 1e9 combinations: counted and listed from
# their files, by the library alone and by the program from its start to its end.
#
#     bench/spaces.sh [BUILD] [FOLDER]       (build/release, ../shared/spaces)
set -euo pipefail
cd "${0%/*}/.."
build=${1:-build/release} folder=${2:-../shared/spaces}
shopt -s nullglob
published=() planted=()
for file in "$folder"/*.json bench/spaces/*.json; do
    case ${file##*/} in planted_*) planted+=("$file") ;; *) published+=("$file") ;; esac
done
"$build/bench-space-speed" "${published[@]}"
echo
for file in "${planted[@]}"; do "$build/bench-space-speed" "$file" | tail -n +3; done
echo
best=
for _ in 1 2 3 4 5; do
    TIMEFORMAT=%U
    user=$({ time for file in "${published[@]}"; do "$build/dittune" space --space "$file" --json >/dev/null; done; } 2>&1)
    if [ -z "$best" ] || [ "${user/./}" -lt "${best/./}" ]; then best=$user; fi
done
echo "dittune space --space FILE --json, ${#published[@]} processes: $best s of user time"
