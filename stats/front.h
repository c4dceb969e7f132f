/* SPDX-License-Identifier: MIT */
/* front - the plans no other beats in both time and memory (Pareto) */
#ifndef DT_STATS_FRONT_H
#define DT_STATS_FRONT_H

#include "base/status.h"

#include <stdint.h>

/* Smaller is better in both. Points without finite values are on no front. */
struct dt_front_point {
    double value;
    int64_t bytes;
    int index; /* index in the caller's list */
};

/* Sorts the points and moves those of the front to their beginning, fastest first; of equals the
 * one with the smallest index. Returns how many. */
int dt_front(struct dt_front_point points[], int n);

#endif
