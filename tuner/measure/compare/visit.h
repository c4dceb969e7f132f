/* SPDX-License-Identifier: MIT */
/* visit - one plan of a comparison made resident, and run for some steps in its turn
 *
 * A plan that fails is no error: its result has the outcome. Errors: DT_EINTR, DT_ENOMEM.
 */
#ifndef DT_TUNER_MEASURE_COMPARE_VISIT_H
#define DT_TUNER_MEASURE_COMPARE_VISIT_H

#include "tuner/measure/compare/entrant.h"

/* Makes the plan resident and warms it up. */
dt_status dt_visit_prepare(struct dt_rig *rig, struct dt_entrant *entrant,
                           int64_t deadline_ns) DT_MUST_CHECK;

/* One untimed step, then timed ones for about 20 ms: sets the visit of that round. If the plan's group died meanwhile,
 * the plan is first made resident again. */
dt_status dt_visit_make(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                        int64_t deadline_ns) DT_MUST_CHECK;

#endif
