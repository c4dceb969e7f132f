/* SPDX-License-Identifier: MIT */
/* workload_json - networks, workloads and plans as JSON objects: of a model file, the worker's
 * hello, a stored plan
 *
 * Errors are DT_EUSAGE, with a sentence that begins with `what`. Writers return a new reference,
 * NULL when out of memory.
 */
#ifndef DT_MODEL_WORKLOAD_JSON_H
#define DT_MODEL_WORKLOAD_JSON_H

#include "base/json.h"
#include "model/workload.h"

dt_status dt_network_from_json(const json_t *root, const char *what,
                               struct dt_network *network) DT_MUST_CHECK;
json_t *dt_network_to_json(const struct dt_network *network);

dt_status dt_workload_from_json(const json_t *root, const char *what,
                                struct dt_workload *workload) DT_MUST_CHECK;
json_t *dt_workload_to_json(const struct dt_workload *workload);

/* {"ranks": 2, ...}: every parameter of the plan's device must be there, an integer from 1 (from 0
 * where it is off by default) to 2^20, or a label; those of the other device get their fallback. A
 * plan that names a parameter of GPUs only is a plan of GPUs. */
dt_status dt_plan_from_json(const json_t *root, struct dt_plan *plan) DT_MUST_CHECK;

#endif
