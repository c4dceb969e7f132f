#!/bin/bash
# SPDX-License-Identifier: MIT
# Every attention kernel uses tensor cores and spills nothing, and docs/cuda_kernels.md says what was built.
set -euo pipefail
build=$1 source=$2
if [ ! -x "$build/cuda-instances" ]; then
    echo "skipped: the CUDA back end is not built"
    exit 77
fi
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
"$source/tools/cuda_table.py" "$build" --check
