#!/bin/bash
# SPDX-License-Identifier: MIT
# Where there is a CUDA compiler the build has CUDA and NCCL, and the gate of test.sh sees a build that has not.
set -euo pipefail
build=$1 source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-cuda.sh" "$build"
mkdir "$copy/bin"
printf '#!/bin/sh\n' >"$copy/bin/nvcc"
chmod +x "$copy/bin/nvcc"
PATH=$copy/bin:$PATH

refused() # words expected
{
    if "$source/tools/check-cuda.sh" "$copy" >"$copy/out" 2>&1 || ! grep -q "$1" "$copy/out"; then
        echo "not seen: $1"
        cat "$copy/out"
        exit 1
    fi
}
refused 'was not configured'
echo 'back ends: cpu (OpenBLAS), self; without CUDA: no nvcc' >"$copy/back-ends.txt"
refused "not 'cuda'"
echo 'back ends: cpu (OpenBLAS), self, cuda (13.0; sm_80); without nccl' >"$copy/back-ends.txt"
refused "not 'nccl'"
echo 'back ends: cpu (OpenBLAS), self, cuda (13.0; sm_80), nccl (2.28.9)' >"$copy/back-ends.txt"
refused 'was not linked'
cp /bin/true "$copy/dittune-worker-cuda"
refused 'finds no libcublasLt'
