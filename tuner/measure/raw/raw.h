/* SPDX-License-Identifier: MIT */
/* raw - what was measured, as JSON from which every number that was printed can be computed again
 *
 * Times as they were taken and facts that are no statistics: nothing here was derived, and reading it back calls the same
 * functions as measuring did. Other programs may write such records too: docs/database.md has the fields, and what is
 * not there takes its default.
 */
#ifndef DT_TUNER_MEASURE_RAW_RAW_H
#define DT_TUNER_MEASURE_RAW_RAW_H

#include "tuner/measure/compare/compare.h"

/* What of a target is needed so that its plans can be printed and judged again; new reference. From it comes a target that
 * runs nothing: its space has axes only. Errors name `what`. */
json_t *dt_raw_target(const struct dt_target *target);
dt_status dt_raw_read_target(const json_t *record, const char *what,
                             struct dt_target **target) DT_MUST_CHECK;

/* A list of plans and back; at most `room`, and what is no plan of the space is left out. */
json_t *dt_raw_points(const struct dt_space *space, const struct dt_point points[], int n);
int dt_raw_read_points(const json_t *list, const struct dt_space *space, struct dt_point points[],
                       int room);

/* Everything of a result that was measured, found out or decided while it was; new reference. Reading it back, *result is
 * initialised here and to be freed by the caller, also after an error; its statistics are still to be made. */
json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target);
dt_status dt_raw_read_result(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_result *result) DT_MUST_CHECK;

/* A comparison, as it stands when its rounds are over; new reference. */
struct dt_compared {
    const char *name; /* "shoot-out", "final comparison" */
    struct dt_entrant *entrants;
    int count;
    struct dt_sets sets;      /* of fresh processes; count 0: a record of rounds of one start */
    int rounds, looks;        /* rounds: of all sets; looks: at rounds of one start */
    bool complete;            /* it ended by itself, not by a signal */
    struct dt_clocks *clocks; /* of the session, borrowed */
};
/* "sets": rounds of each set of fresh processes; count 0 where the record has none. */
dt_status dt_raw_read_sets(const json_t *record, const char *what,
                           struct dt_sets *sets) DT_MUST_CHECK;
json_t *dt_raw_comparison(const struct dt_compared *compared, const struct dt_target *target);
/* entrants: room for DT_ENTRANTS; to be freed by the caller, also after an error. The name belongs to the record. Everything
 * is judged again. */
dt_status dt_raw_read_comparison(const json_t *record, const char *what,
                                 const struct dt_target *target,
                                 struct dt_compared *compared) DT_MUST_CHECK;

/* "ns" and, when there is one, "clock": steps x ranks, and "least", "requests" into *result, which is initialised and has no samples yet; no statistics.
 * Errors name `what`. */
dt_status dt_raw_read_samples(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Into a record: "clock", steps x ranks, and "throttled", the steps that were; nothing when the worker told no clocks. */
void dt_raw_add_clock(const struct dt_result *result, json_t *record);

/* Then the statistics of a trial: with "looks" at the level of the look reached, else at "level". */
dt_status dt_raw_finish_trial(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Seconds of the visits of an entrant that "ns" and "requests", or "visits_ns", tell of: NAN where there is none.
 * *rounds: how many were told of, at most DT_ROUNDS_MOST. */
dt_status dt_raw_read_visits(const json_t *entrant, const char *what, double visits[DT_ROUNDS_MOST],
                             int *rounds) DT_MUST_CHECK;

#endif
