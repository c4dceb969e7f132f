/* SPDX-License-Identifier: MIT */
/* result - the measurements of one plan: every sample of every rank, and their statistics
 *
 * Steps are added in order, warm-up included; dt_result_finish finds the steady part and computes
 * its statistics. No sample is deleted: statistics exclude samples by index.
 */
#ifndef DT_TUNER_MEASURE_RESULT_H
#define DT_TUNER_MEASURE_RESULT_H

#include "stats/stats.h"
#include "tuner/measure/target.h"
#include "tuner/runner/runner.h"

#include "base/record_structs.h"

#include "tuner/measure/facts.def"

extern const struct dt_facts dt_facts_unknown;

/* An exchange of the plan, timed alone. */
enum { DT_EXCHANGE_SIZES = 8, DT_EXCHANGE_TIMES = 5 };
struct dt_timed_exchange {
    char kind[16];
    int ranks, stride;
    int64_t bytes[DT_EXCHANGE_SIZES];
    bool timed;
    long long ns[DT_EXCHANGE_SIZES * DT_EXCHANGE_TIMES];
    char reason[256]; /* why it was not timed */
};

/* Clocks of ranks, where a worker reports them for each step (docs/protocol.md). The session's
 * reference is each rank's median in the first trial that had it; a sample whose slowest rank was
 * below 95 % of its own is throttled: kept, labelled, and left out of the statistics by index. A
 * trial replaces throttled samples, in three further requests at most. */
struct dt_clocks {
    int ranks;
    double *rate; /* [ranks] of the session, in the worker's own unit; owned */
};
void dt_clocks_fini(struct dt_clocks *clocks);
/* *to: no clocks, or those of before, which are freed. */
dt_status dt_clocks_copy(const struct dt_clocks *from, struct dt_clocks *to) DT_MUST_CHECK;

/* The throttled steps of a trial, and their replacement. */
struct dt_throttling {
    struct dt_clocks *clocks; /* the session's, borrowed; NULL: no session */
    bool *marks; /* [marked] steps that are throttled, owned; NULL: no clocks, or not judged yet */
    int marked;  /* steps that were judged; further ones may have been added since */
    int count;   /* throttled measured steps: no samples, unless all are throttled */
    bool all;
    int retries;    /* requests made to replace throttled samples */
    int unreplaced; /* throttled samples of this look that were not replaced */
    bool waits;     /* for replacements of throttled samples */
};

/* The steady steps, and what follows from them. */
struct dt_samples {
    int start; /* first steady step */
    bool steady;
    int n; /* steady steps */
    /* [n] slowest rank of each, owned; of several replicas the harmonic mean over them, at whose
     * rate each step would make as many images a second as they do together */
    double *seconds;
    double skew_seconds;     /* median of slowest - fastest rank */
    double *rank_seconds;    /* [ranks] medians, owned */
    double *replica_seconds; /* [replicas] medians of their slowest ranks, owned */
    int *last;               /* [ranks] steps in which the rank was last, owned */
    /* [processes.n] median of each fresh process or start, owned; NULL: of one */
    double *process_seconds;
    struct dt_processes processes;
};

struct dt_result {
    struct dt_point point;
    enum dt_outcome outcome;
    char cause[256];
    int ranks;                    /* ranks of all replicas, one behind the other */
    int replicas, batch, devices; /* batch: images of a step of one replica */
    struct dt_facts facts;
    struct dt_ceilings ceilings;
    double busy; /* mean cores that our own processes kept busy during the trial; NAN: not known */
    bool undone; /* the machine was slower then, so the plan is tried again */
    /* part of cost_seconds spent on the reference of its batch; not recorded */
    double reference_seconds;
    /* time of a step of the last request, with all that the worker does around it */
    double wall_seconds;
    /* the trial's time ended before a request had the time that its steps should take: it did
     * not hang */
    bool share_ended;
    bool early;           /* see dt_failure: it did not hang */
    struct dt_run report; /* everything the worker reported about the plan's steps, in order */
    struct dt_device_bytes memory;
    /* [load_count] each time that it was made resident, owned; NULL: none */
    struct dt_rig_load *loads;
    int load_count;
    struct dt_timed_exchange *exchanges; /* [exchange_count], owned; NULL: not requested */
    int exchange_count;
    /* the answer `traced` as JSON text, or, if not `traced`, why there is none;
     * owned; NULL: not requested */
    char *trace;
    bool traced;
    struct dt_throttling throttling;
    int look; /* the next look of a trial, 0..DT_LOOKS-1 */
    struct dt_samples samples;
    struct dt_summary summary; /* summary of samples.seconds */
};

void dt_result_init(struct dt_result *result, const struct dt_target *target,
                    const struct dt_point *point);
void dt_result_fini(struct dt_result *result);

/* Appends a run of as many ranks as before (dt_run_add). */
dt_status dt_result_add(struct dt_result *result, struct dt_run *run, bool measured) DT_MUST_CHECK;

/* Called after each measured request of a trial: computes the statistics of all steps so far, at
 * the alpha of its look. */
dt_status dt_result_look(struct dt_result *result) DT_MUST_CHECK;
/* Called before a further request: moves to the next look when this one's samples are complete;
 * false after the last. */
bool dt_result_next(struct dt_result *result);

/* Others disturbed the trial (dt_load_disturbs). */
bool dt_result_disturbed(const struct dt_result *result);

/* Total of the slowest rank's times over the last n steps. */
double dt_result_seconds(const struct dt_result *result, int n);

/* Number of samples towards the look: of a start with many steps DT_START_SAMPLES, so the first
 * look needs two starts at least. */
#define DT_START_SAMPLES 4
int dt_result_counted(const struct dt_result *result);

/* Enough steps follow `least` to look for a steady part. */
bool dt_result_detects(const struct dt_result *result);

/* Statistics at `level`. detect: find the steady part, at or after step `least`; otherwise it
 * starts at `least`. May be called again after more samples. */
dt_status dt_result_finish(struct dt_result *result, double level, bool detect,
                           int least) DT_MUST_CHECK;

/* The outcome of a plan's only trial, as a command's status. */
dt_status dt_result_status(const struct dt_result *result) DT_MUST_CHECK;

/* Computes ranks, samples and skew of the result's n steady steps at ns; allocates room. */
dt_status dt_result_sum(struct dt_result *result, const long long *ns) DT_MUST_CHECK;

double dt_result_slowdown(const struct dt_result *result); /* 1 where it is not known */

/* Replicas that the columns of its samples are of: equal parts of them. */
int dt_result_parts(const struct dt_result *result);
/* Images of a step of all replicas. */
int dt_result_images(const struct dt_result *result);
/* Images a second of all replicas, by their denoising steps: text encoder and VAE are left out. */
double dt_result_images_per_second(const struct dt_result *result, const struct dt_target *target);
/* Median step of the slowest replica; of one the median of the samples. */
double dt_result_slowest(const struct dt_result *result);
/* "2 replicas: slowest 12.1 ms, mean 11.8 ms a step"; nothing for one. */
void dt_result_replicas_text(const struct dt_result *result, struct dt_text *out);

/* The objective's value, smaller is better, and its interval, as they are without the slowdown;
 * NAN when there is none. */
struct dt_trial dt_result_trial(const struct dt_result *result, const struct dt_target *target);

/* ---- throttled steps */

/* Called after a trial: sets the reference of ranks without one. */
dt_status dt_clocks_learn(struct dt_clocks *clocks, const struct dt_result *trial) DT_MUST_CHECK;

/* Sets marks, count and all of result->throttling: for the steps from `least` on, by its clocks,
 * or, for ranks without a reference, by the median of these steps. */
dt_status dt_throttle_mark(struct dt_result *result, int least) DT_MUST_CHECK;

struct dt_counted {
    int n;
    long long *ns; /* [n * ranks], owned */
    int *index;    /* [n] step of each, owned */
};

/* Lists the steps from `from` on that count: all but the throttled ones, or all
 * when all are throttled. */
dt_status dt_throttle_count(const struct dt_result *result, int from,
                            struct dt_counted *counted) DT_MUST_CHECK;
void dt_counted_fini(struct dt_counted *counted);

/* ---- what the devices reported */

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

/* Reasons for lowered clocks in the requests with throttled samples, or, without clocks of steps,
 * heat and faults of the power supply in all of them; may be empty. */
struct dt_reasons dt_device_report_reasons(const struct dt_result *result);

/* A line about the devices, and warnings. */
void dt_device_report_text(const struct dt_result *result, struct dt_text *out);
void dt_device_report_warnings(const struct dt_result *result, struct dt_text *out);

#endif
