#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the CUDA compiler that stands behind it and keeps what ptxas says of each kernel in <object>.ptxas; passes on the rest.
set -uo pipefail
object=
for ((i = 1; i < $#; i++)); do
    [ "${!i}" != -o ] || { j=$((i + 1)); object=${!j}; }
done
[ -n "$object" ] || exec "$@"
status=0
"$@" 2>"$object.said" || status=$?
grep -E '^ptxas info|^    [0-9]+ bytes stack frame' "$object.said" >"$object.ptxas"
grep -vE '^ptxas info|^    [0-9]+ bytes stack frame' "$object.said" >&2
rm -f "$object.said"
exit $status
