/* SPDX-License-Identifier: MIT */
/* telemetry - how a rank's device is while its plan runs: ten looks a second by a thread of its own
 *
 *     dt_telemetry_start(&telemetry, device);       -- nothing where the device does not tell
 *     ...
 *     dt_telemetry_stop(&telemetry, &json);
 *
 * Power is an average of about a second on most GPUs (docs/measuring.md), so it says something of a whole run, not of a step.
 */
#ifndef DT_WORKER_TELEMETRY_H
#define DT_WORKER_TELEMETRY_H

#include "base/json.h"
#include "kernels/compute.h"

#include <pthread.h>

struct dt_telemetry {
    struct dt_device *device; /* NULL: nobody looks */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool stop;
    int64_t looks, sums[5]; /* of the fields of struct dt_health but reasons, known ones only */
    int64_t known[5], least[5], most[5];
    int64_t reasons;
};

/* Starts looking; a thread that cannot be started is no error. */
void dt_telemetry_start(struct dt_telemetry *telemetry, struct dt_device *device);
/* {"looks":n,"sm_mhz":{"least":..,"mean":..,"most":..},...,"reasons":["sw_power_cap"]}, new reference; NULL when nobody looked. */
json_t *dt_telemetry_stop(struct dt_telemetry *telemetry);

#endif
