/* SPDX-License-Identifier: MIT */
/* budget - how a check shares its time among entries; arithmetic, no clock */
#ifndef DT_TUNER_CHECK_BUDGET_H
#define DT_TUNER_CHECK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Estimated time of plans with these steps in `sets` sets: starts, and visits in the usual number of rounds. */
int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets);

/* Time limit of the next of `entries`: its even share of the remaining time, or the time of a verdict LOSES (6 sets) if
 * that is more, but at most half of the remaining time, so that one slow entry does not take the time of many. 0: not
 * even the first look fits. The first of a run, the least recently checked, may use all of it, or it might never be
 * checked. */
int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, const double step_seconds[],
                          int n);

#endif
