/* SPDX-License-Identifier: MIT */
/* check - what `dittune check` prints, from the records of a run alone */
#ifndef DT_TUNER_CLI_REPORT_CHECK_H
#define DT_TUNER_CLI_REPORT_CHECK_H

#include "tuner/check/check.h"

void dt_check_text(const struct dt_check_run *run, struct dt_text *out);
void dt_check_junit(const struct dt_check_run *run, struct dt_text *out);
void dt_check_github(const struct dt_check_run *run, struct dt_text *out); /* annotations */

/* The record makes the run fail (exit code 4); it leaves a question open (5). */
bool dt_check_fails(const struct dt_check_run *run, const struct dt_check_record *record);
bool dt_check_open_question(const struct dt_check_record *record);

/* The command line that tunes the entry of a record again, or why there is none. */
const char *dt_check_again(const struct dt_check_record *record);

#endif
