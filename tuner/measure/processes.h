/* SPDX-License-Identifier: MIT */
/* processes - one plan measured in several fresh processes, each with its own warm-up (docs/measuring.md)
 *
 * What one start of the processes did to the times, all samples of it share; only another start shows how much it was.
 */
#ifndef DT_TUNER_MEASURE_PROCESSES_H
#define DT_TUNER_MEASURE_PROCESSES_H

#include "tuner/measure/measure.h"

#define DT_PROCESSES_MOST 64

/* As dt_measure_plan, n times in fresh groups: *result is what they say together, or the first that failed. The peak, the
 * exchanges and the output are those of the last. DT_EINTR: of what was measured until then, n is 0 when that is nothing. */
dt_status dt_measure_processes(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n,
                               struct dt_result *result) DT_MUST_CHECK;

/* Several finished results of one plan as one: all their steps, what follows from the steady ones, and as median and
 * interval those over the medians of the parts. *whole is initialised; parts stay the caller's. */
dt_status dt_processes_join(const struct dt_result parts[], int n,
                            struct dt_result *whole) DT_MUST_CHECK;

#endif
