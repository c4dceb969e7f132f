/* SPDX-License-Identifier: MIT */
/* telemetry - state of a device while a plan runs: ten readings a second by a separate thread
 *
 *     dt_telemetry_start(&telemetry, &source);      -- nothing where the source has no readings
 *     ...
 *     dt_telemetry_stop(&telemetry);                -- the sums are final
 *     dt_telemetry_json(&telemetry);
 *
 * Power is an average of about a second on most GPUs (docs/measuring-appendix.md), so it describes
 * a whole run, not a step.
 */
#ifndef DT_WORKER_GPUS_TELEMETRY_H
#define DT_WORKER_GPUS_TELEMETRY_H

#include "base/json.h"
#include "kernels/nvml.h"

#include <pthread.h>

/* The values of struct dt_health, in order; its reasons are kept apart. */
enum { DT_TELEMETRY_VALUES = 5 };

struct dt_telemetry_source {
    void (*read)(void *of, struct dt_health *health); /* NULL: no readings */
    const char *(*reason)(int i); /* the name of bit i of the reasons, NULL past the last */
    void *of;                     /* borrowed */
};

struct dt_telemetry {
    struct dt_telemetry_source source;
    bool runs;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stopped;
    bool stop;
    int64_t looks; /* readings */
    /* count and sum of each value where it is known */
    int64_t known[DT_TELEMETRY_VALUES], sums[DT_TELEMETRY_VALUES];
    int64_t least[DT_TELEMETRY_VALUES], most[DT_TELEMETRY_VALUES];
    int64_t reasons;
};

/* Starts the thread; a failure to start it is no error. */
void dt_telemetry_start(struct dt_telemetry *telemetry, const struct dt_telemetry_source *source);
void dt_telemetry_stop(struct dt_telemetry *telemetry);

/* {"looks":n,"sm_mhz":{"least":..,"mean":..,"most":..},...,"reasons":["sw_power_cap"]}, as in
 * docs/protocol.md; new reference, NULL where there were no readings. */
json_t *dt_telemetry_json(const struct dt_telemetry *telemetry);

/* Answers requests until quit or the end of standard input; returns the exit code. */
int dt_observe(void);

/* Values of NVML as JSON, new: a number, null where it is below 0; the names of the bits; the
 * processes on a device. */
json_t *dt_gpu_number(int64_t value);
json_t *dt_gpu_reasons(const char *(*reason)(int i), int64_t bits);
json_t *dt_gpu_processes(const struct dt_nvml_use *use);

#endif
