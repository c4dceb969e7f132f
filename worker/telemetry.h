/* SPDX-License-Identifier: MIT */
/* telemetry - state of a rank's device while its plan runs: ten readings a second by a separate thread
 *
 *     dt_telemetry_start(&telemetry, device);       -- nothing where the device has no readings
 *     ...
 *     dt_telemetry_stop(&telemetry);                -- the sums are final
 *
 * Power is an average of about a second on most GPUs (docs/measuring.md), so it describes a whole run, not a step.
 */
#ifndef DT_WORKER_TELEMETRY_H
#define DT_WORKER_TELEMETRY_H

#include "kernels/compute.h"

#include <pthread.h>

/* The values of struct dt_health, in order; its reasons are kept apart. */
enum { DT_TELEMETRY_VALUES = 5 };
extern const char *const dt_telemetry_names[DT_TELEMETRY_VALUES];

struct dt_telemetry {
    struct dt_device *device; /* NULL: not running */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool stop;
    int64_t looks; /* readings */
    /* of the known ones of each value */
    int64_t known[DT_TELEMETRY_VALUES], sums[DT_TELEMETRY_VALUES];
    int64_t least[DT_TELEMETRY_VALUES], most[DT_TELEMETRY_VALUES];
    int64_t reasons;
};

/* Starts the thread; a failure to start it is no error. */
void dt_telemetry_start(struct dt_telemetry *telemetry, struct dt_device *device);
void dt_telemetry_stop(struct dt_telemetry *telemetry);

#endif
