/* SPDX-License-Identifier: MIT */
/* comm_int - shared by back ends that split a comm */
#ifndef DT_KERNELS_COMM_COMM_INT_H
#define DT_KERNELS_COMM_COMM_INT_H

#include "kernels/comm.h"

/* Lists the ranks of comm with this color, ordered by key, equal keys by rank; pairs[2 * size] has
 * color and key of each rank. Returns their number; *rank is the position of comm's own rank. */
int dt_comm_members(const struct dt_comm *comm, const int pairs[], int color, int members[],
                    int *rank);

/* A comm of these functions, of rank 0 in a size of 1, with a zeroed state, in one piece of memory:
 * free(comm) frees both. */
dt_status dt_comm_make(const struct dt_comm_ops *ops, size_t state_bytes,
                       struct dt_comm **comm) DT_MUST_CHECK;

/* Copies the pieces that this rank sends to itself. */
dt_status dt_comm_copy_own(struct dt_comm *comm, const struct dt_pieces *pieces,
                           dt_status (*copy)(struct dt_comm *comm, void *to, const void *from,
                                             size_t bytes)) DT_MUST_CHECK;

#endif
