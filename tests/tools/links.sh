#!/bin/bash
# SPDX-License-Identifier: MIT
# The controller links neither MPI, CUDA, oneDNN nor OpenBLAS, and starts in little memory; the worker links no GSL, and no CUDA: its twin dittune-worker-cuda does.
set -euo pipefail
build=$1

# Not `ldd | grep -q`: grep leaves at the first hit, and ldd may die of writing on.
present() # program, pattern
{
    libraries=$(ldd "$build/$1")
    grep -qE "$2" <<<"$libraries" || { echo "$1 links no $2, though it was found"; exit 1; }
}
absent() # program, pattern
{
    libraries=$(ldd "$build/$1")
    if grep -E "$2" <<<"$libraries"; then
        echo "$1 links the libraries above"
        exit 1
    fi
}
absent dittune 'libmpi|libopen-(rte|pal)|libcuda|libcudart|libcublas|libcudnn|libnccl|libdnnl|libopenblas|libgomp'
absent dittune-worker 'libgsl\.|libcuda|libcudart|libcublas|libcudnn|libnccl'
present dittune-worker libopenblas
# The constructor of OpenBLAS ran in circles here.
(ulimit -v 300000 && timeout 60 "$build/dittune" --version) || { echo "dittune does not start in 300 MB of address space"; exit 1; }
# The pattern must be able to match: the worker of a build with MPI has it.
if grep -q '^MPI_C_LIBRARIES:.*mpi' "$build/CMakeCache.txt" 2>/dev/null || grep -q '^MPI_C_WORKS' "$build/CMakeCache.txt"; then
    present dittune-worker libmpi
fi
# So it is with CUDA's, where the program was built. The runtime is linked statically, the driver is opened when it is there.
if [ -x "$build/dittune-worker-cuda" ]; then
    present dittune-worker-cuda libcublasLt
    absent dittune-worker-cuda 'libcudart|libcuda\.so|libgsl\.'
fi
