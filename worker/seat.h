/* SPDX-License-Identifier: MIT */
/* seat - rank and cores of this process, determined before any call of MPI
 *
 * Launchers set rank and size in the environment; without a launcher a process is rank 0 of 1. The
 * ranks of a host share its cores evenly, and every OpenMP thread gets a core of its own, whatever
 * the launcher's binding.
 */
#ifndef DT_WORKER_SEAT_H
#define DT_WORKER_SEAT_H

#include "base/status.h"

#include <stdbool.h>

#define DT_SEAT_CORES 1024

struct dt_seat {
    int rank, size;
    int host_rank, host_size; /* among the ranks of this host */
    bool oversubscribed;      /* more ranks on this host than cores */
    bool bound;               /* false when the kernel refuses; then nothing is bound */
    bool
        /* a device computes: threads are not bound to single cores, since NCCL's threads, which
         * launch each exchange, inherit the binding of their creator */
        loose;
    int cores[DT_SEAT_CORES], core_count;
};

/* Reads the environment. DT_EUSAGE when the launcher's numbers make no sense. */
dt_status dt_seat_find(struct dt_seat *seat) DT_MUST_CHECK;

/* Binds the process to its share of the cores. Before the first OpenMP region. */
dt_status dt_seat_bind(struct dt_seat *seat) DT_MUST_CHECK;

/* Binds OpenMP thread i to core i of the share. Call it whenever the number of threads may have
 * changed: libgomp then ends and starts threads, and a new thread inherits the single core of its
 * creator. When loose, there are as many threads as cores, and none is bound to one. */
dt_status dt_seat_threads(const struct dt_seat *seat, int threads) DT_MUST_CHECK;

/* Starts ranks 1 to ranks-1; seat, that of a single process, becomes that of rank 0. *fd: the
 * shared memory, for dt_comm_shared. DT_ELIB with a sentence. */
dt_status dt_ranks_start(struct dt_seat *seat, int ranks, int *fd) DT_MUST_CHECK;

/* Descriptor of the shared memory in a rank started by dt_ranks_start; -1 in any other process. */
int dt_ranks_shared(void);

#define DT_TORCHRUN "--as-torchrun" /* dittune-worker --as-torchrun PROGRAM [ARGUMENT ..] */

/* Returns with an error only. program: NULL-ended. */
dt_status dt_torchrun_become(char *const program[]) DT_MUST_CHECK;

#endif
