/* SPDX-License-Identifier: MIT */
/* budget - how a check shares its time among entries; arithmetic, no clock */
#ifndef DT_TUNER_CHECK_BUDGET_H
#define DT_TUNER_CHECK_BUDGET_H

#include <stdint.h>

/* About how long plans of such steps take to start and to be visited in so many rounds. */
int64_t dt_check_estimate_ns(const double step_seconds[], int n, int rounds);

/* How long the next of `entries` may take: its even share of what is left, or what a verdict of LOSES takes (16 rounds)
 * where that is more, for the least recently checked come first. 0: not even the first look fits into what is left. */
int64_t dt_check_share_ns(int64_t left_ns, int entries, const double step_seconds[], int n);

#endif
