/* SPDX-License-Identifier: MIT */
/* phases - where a rank's time in steps was spent, in the protocol's form */
#ifndef DT_WORKER_PHASES_H
#define DT_WORKER_PHASES_H

#include "base/json.h"
#include "kernels/forward.h"

/* The object "phases" of `steps` steps, without host_ns and rank; new reference. Sorts the samples of the blocks. host:
 * the device is the host, which is never idle. */
json_t *dt_phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host, int steps);

#endif
