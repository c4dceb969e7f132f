/* SPDX-License-Identifier: MIT */
/* samples_json - a rank's phases as they stand in the answer to `run` (docs/protocol.md); a new reference */
#ifndef DT_WORKER_SAMPLES_JSON_H
#define DT_WORKER_SAMPLES_JSON_H

#include "base/json.h"
#include "kernels/forward.h"

/* The object "phases" of `steps` steps, without host_ns and rank. Sorts the samples of the blocks. host: the device is
 * the host, which is never idle. */
json_t *dt_phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host, int steps);

#endif
