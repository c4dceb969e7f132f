/* SPDX-License-Identifier: MIT */
/* phases - where the time of a rank's steps went, as the protocol says it */
#ifndef DT_WORKER_PHASES_H
#define DT_WORKER_PHASES_H

#include "base/json.h"
#include "kernels/forward.h"

/* The object "phases" of `steps` steps, host_ns and rank apart; new reference. Sorts the samples of the blocks. host: the device is
 * the host, which is never idle. */
json_t *dt_phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host, int steps);

#endif
