/* SPDX-License-Identifier: MIT */
/* report - what people read: tables to paste, one sentence on how sure it is */
#ifndef DT_TUNER_REPORT_REPORT_H
#define DT_TUNER_REPORT_REPORT_H

#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out);
void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* The same and how it compares with one (n is 0: nothing); the curve and fits of a sweep, from dt_record_runs. */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);
void dt_report_sweep(const struct dt_sweep *sweep, const json_t *record, struct dt_text *text);

/* One line for each thing about the samples that a reader must know. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* The sentence about a cold run: when the blocks of `plan` got faster than those of `one` while its first step got
 * slower, says so and why; adds nothing otherwise. Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

#endif
