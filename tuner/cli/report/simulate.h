/* SPDX-License-Identifier: MIT */
/* report - what `dittune simulate` prints of its repeats (docs/json.md) */
#ifndef DT_TUNER_CLI_REPORT_SIMULATE_H
#define DT_TUNER_CLI_REPORT_SIMULATE_H

#include "base/json.h"
#include "search/landscape/simulate.h"

/* The object of --json, without the name of the landscape; new reference to *object. */
dt_status dt_report_simulation(const struct dt_simulation *simulation, const struct dt_runs *runs,
                               json_t **object) DT_MUST_CHECK;

/* The same for people. */
void dt_report_simulation_text(const json_t *object, struct dt_text *out);

#endif
