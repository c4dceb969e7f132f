/* SPDX-License-Identifier: MIT */
/* raw - what was measured, as JSON from which every number that was printed can be computed again
 *
 * Times as they were taken and facts that are no statistics: nothing here was derived, and reading it back calls the same
 * functions as measuring did. Other programs may write such records too: docs/database.md has the fields, and what is
 * not there takes its default.
 */
#ifndef DT_TUNER_TRIAL_RAW_H
#define DT_TUNER_TRIAL_RAW_H

#include "tuner/trial/compare.h"

/* "ns" and, when there is one, "clock": steps x ranks, and "least", "requests" into *result, which is initialised and has no samples yet; no statistics.
 * Errors name `what`. */
dt_status dt_raw_read_samples(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Into a record: "clock", steps x ranks, and "throttled", the steps that were; nothing when the worker told no clocks. */
void dt_raw_add_clock(const struct dt_result *result, json_t *record);

/* The same and then the statistics of a trial: with "looks" at the level of the look reached, else at "level". */
dt_status dt_raw_read_trial(const json_t *record, const char *what,
                            struct dt_result *result) DT_MUST_CHECK;

/* Seconds of the visits of an entrant that "ns" and "requests", or "visits_ns", tell of: NAN where there is none.
 * *rounds: how many were told of, at most DT_ROUNDS_MOST. */
dt_status dt_raw_read_visits(const json_t *entrant, const char *what, double visits[DT_ROUNDS_MOST],
                             int *rounds) DT_MUST_CHECK;

#endif
