#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: full
# The back end compiles with the oldest supported toolkit: its headers and ptxas from Python's registry, which has no nvcc of it, so
# the kernels by clang. Loads some 450 MB.
set -euo pipefail
build=$1 source=$2
version=12.2.140
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download -q --no-deps -d "$folder" "nvidia-cuda-nvcc-cu12==$version" "nvidia-cuda-runtime-cu12==$version" nvidia-cublas-cu12==12.2.5.6 \
    >"$folder/said" 2>&1 || { echo "skipped: no packages of CUDA $version: $(tail -1 "$folder/said")"; exit 77; }
for package in "$folder"/*.whl; do python3 -m zipfile -e "$package" "$folder/x" && rm "$package"; done
mkdir "$folder/toolkit"
cp -r "$folder"/x/nvidia/*/include "$folder"/x/nvidia/cuda_nvcc/{bin,nvvm} "$folder/toolkit"
chmod +x "$folder/toolkit/bin/ptxas"
DITTUNE_CUDA_TOOLKIT=$folder/toolkit bash "$source/tests/tools/cuda_toolkit.sh" "$build" "$source"
