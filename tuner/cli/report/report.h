/* SPDX-License-Identifier: MIT */
/* report - results for people: tables, and one sentence on how certain they are */
#ifndef DT_TUNER_CLI_REPORT_REPORT_H
#define DT_TUNER_CLI_REPORT_REPORT_H

#include "base/json.h"
#include "base/text.h"
#include "tuner/measure/measure.h"
#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, struct dt_text *out);

/* "; after all steps the image differs by 0.03, a second one of the 1-rank plan by 0.02"; nothing
 * where it was not compared. */
void dt_report_image_error(const struct dt_result *result, struct dt_text *out);

/* "50 ms, 25 steps of 2 ms and ..": the time of a whole batch of images, where target->image.known.
 * gain: inserted after it. */
void dt_report_image(const struct dt_target *target, const struct dt_result *result,
                     const char *gain, struct dt_text *out);

/* The same of the session's best plan, with its gain over the default; false: the image's
 * steps are not known. */
bool dt_report_whole_image(const struct dt_session *session, struct dt_text *out);

/* Appends the warnings about the samples, one line each. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* When the blocks of `plan` are faster than those of `one` but its first step is slower, appends a
 * sentence with the reason. Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

/* ---- run: the report of `run` on a plan, or on a sweep of plans: an object for each plan,
 * and text (docs/json.md) */

/* The object of `run --json`; one: the 1-rank plan measured beside it, n is 0
 * without one. New reference. */
json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target);
/* A step of the sweep that was not measured, for the list of those objects. New reference. */
json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason);

/* The same as text, compared with `one` (n is 0: there is none). */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);

/* Prints the result of `run`: the list of dt_record_run's objects (the only one by itself; those of
 * a sweep with its curve and fits), or the text about them. Frees the text. */
dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text,
                       bool json) DT_MUST_CHECK;

#endif
