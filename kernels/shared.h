/* SPDX-License-Identifier: MIT */
/* shared - a comm of processes (or threads) of one host over shared memory, without MPI
 *
 * One process makes the region before it starts the ranks, which inherit the descriptor:
 *
 *     dt_shared_new(ranks, &fd);
 *     ... fork, and perhaps exec ...
 *     dt_comm_shared(fd, rank, ranks, &comm);
 *
 * Waits spin for some tens of microseconds, then sleep. A wait ends in DT_EDEAD when a rank it
 * waits for has ended or has freed its comm, and in DT_ETIMEOUT after a minute without
 * progress; the comms of this rank are then lost. They are also lost when one is freed with
 * exchanges in flight.
 */
#ifndef DT_KERNELS_SHARED_H
#define DT_KERNELS_SHARED_H

#include "kernels/comm.h"

/* An unlinked file in memory for `ranks` ranks. *fd is inherited by exec; the
 * caller closes it. DT_ELIB. */
dt_status dt_shared_new(int ranks, int *fd) DT_MUST_CHECK;

/* Call once per rank. fd may be closed afterwards. DT_EUSAGE when the region was made for another
 * number of ranks; DT_ELIB, DT_ENOMEM. */
dt_status dt_comm_shared(int fd, int rank, int ranks, struct dt_comm **comm) DT_MUST_CHECK;

#endif
