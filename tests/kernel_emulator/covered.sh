#!/bin/bash
# SPDX-License-Identifier: MIT
# Every launcher of kernels/cuda/launch.h is called by a test of this folder, and every function of kernels/cuda/ptx.cuh has
# its twin.
set -euo pipefail
cd "$2"
bad=0
for name in $(grep -o 'dt_launch_[a-z0-9_]*(' kernels/cuda/launch.h | tr -d '(' | sort -u); do
    grep -q "$name(" tests/kernel_emulator/*.c tests/kernel_emulator/*.cpp || { echo "$name is in no test of tests/kernel_emulator"; bad=1; }
done
twins=tests/kernel_emulator/include/kernels/cuda/ptx.cuh
for name in $(grep 'DT_INLINE .*(' kernels/cuda/ptx.cuh | grep -o 'dt_[a-z0-9_]*(' | tr -d '(' | sort -u); do
    grep -q "DT_INLINE .*\b$name(" "$twins" || { echo "$name has no twin in $twins"; bad=1; }
done
exit $bad
