/* SPDX-License-Identifier: MIT */
/* seat - which rank this process is and which cores it may use, known before any call of MPI
 *
 * Launchers say rank and size in the environment; a process started by none is rank 0 of 1. The ranks of a host share
 * its cores evenly, and every OpenMP thread gets a core of its own, however the launcher bound them.
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
    bool bound;               /* false when the kernel refuses to bind; then nothing is bound */
    bool
        loose; /* a device works: no thread has a core of its own, since those of NCCL, which launch
                 * each exchange, are bound as the one that starts them */
    int cores[DT_SEAT_CORES], core_count;
};

/* Reads the environment. DT_EUSAGE when the launcher's numbers make no sense. */
dt_status dt_seat_find(struct dt_seat *seat) DT_MUST_CHECK;

/* Binds the process to its share of the cores. Before the first OpenMP region. */
dt_status dt_seat_bind(struct dt_seat *seat) DT_MUST_CHECK;

/* Binds OpenMP thread i to core i of the share. To be called whenever the number of threads may have changed: libgomp
 * ends and starts threads with it, and a new thread inherits the one core of its creator. When loose, threads are as
 * many as cores, and none is bound to one. */
dt_status dt_seat_threads(const struct dt_seat *seat, int threads) DT_MUST_CHECK;

#endif
