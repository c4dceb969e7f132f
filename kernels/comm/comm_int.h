/* SPDX-License-Identifier: MIT */
/* comm_int - shared by back ends that split a comm */
#ifndef DT_KERNELS_COMM_COMM_INT_H
#define DT_KERNELS_COMM_COMM_INT_H

#include "kernels/comm.h"

/* Lists the ranks of comm with this color, ordered by key, equal keys by rank; pairs[2 * size] has color and key of
 * each rank. Returns their number; *rank is the position of comm's own rank. */
int dt_comm_members(const struct dt_comm *comm, const int pairs[], int color, int members[],
                    int *rank);

#endif
