/* SPDX-License-Identifier: MIT */
/* telemetry - state of a rank's device while its plan runs: ten readings a second by a separate thread
 *
 *     dt_telemetry_start(&telemetry, device);       -- nothing where the device does not tell
 *     ...
 *     dt_telemetry_stop(&telemetry, &json);
 *
 * Power is an average of about a second on most GPUs (docs/measuring.md), so it describes a whole run, not a step.
 */
#ifndef DT_WORKER_TELEMETRY_H
#define DT_WORKER_TELEMETRY_H

#include "base/json.h"
#include "kernels/compute.h"

#include <pthread.h>

struct dt_telemetry {
    struct dt_device *device; /* NULL: not running */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool stop;
    /* sums of the known values of struct dt_health's fields, without reasons */
    int64_t looks, sums[5];
    int64_t known[5], least[5], most[5];
    int64_t reasons;
};

/* Starts the thread; a failure to start it is no error. */
void dt_telemetry_start(struct dt_telemetry *telemetry, struct dt_device *device);
/* {"looks":n,"sm_mhz":{"least":..,"mean":..,"most":..},...,"reasons":["sw_power_cap"]}, new reference; NULL without
 * readings. */
json_t *dt_telemetry_stop(struct dt_telemetry *telemetry);

#endif
