/* SPDX-License-Identifier: MIT */
/* device_report - timings, telemetry and memory that the devices of a plan reported (docs/measuring.md)
 *
 * All of it is optional: a worker on cores reports nothing. Kept as the worker sent it; what is printed is computed from that.
 */
#ifndef DT_TUNER_MEASURE_DEVICE_REPORT_H
#define DT_TUNER_MEASURE_DEVICE_REPORT_H

#include "base/json.h"
#include "base/text.h"
#include "tuner/runner/runner.h"

struct dt_result;

struct dt_device_report {
    /* [steps * ranks], owned, NULL: none. ns: by the devices' clocks, 0: unknown. host_ns: by the ranks' clocks, where the samples
     * themselves are the devices' times. */
    long long *ns, *host_ns;
    json_t *telemetry; /* [rank], over the measured requests; owned, NULL: none */
    json_t *reasons;   /* for each measured request, names of all ranks; owned, NULL: none */
    json_t *memory;    /* as dt_device_answer_memory; owned, NULL: none */
};
void dt_device_report_fini(struct dt_device_report *report);

/* Adds the report of a run; `old` values are there already; request: its number among the measured ones, -1: it is none. */
dt_status dt_device_report_add(struct dt_device_report *report, const struct dt_run *run,
                               size_t old, int request) DT_MUST_CHECK;

/* Comparison of host and device clocks. */
struct dt_two_clocks {
    int steps;             /* steady steps timed by both clocks */
    double device_seconds; /* median step by the devices' clocks, slowest rank */
    double excess_seconds; /* median excess of the host's time over the device's, last rank */
    bool disagree;         /* by more than 2 % of the step or 50 us */
    bool judged;           /* the plan's samples are the devices' times */
};
struct dt_two_clocks dt_device_clocks(const struct dt_result *result);

/* Shares of a device's memory, for the rank with the largest; NAN: unknown. */
struct dt_device_memory {
    double used;  /* used share of all memory while the plan was resident, by any process */
    double taken; /* memory taken by the worker over the prediction */
    bool full;    /* used is above 0.95 */
};
struct dt_device_memory dt_device_memory(const struct dt_result *result);

/* Reasons for lowered clocks in the requests with throttled samples, or, without clocks of steps, heat and faults of the power supply in all
 * of them; new reference, may be empty. */
json_t *dt_device_report_reasons(const struct dt_result *result);

/* A line about the devices, and warnings. */
void dt_device_report_text(const struct dt_result *result, struct dt_text *out);
void dt_device_report_warnings(const struct dt_result *result, struct dt_text *out);

#endif
