#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: full
# attention=fa3 is compiled from a checkout of flash-attention ($DT_FA3; skipped where there is none), and a folder that is none is
# refused with a sentence. What the kernels compute is checked on a card: test_gpu_cuda attention.
set -euo pipefail
source=$2
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo 'skipped: no nvcc'; exit 77; }
[ -n "${DT_FA3:-}" ] || { echo 'skipped: DT_FA3 names no checkout of github.com/Dao-AILab/flash-attention'; exit 77; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

configure() # DT_FA3
{
    cmake -S "$source" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDT_CUDA=ON -DDT_TESTS=OFF -DDT_MPI=OFF \
        -DCMAKE_CUDA_ARCHITECTURES=90-real "-DDT_FA3=$1" >"$copy/out" 2>&1
}
if configure "$copy" || ! grep -q 'hopper/flash_fwd_launch_template.h' "$copy/out"; then
    echo 'a folder that is no checkout:'
    cat "$copy/out"
    exit 1
fi
configure "$DT_FA3" || { cat "$copy/out"; exit 1; }
cmake --build "$copy/build" -j 2 --target dt_fa3_kernels dt_cuda_host >"$copy/out" 2>&1 || { tail -40 "$copy/out"; exit 1; }
nm "$copy/build/libdt_fa3_kernels.a" >"$copy/names" 2>/dev/null
for head in 64 96 128; do
    grep -q " T dt_fa3_launch_$head\$" "$copy/names"
done
