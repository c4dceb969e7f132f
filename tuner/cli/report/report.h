/* SPDX-License-Identifier: MIT */
/* report - what people read: tables to paste, one sentence on how sure it is */
#ifndef DT_TUNER_CLI_REPORT_REPORT_H
#define DT_TUNER_CLI_REPORT_REPORT_H

#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out);
void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* The object of `run --json`; one: the 1-rank plan measured beside it, n is 0 without one. New reference. */
json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target);
/* The object that `run --json` prints: the only one of the list, or with values of a sweep what they say together. New
 * reference. */
json_t *dt_record_runs(const struct dt_sweep *sweep, json_t *list);
/* A step of the sweep that was not measured, for that list. New reference. */
json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason);

/* The same and how it compares with one (n is 0: nothing); the curve and fits of a sweep, from dt_record_runs. */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);
void dt_report_sweep(const struct dt_sweep *sweep, const json_t *record, struct dt_text *text);

/* What `run` found: the list of dt_record_run's objects, or text for people about the only one, which is freed. */
dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text,
                       bool json) DT_MUST_CHECK;

/* One line for each thing about the samples that a reader must know. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* The sentence about a cold run: when the blocks of `plan` got faster than those of `one` while its first step got
 * slower, says so and why; adds nothing otherwise. Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

#endif
