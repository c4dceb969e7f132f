/* SPDX-License-Identifier: MIT */
/* report - results for people: tables, and one sentence on how certain they are */
#ifndef DT_TUNER_CLI_REPORT_REPORT_H
#define DT_TUNER_CLI_REPORT_REPORT_H

#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out);
void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* "50 ms, 25 steps of 2 ms and ..": the time of a whole batch of images, where target->image.told. gain: inserted after it. */
void dt_report_image(const struct dt_target *target, const struct dt_result *result,
                     const char *gain, struct dt_text *out);

/* The same of the session's best plan, with its gain over the default; false: the image's steps are not known. */
bool dt_report_whole_image(const struct dt_session *session, struct dt_text *out);

/* The sentence on how certain the session's verdict is. */
void dt_report_sureness(const struct dt_session *session, struct dt_text *out);

/* Appends the warnings about the samples, one line each. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* When the blocks of `plan` are faster than those of `one` but its first step is slower, appends a sentence with the reason.
 * Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

#endif
