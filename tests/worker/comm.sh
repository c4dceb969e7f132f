#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The comm of MPI under the bodies of tests/kernels/comm.c: each rank says so when it is through. 77: built without MPI.
command -v mpirun >/dev/null || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for ranks in 2 3 4; do
    said=$(mpirun -n $ranks --oversubscribe "$1/tests/test_kernels_comm" mpi) || exit
    count=$(grep -c "of $ranks: mpi keeps to the definitions" <<<"$said")
    [ "$count" = $ranks ] || { echo "comm.sh: $count of $ranks ranks were through"; exit 1; }
done
