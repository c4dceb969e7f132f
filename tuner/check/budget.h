/* SPDX-License-Identifier: MIT */
/* budget - how a check shares its time among entries; arithmetic, no clock */
#ifndef DT_TUNER_CHECK_BUDGET_H
#define DT_TUNER_CHECK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* About how long plans of such steps take in so many sets: to start, and to be visited in a usual number of rounds. */
int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets);

/* How long the next of `entries` may take: its even share of what is left, or what a verdict of LOSES takes (6 sets)
 * where that is more, but half of what is left at most, so that one slow entry does not take the time of many. 0: not even
 * the first look fits. The first of a run, the least recently checked, may have all: else it would never be. */
int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, const double step_seconds[],
                          int n);

#endif
