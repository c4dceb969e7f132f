#!/bin/bash
# SPDX-License-Identifier: MIT
# The oldest supported CUDA Toolkit is checked by its number; and the back end compiles with a second toolkit, whose folder is
# $DITTUNE_CUDA_TOOLKIT: the C sources with its headers; the kernels by its nvcc, or by clang with its headers, libdevice and ptxas.
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
# What toolkits may lack. NVTX; and NCCL 2.27, which the images of CUDA 13.0 have: this one's header without what 2.28 has added.
header=$(sed -n 's/^NCCL_INCLUDE:PATH=//p' "$1/CMakeCache.txt" 2>/dev/null)/nccl.h
runtime=$(sed -n 's/^CUDART_INCLUDE:PATH=//p' "$1/CMakeCache.txt" 2>/dev/null)
if [ -e "$header" ] && [ -e "$runtime/cuda_runtime_api.h" ]; then
    old=$(mktemp -d)
    trap 'rm -rf "$old"' EXIT
    sed -e 's/^#define NCCL_MINOR .*/#define NCCL_MINOR 27/; s/^#define NCCL_PATCH .*/#define NCCL_PATCH 3/' \
        -e 's/^#define NCCL_VERSION_CODE .*/#define NCCL_VERSION_CODE 22703/; /NCCL_CTA_POLICY_ZERO/d' \
        -e '/p\{0,1\}nccl\(AlltoAll\|Gather\|Scatter\)(/,/;/d' "$header" >"$old/nccl.h"
    ! grep -q AlltoAll "$old/nccl.h" || { echo 'FAIL the header has AlltoAll still'; exit 1; }
    for file in "$source"/kernels/comm/nccl*.c; do
        cc -std=c11 -D_GNU_SOURCE -DDT_HAVE_CUDA=1 -DDT_HAVE_NCCL=1 -Wall -Wextra -Werror -fsyntax-only -I"$source" -isystem "$old" \
            -isystem "$runtime" "$file" || { echo "FAIL ${file##*/} does not compile with NCCL 2.27"; exit 1; }
    done
    echo "ok   NCCL 2.27"
    sed 's/__has_include(<nvtx3.*>)/0/' "$source/kernels/cuda/cuda.c" >"$old/cuda.c"
    cublas=$(sed -n 's/^CUBLASLT_INCLUDE:PATH=//p' "$1/CMakeCache.txt")
    cc -std=c11 -D_GNU_SOURCE -DDT_HAVE_CUDA=1 -Wall -Wextra -Werror -fsyntax-only -I"$source" -isystem "$runtime" -isystem "$cublas" \
        "$old/cuda.c" || { echo 'FAIL cuda.c does not compile without NVTX'; exit 1; }
    echo "ok   without NVTX"
    rm -rf "$old"
    trap - EXIT
else
    echo "skipped: NCCL 2.27, there is no nccl.h"
fi
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
clang=
for version in 22 21 20 19 18 17 16; do # from 16 on it knows sm_90
    [ -n "$clang" ] || clang=$(command -v "clang++-$version" || true)
done
kernels=("$source"/kernels/cuda/*.cu "$1"/generated/attention_*.cu)
[ -e "${kernels[-1]}" ] || unset 'kernels[-1]'
if [ -x "$toolkit/bin/nvcc" ]; then
    compile() { "$toolkit/bin/nvcc" -std=c++17 -arch="$1" -I"$source" -cubin -o /dev/null "$2"; }
elif [ -x "$toolkit/bin/ptxas" ] && [ -d "$toolkit/nvvm/libdevice" ] && [ -n "$clang" ]; then
    instance=$(mktemp --suffix=.cu)
    trap 'rm -f "$instance"' EXIT
    # The kernels by clang and the toolkit's ptxas, then their host code. clang would put the table of an instance, with its pointers
    # to host functions, on the device, too.
    compile()
    {
        local words=("$clang" -x cuda "--cuda-path=$toolkit" "--cuda-gpu-arch=$1" -std=c++17 -Wno-unknown-cuda-version -I"$source")
        sed 's/^DT_ATTENTION_INSTANCE(\(.*\))/const void *used(dt_attention_shape<\1>) { using shape = dt_attention_shape<\1>; if constexpr (shape::fits) return (const void *)dt_attention_kernel<shape>; else return nullptr; }/' "$2" >"$instance"
        "${words[@]}" -O2 --cuda-device-only -c -o /dev/null "$instance" && "${words[@]}" --cuda-host-only -fsyntax-only "$2"
    }
else
    echo "skipped: the kernels, $toolkit has neither bin/nvcc nor bin/ptxas and nvvm/libdevice for a clang++ from 16 on"
    kernels=()
fi
for file in "${kernels[@]}"; do
    for arch in sm_80 sm_90; do
        count=$((count + 1))
        compile $arch "$file" || failed=$((failed + 1))
    done
done
echo "$count sources with $toolkit, $failed do not compile"
[ $failed -eq 0 ] && [ $count -gt 5 ]
