/* SPDX-License-Identifier: MIT */
/* throttle - detects samples taken while a device ran below its clock in this session
 *
 * A worker may report the clock of each rank during each step (docs/protocol.md). The session's reference is each
 * rank's median in the first trial that had it; a sample whose slowest rank was below 95 % of its own is throttled:
 * kept, labelled, and left out of the statistics by index. A trial asks for as many again, three times at most.
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

/* Called after a trial: sets the reference of ranks without one. */
dt_status dt_clocks_learn(struct dt_clocks *clocks, const struct dt_result *trial) DT_MUST_CHECK;

/* Sets result->throttled and throttled_steps: for the steps from `least` on, by result->clocks, or, for ranks without a
 * reference, by the median of these steps. */
dt_status dt_throttle_mark(struct dt_result *result, int least) DT_MUST_CHECK;

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
