/* SPDX-License-Identifier: MIT */
/* budget - how a check shares its time among entries; arithmetic, no clock */
#ifndef DT_TUNER_CHECK_BUDGET_H
#define DT_TUNER_CHECK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Estimated time where no session has measured it: of plans with these steps in `sets` sets: starts, and visits in the usual number of rounds. */
int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets);

/* Time limit of the next of `entries`: its even share of the remaining time, or the time of a verdict LOSES (6 sets) if
 * that is more, but at most half of the remaining time, so that one slow entry does not take the time of many. 0: not
 * even the first look fits. The first of a run, the least recently checked, may use all of it, or it might never be
 * checked; the only one does also where its estimate is longer. least_ns, lose_ns: estimates of DT_SETS_LEAST sets, and of those that LOSES needs. */
int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, int64_t least_ns,
                          int64_t lose_ns);

#endif
