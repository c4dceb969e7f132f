#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails where there is a CUDA compiler and a build has not the CUDA back end with NCCL, linked as dittune-worker-cuda.
#
#     tools/check-cuda.sh [BUILD]        build/dev
#
# The compiler is looked for on PATH, in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda*; where there is none it says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}

find_nvcc()
{
    local bin
    command -v nvcc && return
    for bin in "${CUDA_HOME:-}"/bin "${CUDA_PATH:-}"/bin /usr/local/cuda*/bin; do
        [ ! -x "$bin/nvcc" ] || { echo "$bin/nvcc"; return; }
    done
    return 1
}
nvcc=$(find_nvcc) || { echo "check-cuda: no nvcc here, there is no CUDA back end to build"; exit 0; }

ends=$(cat "$build/back-ends.txt" 2>/dev/null || echo "$build was not configured")
for word in 'cuda (' 'nccl ('; do
    [[ $ends == *"$word"* ]] || {
        echo "check-cuda: $nvcc is here, but not '${word% (}' among the back ends: $ends" >&2
        exit 1
    }
done
[ -x "$build/dittune-worker-cuda" ] || { echo "check-cuda: $build/dittune-worker-cuda was not linked" >&2; exit 1; }
libraries=$(ldd "$build/dittune-worker-cuda")
for library in libcublasLt libnccl; do
    grep -q "$library.*=> /" <<<"$libraries" || { echo "check-cuda: dittune-worker-cuda finds no $library" >&2; exit 1; }
done
echo "check-cuda: $ends"
