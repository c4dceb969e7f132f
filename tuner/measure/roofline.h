/* SPDX-License-Identifier: MIT */
/* roofline - time of a step by kind of work, and each kind's rate relative to the device's ceiling (docs/measuring.md)
 *
 * One table for cores and GPUs: the phases that the worker reported, operations and bytes computed from the shapes, and
 * the ceilings measured beside the plan (Williams, Waterman, Patterson, CACM 52, 2009).
 */
#ifndef DT_TUNER_MEASURE_ROOFLINE_H
#define DT_TUNER_MEASURE_ROOFLINE_H

#include "base/json.h"
#include "base/text.h"

struct dt_result;
struct dt_target;

/* The object "roofline" of docs/json.md, new reference; NULL when the worker reported no phases. */
json_t *dt_roofline(const struct dt_result *result, const struct dt_target *target);

/* Prints it as a table, with a warning when the phases do not add up to the step. */
void dt_roofline_text(const json_t *roofline, struct dt_text *out);

#endif
