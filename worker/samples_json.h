/* SPDX-License-Identifier: MIT */
/* samples_json - a rank's phases and telemetry as they stand in the answer to `run` (docs/protocol.md); new references */
#ifndef DT_WORKER_SAMPLES_JSON_H
#define DT_WORKER_SAMPLES_JSON_H

#include "base/json.h"
#include "kernels/forward.h"
#include "worker/telemetry.h"

/* The object "phases" of `steps` steps, without host_ns and rank. Sorts the samples of the blocks. host: the device is
 * the host, which is never idle. */
json_t *dt_phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host, int steps);

/* {"looks":n,"sm_mhz":{"least":..,"mean":..,"most":..},...,"reasons":["sw_power_cap"]}; NULL where the device gives no readings. */
json_t *dt_telemetry_json(const struct dt_telemetry *telemetry);

#endif
