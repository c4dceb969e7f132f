/* SPDX-License-Identifier: MIT */
/* history - the formats of `dittune history` (docs/history.md) */
#ifndef DT_TUNER_CLI_REPORT_HISTORY_H
#define DT_TUNER_CLI_REPORT_HISTORY_H

#include "tuner/check/history/timeline.h"

json_t *dt_timelines_json(const struct dt_timelines *lines); /* docs/json.md; new reference */
void dt_timelines_text(const struct dt_timelines *lines, struct dt_text *out);
void dt_timelines_csv(const struct dt_timelines *lines, struct dt_text *out);
void dt_timelines_openmetrics(const struct dt_timelines *lines, struct dt_text *out);

#endif
