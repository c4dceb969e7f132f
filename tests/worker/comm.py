# SPDX-License-Identifier: MIT
# ctest: ranks
"""The comm of MPI under the bodies of tests/kernels/comm.c: every rank says that it is through."""
from lib_group import AS_ROOT, BUILD, Dittune, skip

t = Dittune()
for ranks in (2, 3, 4):
    done = t.run("mpirun", "-n", ranks, "--oversubscribe", BUILD / "tests/test_kernels_comm", "mpi", env=AS_ROOT)
    if done.code == 77:
        skip("built without MPI; install libopenmpi-dev")
    told = done.out.count(f"of {ranks}: mpi keeps to the definitions")
    t.check(f"each of {ranks} ranks is through", done.code == 0 and told == ranks, done)
t.finish()
