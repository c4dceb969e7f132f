/* SPDX-License-Identifier: MIT */
/* comm_int - what several back ends need to split a comm */
#ifndef DT_KERNELS_COMM_COMM_INT_H
#define DT_KERNELS_COMM_COMM_INT_H

#include "kernels/comm.h"

/* The ranks of comm whose color is this one, ordered by key, equal keys by rank; pairs[2 * size] is color and key of each.
 * Returns how many; *rank is where comm's own rank stands. */
int dt_comm_members(const struct dt_comm *comm, const int pairs[], int color, int members[],
                    int *rank);

#endif
