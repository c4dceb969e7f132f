/* SPDX-License-Identifier: MIT */
/* throttle - detects samples taken while a device ran below its clock in this session
 *
 * A worker may report the clock of each rank during each step (docs/protocol.md). The session's reference is each
 * rank's median in the first trial that had it; a sample whose slowest rank was below 95 % of its own is throttled:
 * kept, labelled, and left out of the statistics by index. A trial replaces throttled samples, in three further requests at most.
 */
#ifndef DT_TUNER_MEASURE_THROTTLE_H
#define DT_TUNER_MEASURE_THROTTLE_H

#include "base/status.h"

#include <stdbool.h>

struct dt_result;

struct dt_clocks {
    int ranks;
    double *rate; /* [ranks] of the session, in the worker's own unit; owned */
};
void dt_clocks_fini(struct dt_clocks *clocks);

/* The throttled steps of a trial, and their replacement. */
struct dt_throttling {
    struct dt_clocks *clocks; /* of the session, borrowed; NULL: no session */
    bool *marks;              /* [steps] throttled, owned; NULL: no clocks */
    int count;                /* throttled measured steps: no samples, unless all are throttled */
    bool all;
    int retries;    /* requests made to replace throttled samples */
    int unreplaced; /* throttled samples of this look that were not replaced */
    bool waits;     /* for replacements of throttled samples */
};

/* Called after a trial: sets the reference of ranks without one. */
dt_status dt_clocks_learn(struct dt_clocks *clocks, const struct dt_result *trial) DT_MUST_CHECK;

/* Sets marks, count and all of result->throttling: for the steps from `least` on, by its clocks, or, for ranks without a
 * reference, by the median of these steps. */
dt_status dt_throttle_mark(struct dt_result *result, int least) DT_MUST_CHECK;

/* The step is throttled and excluded from the samples. */
bool dt_throttle_drops(const struct dt_throttling *throttling, int step);

struct dt_kept {
    int n;
    long long *ns; /* [n * ranks], owned */
    int *index;    /* [n] step of each, owned */
};

/* Lists the steps from `from` on that count: all but the throttled ones, or all when all are throttled. */
dt_status dt_throttle_keep(const struct dt_result *result, int from,
                           struct dt_kept *kept) DT_MUST_CHECK;
void dt_kept_fini(struct dt_kept *kept);

#endif
