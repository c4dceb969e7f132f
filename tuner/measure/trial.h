/* SPDX-License-Identifier: MIT */
/* trial - one plan: prepare and verify, warm up, look at 8, 16, 32, 64 samples
 * (docs/measuring-appendix.md) */
#ifndef DT_TUNER_MEASURE_TRIAL_H
#define DT_TUNER_MEASURE_TRIAL_H

#include "tuner/measure/rig.h"

struct dt_measure {
    int64_t deadline_ns; /* the trial ends at this time in any case */
    int64_t until_ns;    /* heartbeats of the worker extend the deadline up to this time; 0: not */
    int64_t rest_ns;     /* with 8 samples no further look begins after this time; 0: none */
    double warm_seconds; /* least total time of warm-up steps; at least two are made */
    /* stop when the median's interval is this narrow, as a share of the median */
    double half_width;
    /* Best plan so far: sampling stops once this one is shown to be slower; NULL: never. */
    const struct dt_result *incumbent;
    double incumbent_times; /* its steps take so many times as long now; 0: as long as then */
    bool peak;              /* also measure the GEMM peak */
    bool exchanges;         /* also time the plan's exchanges by themselves */
    int trace;              /* also look at the parts of so many steps, after all others; 0: not */
    /* called for each measured process */
    dt_status (*keep)(void *context, const struct dt_result *result);
    void *context;
    const char *output; /* write the network's output to this file; NULL: do not */
};

/* *result is initialised here and owned by the caller, also when the trial failed (which is data,
 * DT_OK). DT_EINTR after a signal. */
dt_status dt_measure_plan(struct dt_rig *rig, const struct dt_point *point,
                          const struct dt_measure *how, struct dt_result *result) DT_MUST_CHECK;

/* The ceilings of the plan's devices (flop_peak and copy_peak of *result), in the processes that
 * would run it: after all measurements, where they may not disturb the memory that plans find. None
 * when the worker does not answer, which is no error. */
dt_status dt_measure_ceilings(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              struct dt_result *result) DT_MUST_CHECK;

/* Time after which a run of n steps counts as hung, derived from the cold step. */
int64_t dt_measure_deadline(const struct dt_result *result, int steps, int64_t deadline_ns);

/* ---- in several fresh processes, each with its own warm-up (docs/measuring-appendix.md) */

#define DT_PROCESSES_MOST 64

/* Like dt_measure_plan, n times in fresh groups: *result combines them, or is the first failure.
 * The peak, the exchanges and the output are those of the last. DT_EINTR: *result has the samples
 * so far; n is 0 without any. */
dt_status dt_measure_processes(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n,
                               struct dt_result *result) DT_MUST_CHECK;

/* Joins finished results of one plan: all their steps, the figures of the steady ones, and the
 * median and interval over the medians of the parts. *whole is initialised and gets what the worker
 * reported beside the times from the parts, which stay the caller's. */
dt_status dt_processes_join(struct dt_result parts[], int n, struct dt_result *whole) DT_MUST_CHECK;

#endif
