#!/bin/bash
# SPDX-License-Identifier: MIT
# The drawings of docs/tour.md are as the includes, and the check sees a changed include, a drawing and a file that are missing.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-tour.py" "$source"

mkdir "$copy/docs"
cp "$source/docs/tour.md" "$copy/docs/"
for module in base model space stats search db kernels worker tuner; do cp -r "$source/$module" "$copy/"; done
refused() { ! "$source/tools/check-tour.py" "$copy" >"$copy/out" 2>&1 || { echo "not seen: $1"; exit 1; }; }
sed -i '1a #include "model/tensors.h"' "$copy/model/workload.h"
refused "workload.h above tensors.h"
"$source/tools/check-tour.py" --fix "$copy" >/dev/null
"$source/tools/check-tour.py" "$copy" >/dev/null
sed -i 's/`rng.h` has/`gone.h` has/' "$copy/docs/tour.md"
refused "a file that is gone"
grep -q "base has no gone.h" "$copy/out"
sed -i 's/`gone.h` has/`rng.h` has/; s/drawing=stats/drawing/' "$copy/docs/tour.md"
refused "no drawing of stats"
grep -q "no drawing of stats" "$copy/out"
