/* SPDX-License-Identifier: MIT */
/* cost - estimated cost of a plan's step: operations of the busiest rank and the bytes it sends
 *
 * It only ranks plans before any is measured: it ignores caches, tiles and overlap, so it predicts no times.
 */
#ifndef DT_MODEL_COST_H
#define DT_MODEL_COST_H

#include "model/workload.h"

struct dt_cost {
    double flops; /* of rank 0, which has the largest share, in one step */
    double bytes; /* sent in one step */
};
struct dt_cost dt_cost_of(const struct dt_workload *workload, const struct dt_plan *plan);

/* Time of a step in units of one core's operation, on a machine of so many cores: ranks with more threads than there are cores
 * share them, and a byte takes as long as flops_per_byte operations of a core. */
double dt_cost_step(const struct dt_workload *workload, const struct dt_plan *plan, int cores,
                    double flops_per_byte);

#endif
