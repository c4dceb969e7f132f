/* SPDX-License-Identifier: MIT */
/* measure - one trial: prepare and verify, warm up, look at 8, 16, 32, 64 samples (docs/measuring.md) */
#ifndef DT_TUNER_MEASURE_MEASURE_H
#define DT_TUNER_MEASURE_MEASURE_H

#include "tuner/measure/rig.h"

struct dt_measure {
    int64_t deadline_ns; /* the trial ends here whatever it does */
    int64_t rest_ns; /* with 8 samples no further look begins after this time; 0: no such time */
    double warm_seconds; /* least time of all warm-up steps together; two are made at least */
    double
        half_width; /* stop when the median's interval is this narrow, as a share of the median */
    /* Best plan so far: sampling stops once this one is shown to be slower; NULL: never. */
    const struct dt_result *incumbent;
    bool peak;      /* also measure the GEMM peak */
    bool exchanges; /* also time the plan's exchanges by themselves */
    dt_status (*keep)(void *context, const struct dt_result *result); /* each that was measured */
    void *context;
    const char *output; /* write the network's output to this file; NULL: do not */
};

/* *result is initialised here and owned by the caller, also when the trial failed (which is data, DT_OK).
 * DT_EINTR when a signal asked to stop. */
dt_status dt_measure_plan(struct dt_rig *rig, const struct dt_point *point,
                          const struct dt_measure *how, struct dt_result *result) DT_MUST_CHECK;

/* Seconds a sample may take before a run of n steps counts as hung, from the cold step. */
int64_t dt_measure_deadline(const struct dt_result *result, int steps, int64_t deadline_ns);

#endif
