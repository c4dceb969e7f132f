/* SPDX-License-Identifier: MIT */
/* roofline - where a step's time goes, and how near each kind of work comes to what the device can do (docs/measuring.md)
 *
 * One table for cores and GPUs: the phases a worker told, the operations and bytes that paper and pencil ask for, and the ceilings
 * that were measured beside the plan (Williams, Waterman, Patterson, CACM 52, 2009).
 */
#ifndef DT_TUNER_MEASURE_ROOFLINE_H
#define DT_TUNER_MEASURE_ROOFLINE_H

#include "base/json.h"
#include "base/text.h"

struct dt_result;
struct dt_target;

/* The object "roofline" of docs/json.md, new reference; NULL when the worker told no phases. */
json_t *dt_roofline(const struct dt_result *result, const struct dt_target *target);

/* It as a table, with a warning when the phases do not make up the step. */
void dt_roofline_text(const json_t *roofline, struct dt_text *out);

#endif
