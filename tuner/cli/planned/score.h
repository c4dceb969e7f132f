/* SPDX-License-Identifier: MIT */
/* score - predictions of plans held against a table of measured times: winners, errors, intervals, memory */
#ifndef DT_TUNER_CLI_PLANNED_SCORE_H
#define DT_TUNER_CLI_PLANNED_SCORE_H

#include "tuner/cli/options.h"

/* Prints the scores of a CSV file (docs/cost.md has its columns). DT_EUSAGE: a column or unit is unknown, or missing; DT_EIO. */
dt_status dt_score_table(const struct dt_options *options, const char *path) DT_MUST_CHECK;

#endif
