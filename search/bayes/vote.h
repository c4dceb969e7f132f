/* SPDX-License-Identifier: MIT */
/* vote - probability that a candidate fails, learnt from failed trials
 *
 * Every answer votes on a candidate's success with the weight M(r) of the kernel; `weight` votes at the average rate
 * are the prior (the distance-weighted vote of Shepard 1968, smoothed).
 */
#ifndef DT_SEARCH_BAYES_VOTE_H
#define DT_SEARCH_BAYES_VOTE_H

#include "base/status.h"
#include "search/bayes/points/kernel.h"

struct dt_vote {
    const struct dt_cloud *cloud;
    double weight;
    struct dt_kernel kernel;
    int n, failures;
    int32_t *at;       /* [n] */
    bool *works;       /* [n] */
    float *good, *all; /* [cloud->room] sums of weights */
    float *row;        /* [cloud->room] */
};

/* cloud outlives the vote. DT_ENOMEM. */
dt_status dt_vote_init(struct dt_vote *vote, const struct dt_cloud *cloud,
                       double weight) DT_MUST_CHECK;
void dt_vote_fini(struct dt_vote *vote);

dt_status dt_vote_add(struct dt_vote *vote, int candidate, bool works) DT_MUST_CHECK;

/* Recounts with the lengths of the kernel, for the candidates first .. last - 1. */
void dt_vote_refit(struct dt_vote *vote, const struct dt_kernel *kernel, int first, int last);

/* Probability that the candidate works; 1 before the first failure. */
double dt_vote_works(const struct dt_vote *vote, int candidate);

#endif
