/* SPDX-License-Identifier: MIT */
/* result_json - a plan's result as JSON: the measurement of journals and `run --raw`,
 * and what --json prints
 *
 * The fields are rows of result.def and printed.def. A measurement is raw times and facts, no
 * statistics: every printed number can be computed from it again, by the same functions as while
 * measuring. Other programs may write samples and comparisons, too: docs/json.md has the fields
 * that `dittune analyze` reads; missing ones take their defaults.
 */
#ifndef DT_TUNER_MEASURE_RECORD_RESULT_JSON_H
#define DT_TUNER_MEASURE_RECORD_RESULT_JSON_H

#include "base/record.h"
#include "tuner/measure/compare/compare.h"

/* Kinds of a measurement's JSON values: matrices are steps x ranks. */
#define DT_KIND_point     json_t *
#define DT_KIND_requests  json_t *
#define DT_KIND_times     json_t *
#define DT_KIND_starts    json_t *
#define DT_KIND_remarks   json_t *
#define DT_KIND_loads     json_t *
#define DT_KIND_phases    json_t *
#define DT_KIND_exchanges json_t *
#define DT_KIND_clock     json_t *
#define DT_KIND_steps     json_t *
#define DT_KIND_telemetry json_t *
#define DT_KIND_names     json_t *
#define DT_KIND_memory    json_t *
extern const struct dt_kind dt_kind_point, dt_kind_requests, dt_kind_times, dt_kind_starts,
    dt_kind_remarks, dt_kind_phases, dt_kind_exchanges, dt_kind_clock, dt_kind_steps,
    dt_kind_telemetry, dt_kind_names, dt_kind_memory;

#include "base/record_structs.h"

#include "tuner/measure/record/result.def"

#include "base/record_structs.h"

#include "tuner/measure/record/printed.def"

/* The JSON of a plan for --json (docs/json.md), and of a trial: without phases and
 * roofline; new references. */
json_t *dt_result_json(const struct dt_result *result, const struct dt_target *target);
json_t *dt_trial_json(const struct dt_result *result, const struct dt_target *target);
/* Its fields that follow from the samples alone; new reference. */
json_t *dt_result_samples_json(const struct dt_result *result);

/* Where a step goes, and how near to the ceilings ("roofline" of docs/json.md). Times and amounts
 * are of one step; NAN: not known. */
struct dt_roofline {
    bool known; /* the worker reported phases */
    double steps, step_seconds, host_seconds;
    double sum_seconds, identity_error; /* sum of the kinds, and its distance from the step */
    bool identity;                      /* they add up */
};
struct dt_roofline_kind {
    const char *name;
    double seconds, share;
    const char *unit; /* "flops" or "bytes"; NULL: not known */
    double amount, rate, ceiling, fraction;
    double in_flight_seconds, bytes, exposed_share; /* set for exchanges; NAN: another kind */
};
struct dt_roofline dt_roofline(const struct dt_result *result);
/* Row i of the result's phases.kinds. */
struct dt_roofline_kind dt_roofline_kind(const struct dt_result *result,
                                         const struct dt_target *target, int i);
/* Prints it as a table, with a warning when the phases do not add up to the step;
 * false: there are none. */
bool dt_roofline_text(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* Writes the part of a target needed to print and judge its plans again; new reference. Reading it
 * gives a target that cannot run plans: its space has only axes. Errors name `what`. */
json_t *dt_raw_target(const struct dt_target *target);
dt_status dt_raw_read_target(const json_t *record, const char *what,
                             struct dt_target **target) DT_MUST_CHECK;

/* The different steps of a request, as a hello or a journal has them, to *step_kinds, a new
 * reference; NULL for NULL. DT_EUSAGE. */
dt_status dt_raw_step_kinds(json_t *list, const char *what, json_t **step_kinds) DT_MUST_CHECK;

/* Write and read a list of plans; at most `room`, skipping those not in the space. */
json_t *dt_raw_points(const struct dt_space *space, const struct dt_point points[], int n);
int dt_raw_read_points(const json_t *list, const struct dt_space *space, struct dt_point points[],
                       int room);

/* Writes all measurements, facts and decisions of a result; new reference. Reading initialises
 * *result, which the caller frees, also after an error; it has no statistics yet. */
json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target);
dt_status dt_raw_read_result(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_result *result) DT_MUST_CHECK;

/* "sets": rounds of each set of fresh processes, which must be there. */
dt_status dt_raw_read_sets(const json_t *record, const char *what,
                           struct dt_sets *sets) DT_MUST_CHECK;
json_t *dt_raw_comparison(const struct dt_compared *compared, const struct dt_target *target);
/* entrants: room for DT_ENTRANTS; to be freed by the caller, also after an error. The name belongs
 * to the record. Everything is judged again. */
dt_status dt_raw_read_comparison(const json_t *record, const char *what,
                                 const struct dt_target *target,
                                 struct dt_compared *compared) DT_MUST_CHECK;

/* Reads the fields of dt_run_read, and "least" and "requests", into *result, which is initialised
 * and has no samples yet; no statistics. Errors name `what`. */
dt_status dt_raw_read_samples(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Then the statistics of a trial: with "looks" at the level of the look
 * reached, else at "level". */
dt_status dt_raw_finish_trial(const json_t *record, const char *what,
                              struct dt_result *result) DT_MUST_CHECK;

/* Reads seconds of an entrant's visits from "ns" and "requests", or "visits_ns": NAN
 * where there is none. */
dt_status dt_raw_read_visits(const json_t *entrant, const char *what,
                             double visits[DT_ROUNDS_MOST]) DT_MUST_CHECK;

/* Gives each parameter that "defaults" of hello names its default. */
dt_status dt_target_settle_defaults(json_t *hello) DT_MUST_CHECK;

/* Copies source, date and sentence, cleaned for terminals. */
void dt_documented_words(const json_t *object, struct dt_documented *documented);

#endif
