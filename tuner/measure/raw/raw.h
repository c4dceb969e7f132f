/* SPDX-License-Identifier: MIT */
/* raw - measurements as JSON from which every printed number can be computed again
 *
 * Raw times and facts, no statistics: nothing here is derived, and reading calls the same functions as measuring. Other
 * programs may write such records, too: docs/database.md has the fields; missing ones take their defaults.
 */
#ifndef DT_TUNER_MEASURE_RAW_RAW_H
#define DT_TUNER_MEASURE_RAW_RAW_H

#include "tuner/measure/compare/compare.h"

/* Writes the part of a target needed to print and judge its plans again; new reference. Reading it gives a target that
 * cannot run plans: its space has only axes. Errors name `what`. */
json_t *dt_raw_target(const struct dt_target *target);
dt_status dt_raw_read_target(const json_t *record, const char *what,
                             struct dt_target **target) DT_MUST_CHECK;

/* Write and read a list of plans; at most `room`, skipping those not in the space. */
json_t *dt_raw_points(const struct dt_space *space, const struct dt_point points[], int n);
int dt_raw_read_points(const json_t *list, const struct dt_space *space, struct dt_point points[],
                       int room);

/* Writes all measurements, facts and decisions of a result; new reference. Reading initialises *result, which the
 * caller frees, also after an error; it has no statistics yet. */
json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target);
dt_status dt_raw_read_result(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_result *result) DT_MUST_CHECK;

/* A comparison after its rounds. */
struct dt_compared {
    const char *name; /* "shoot-out", "final comparison" */
    struct dt_entrant *entrants;
    int count;
    struct dt_sets sets;      /* of fresh processes; count 0: a record of rounds of one start */
    int rounds, looks;        /* rounds: of all sets; looks: at rounds of one start */
    bool complete;            /* not ended by a signal */
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

/* Into a record: "clock", steps x ranks, and "throttled", the steps that were; nothing when the worker reported no
 * clocks. */
void dt_raw_add_clock(const struct dt_result *result, json_t *record);

/* Then the statistics of a trial: with "looks" at the level of the look reached, else at "level". */
dt_status dt_raw_finish_trial(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Reads seconds of an entrant's visits from "ns" and "requests", or "visits_ns": NAN where there is none. *rounds:
 * their number, at most DT_ROUNDS_MOST. */
dt_status dt_raw_read_visits(const json_t *entrant, const char *what, double visits[DT_ROUNDS_MOST],
                             int *rounds) DT_MUST_CHECK;

#endif
