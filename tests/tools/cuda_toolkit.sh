#!/bin/bash
# SPDX-License-Identifier: MIT
# The oldest supported CUDA Toolkit is checked by its number; and the back end compiles with a second toolkit, whose folder is
# $DITTUNE_CUDA_TOOLKIT: the C sources with its headers, the kernels too where it has nvcc. Python's nvidia folder will do for the headers.
set -euo pipefail
source=$2 # after the build folder
for version in 11.8.89 12.0.140 12.1.105 ""; do
    said=$(cmake -DVERSION="$version" -P "$source/tests/tools/cuda_version.cmake" 2>&1)
    [[ $said == *"is the oldest that is supported"* ]] || { echo "FAIL $version is not refused: $said"; exit 1; }
done
for version in 12.2.140 12.8.61 13.0.88 14.1; do
    said=$(cmake -DVERSION="$version" -P "$source/tests/tools/cuda_version.cmake" 2>&1)
    [ "$said" = "-- supported" ] || { echo "FAIL $version is refused: $said"; exit 1; }
done
echo "ok   versions"
toolkit=${DITTUNE_CUDA_TOOLKIT:-}
[ -n "$toolkit" ] || { echo "skipped: a second toolkit's folder in DITTUNE_CUDA_TOOLKIT"; exit 0; }
flags=()
for folder in "$toolkit/include" "$toolkit"/*/include; do [ ! -d "$folder" ] || flags+=(-isystem "$folder"); done
[ ${#flags[@]} -gt 0 ] || { echo "FAIL $toolkit has no include folder"; exit 1; }
failed=0 count=0
for file in "$source"/kernels/cuda/*.c; do
    case $file in */cudnn*) continue ;; esac # they need cuDNN's headers, which have versions of their own
    count=$((count + 1))
    cc -std=c11 -D_GNU_SOURCE -DDT_HAVE_CUDA=1 -Wall -Wextra -Werror -fsyntax-only -I"$source" "${flags[@]}" "$file" || failed=$((failed + 1))
done
if [ -x "$toolkit/bin/nvcc" ]; then
    for file in "$source"/kernels/cuda/*.cu; do
        count=$((count + 1))
        "$toolkit/bin/nvcc" -std=c++17 -arch=sm_90 -I"$source" -DDT_CUDA_HEAD=64 -ptx -o /dev/null "$file" || failed=$((failed + 1))
    done
else
    echo "skipped: the kernels, $toolkit has no bin/nvcc"
fi
echo "$count sources with $toolkit, $failed do not compile"
[ $failed -eq 0 ] && [ $count -gt 5 ]
