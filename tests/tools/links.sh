#!/bin/bash
# SPDX-License-Identifier: MIT
# The controller links neither MPI, CUDA nor oneDNN; the worker links no GSL.
set -euo pipefail
build=$1

absent() # program, pattern
{
    libraries=$(ldd "$build/$1")
    if grep -E "$2" <<<"$libraries"; then
        echo "$1 links the libraries above"
        exit 1
    fi
}
absent dittune 'libmpi|libopen-(rte|pal)|libcuda|libcudart|libcublas|libcudnn|libnccl|libdnnl'
absent dittune-worker 'libgsl\.'
# The pattern must be able to match: the worker of a build with MPI has it.
if grep -q '^MPI_C_LIBRARIES:.*mpi' "$build/CMakeCache.txt" 2>/dev/null || grep -q '^MPI_C_WORKS' "$build/CMakeCache.txt"; then
    ldd "$build/dittune-worker" | grep -q 'libmpi' || { echo "dittune-worker links no MPI, though it was found"; exit 1; }
fi
