/* SPDX-License-Identifier: MIT */
/* vote - which candidates may fail, learnt from those that did
 *
 * Every answer votes with the weight of its nearness, M(r) of the kernel, on whether a candidate works; `weight` votes
 * at the average rate stand for what nobody knows (the distance-weighted vote of Shepard 1968, smoothed).
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

/* Counts again with the lengths of the kernel, for the candidates first .. last - 1. */
void dt_vote_refit(struct dt_vote *vote, const struct dt_kernel *kernel, int first, int last);

/* Chance that the candidate works; 1 while nothing failed. */
double dt_vote_works(const struct dt_vote *vote, int candidate);

#endif
