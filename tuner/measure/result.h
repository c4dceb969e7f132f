/* SPDX-License-Identifier: MIT */
/* result - what was measured of one plan: every sample of every rank, and what follows from them
 *
 * Samples are added as they come, warm-up included; dt_result_finish finds the steady part and sums it up. Nothing is
 * dropped: what is left out of the statistics is left out by index.
 */
#ifndef DT_TUNER_MEASURE_RESULT_H
#define DT_TUNER_MEASURE_RESULT_H

#include "stats/stats.h"
#include "tuner/measure/device_report.h"
#include "tuner/measure/target.h"
#include "tuner/measure/throttle.h"
#include "tuner/runner/runner.h"

struct dt_result {
    struct dt_point point;
    enum dt_outcome outcome;
    char cause[256];
    int ranks, batch, devices;
    int64_t peak_bytes;    /* of the largest rank */
    double cold_seconds;   /* the first step, slowest rank */
    double verified_error; /* relative, worst image; NAN when not verified */
    double cost_seconds;   /* wall time the trial took */
    double
        reference_seconds; /* part of cost_seconds spent on the reference of its batch; not recorded */
    double flop_peak;      /* GEMM rate measured beside it; 0 when it was not */
    double copy_peak;      /* bytes a second read and written by a large copy, beside it; 0 */
    struct dt_device_report device; /* by the devices it ran on */
    int steps;                      /* of ns, warm-up included */
    long long *ns;                  /* [steps * ranks], owned */
    int least;     /* steps before the first measured request: warm-up in any case */
    int *requests; /* [request_count] steps of each measured request, owned */
    int request_count;
    double *
        clock; /* [steps * ranks] in the worker's own unit, NAN where it told none; NULL: never; owned */
    struct dt_clocks *
        clocks; /* of the session, borrowed, learnt from by whoever measures or reads; NULL: there is no session */
    bool *throttled;     /* [steps], owned; NULL: no clocks */
    int throttled_steps; /* of the measured ones: not among the samples, unless all are throttled */
    bool all_throttled;
    int retries;    /* requests made to replace throttled samples */
    int unreplaced; /* throttled samples of this look that were not replaced */
    bool waits;     /* for samples instead of throttled ones */
    int look;       /* of a trial: the look its samples are on the way to, 0..DT_LOOKS-1 */
    int start;      /* first steady step */
    bool steady;
    int n;           /* steady samples */
    double *seconds; /* [n] slowest rank of each steady step, owned */
    struct dt_summary summary;
    double skew_seconds;     /* median of slowest - fastest rank */
    double *rank_seconds;    /* [ranks] medians, owned */
    int *last;               /* [ranks] steps in which the rank was last, owned */
    double *process_seconds; /* [processes.n] median of each fresh process, owned; NULL: of one */
    struct dt_processes processes;
    json_t *
        exchanges; /* of the plan, timed by themselves (tuner/measure/exchange.h), owned; NULL: not asked for */
    json_t *phases;  /* summed over the measured requests, owned; NULL: the worker gives none */
    int phase_steps; /* of the longest of them */
};

void dt_result_init(struct dt_result *result, const struct dt_target *target,
                    const struct dt_point *point);
void dt_result_fini(struct dt_result *result);

/* Takes the samples of a run of as many ranks as before, and its phases if it was measured. */
dt_status dt_result_add(struct dt_result *result, const struct dt_run *run,
                        bool measured) DT_MUST_CHECK;

/* What a trial does after each measured request: the statistics of all steps so far, at the alpha of its look. */
dt_status dt_result_look(struct dt_result *result) DT_MUST_CHECK;
/* Before a further request: the next look when the samples of this one are there; false after the last. */
bool dt_result_next(struct dt_result *result);

/* The slowest rank of the last n steps, together. */
double dt_result_seconds(const struct dt_result *result, int n);

/* Samples on the way to the look. */
int dt_result_counted(const struct dt_result *result);

/* Enough steps follow `least` to look for a steady part. */
bool dt_result_detects(const struct dt_result *result);

/* Statistics at `level`. detect: find the steady part, at or after step `least`; otherwise it starts at `least`. May be called again
 * after more samples. */
dt_status dt_result_finish(struct dt_result *result, double level, bool detect,
                           int least) DT_MUST_CHECK;

/* The outcome of a plan's only trial, as the command's. */
dt_status dt_result_status(const struct dt_result *result) DT_MUST_CHECK;

/* Ranks, samples and skew of the result's n steady steps at ns; room is made for them. */
dt_status dt_result_sum(struct dt_result *result, const long long *ns) DT_MUST_CHECK;

/* The objective's value, smaller is better, and its interval; NAN when there is none. */
struct dt_trial dt_result_trial(const struct dt_result *result, const struct dt_target *target);

/* The fields of docs/json.md that follow from the samples alone; new reference. */
json_t *dt_result_samples_json(const struct dt_result *result);

/* All fields of docs/json.md; new reference. */
json_t *dt_result_json(const struct dt_result *result, const struct dt_target *target);

/* Figures of one plan in integers (times in ns), as they are stored: new reference; null where nothing was measured. */
json_t *dt_result_figures(const struct dt_result *result, const struct dt_target *target);

#endif
