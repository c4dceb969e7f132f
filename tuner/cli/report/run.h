/* SPDX-License-Identifier: MIT */
/* run - the report of `run` on a plan, or on a sweep of plans: an object for each plan, and text (docs/json.md) */
#ifndef DT_TUNER_CLI_REPORT_RUN_H
#define DT_TUNER_CLI_REPORT_RUN_H

#include "tuner/measure/measure.h"

/* The object of `run --json`; one: the 1-rank plan measured beside it, n is 0 without one. New reference. */
json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target);
/* A step of the sweep that was not measured, for the list of those objects. New reference. */
json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason);

/* The same as text, compared with `one` (n is 0: there is none). */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);

/* Prints the result of `run`: the list of dt_record_run's objects (the only one by itself; those of a sweep with its curve
 * and fits), or the text about them. Frees the text. */
dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text,
                       bool json) DT_MUST_CHECK;

#endif
