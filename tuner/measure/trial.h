/* SPDX-License-Identifier: MIT */
/* trial - one plan: prepare and verify, warm up, look at 8, 16, 32, 64 samples (docs/measuring.md) */
#ifndef DT_TUNER_MEASURE_TRIAL_H
#define DT_TUNER_MEASURE_TRIAL_H

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

/* ---- in several fresh processes, each with its own warm-up (processes.c, docs/measuring.md) */

#define DT_PROCESSES_MOST 64

/* As dt_measure_plan, n times in fresh groups: *result is what they say together, or the first that failed. The peak, the
 * exchanges and the output are those of the last. DT_EINTR: of what was measured until then, n is 0 when that is nothing. */
dt_status dt_measure_processes(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n,
                               struct dt_result *result) DT_MUST_CHECK;

/* Several finished results of one plan as one: all their steps, what follows from the steady ones, and as median and
 * interval those over the medians of the parts. *whole is initialised; parts stay the caller's. */
dt_status dt_processes_join(const struct dt_result parts[], int n,
                            struct dt_result *whole) DT_MUST_CHECK;

#endif
