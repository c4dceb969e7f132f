/* SPDX-License-Identifier: MIT */
/* ranks - starts the other ranks of a group without a launcher: copies of this program on this host
 *
 * They are started before the first call of a library that does not survive a fork, find rank and size in the
 * environment as under any launcher (worker/seat.h), and share a memory region with rank 0 (kernels/shared.h). They end
 * with rank 0.
 */
#ifndef DT_WORKER_RANKS_H
#define DT_WORKER_RANKS_H

#include "worker/seat.h"

/* Starts ranks 1 to ranks-1; seat, that of a single process, becomes that of rank 0. *fd: the shared memory, for
 * dt_comm_shared. DT_ELIB with a sentence. */
dt_status dt_ranks_start(struct dt_seat *seat, int ranks, int *fd) DT_MUST_CHECK;

/* Descriptor of the shared memory in a rank started by dt_ranks_start; -1 in any other process. */
int dt_ranks_shared(void);

#endif
