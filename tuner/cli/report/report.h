/* SPDX-License-Identifier: MIT */
/* report - results for people: tables, and one sentence on how certain they are */
#ifndef DT_TUNER_CLI_REPORT_REPORT_H
#define DT_TUNER_CLI_REPORT_REPORT_H

#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out);
void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* The object of `run --json`; one: the 1-rank plan measured beside it, n is 0 without one. New reference. */
json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target);
/* The object that `run --json` prints: the only one of the list, or for a sweep one with its curve and fits. New reference. */
json_t *dt_record_runs(const struct dt_sweep *sweep, json_t *list);
/* A step of the sweep that was not measured, for that list. New reference. */
json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason);

/* The same as text, compared with `one` (n is 0: there is none); the curve and fits of a sweep, from dt_record_runs. */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);
void dt_report_sweep(const struct dt_sweep *sweep, const json_t *record, struct dt_text *text);

/* Prints the result of `run`: the list of dt_record_run's objects, or text about the only one. Frees the text. */
dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text,
                       bool json) DT_MUST_CHECK;

/* Appends the warnings about the samples, one line each. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* When the blocks of `plan` are faster than those of `one` but its first step is slower, appends a sentence with the reason.
 * Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

#endif
