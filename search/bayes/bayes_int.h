/* SPDX-License-Identifier: MIT */
/* bayes_int - the state of the strategy, and what its files do with it */
#ifndef DT_SEARCH_BAYES_BAYES_INT_H
#define DT_SEARCH_BAYES_BAYES_INT_H

#include "search/bayes/candidates.h"
#include "search/bayes/process.h"
#include "search/bayes/vote.h"
#include "search/search.h"

/* Rows of the knobs, in order. */
enum knob { DESIGN, DRAWS, GROWTH, STARTS, LENGTH, LENGTH_SPREAD, NOISE, VOTE, CANDIDATES, KNOBS };

struct bayes {
    struct dt_search_opts opts;
    struct dt_rng rng;
    struct dt_candidates candidates;
    struct dt_kernel spread; /* distances of the design */
    struct dt_process cold;  /* log value */
    struct dt_vote vote;     /* on whether it works */
    int told;                /* candidates that are no longer outstanding */
    bool *answered;          /* [room] */
    int32_t *asked;          /* [asked_room] outstanding, in the order they were asked for */
    int asked_count, asked_room;
    int believed; /* of the outstanding, those the process has a fantasy of */
    bool waiting; /* for answers before a fit, and none came yet */
    int64_t lost; /* answers that will not come */
    int refits;
    double refit_seconds;
    dt_status status; /* what tell could not say */
};

/* Index of the best candidate to try; -1 when all were seen. */
int dt_bayes_choose(struct bayes *bayes);

#endif
