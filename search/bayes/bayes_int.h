/* SPDX-License-Identifier: MIT */
/* bayes_int - the state of the strategy, and what its files do with it */
#ifndef DT_SEARCH_BAYES_BAYES_INT_H
#define DT_SEARCH_BAYES_BAYES_INT_H

#include "search/bayes/cost.h"
#include "search/bayes/hint.h"
#include "search/bayes/memory.h"
#include "search/bayes/points/candidates.h"
#include "search/bayes/process.h"
#include "search/bayes/vote.h"
#include "search/search.h"

/* Rows of the knobs, in order. */
enum knob {
    DESIGN,
    DRAWS,
    GROWTH,
    STARTS,
    LENGTH,
    LENGTH_SPREAD,
    NOISE,
    VOTE,
    CANDIDATES,
    TOP,
    SLOPE,
    TRUST,
    THRESHOLD,
    COOLING,
    STOP,
    KNOBS
};

/* Models of the log value: from the answers alone, and of what is left after the prior. */
enum { COLD, WARM, MODELS };

struct bayes {
    struct dt_search_opts opts;
    double knobs[KNOBS];
    struct dt_rng rng;
    struct dt_candidates candidates;
    struct dt_kernel spread; /* distances of the design */
    int models;              /* 1 without a prior */
    struct dt_process model[MODELS];
    double weight; /* of WARM */
    struct dt_hint hint;
    struct dt_memory memory;
    struct dt_vote vote; /* on whether it works */
    struct dt_trial_cost cost;
    int explored;   /* turns of the prior, and of the others, in the design */
    int told;       /* candidates that are no longer outstanding */
    bool *answered; /* [room] */
    int32_t *asked; /* [asked_count] outstanding, in the order they were asked for */
    int asked_count;
    int believed; /* of the outstanding, those the models have a fantasy of */
    int fantasies[MODELS];
    bool waiting; /* for answers before a fit, and none came yet */
    int64_t lost; /* answers that will not come */
    double gain;  /* chance of one, when it was last asked; 1 before */
    double best;  /* least value told */
    int unlikely; /* verdicts in a row that a gain is */
    struct dt_refits refits;
    dt_status status; /* what tell could not say */
};

/* The models, empty. DT_ENOMEM. */
dt_status dt_bayes_open(struct bayes *bayes) DT_MUST_CHECK;
void dt_bayes_close(struct bayes *bayes);

/* Real answers of which the cold model has a value. */
int dt_bayes_answers(const struct bayes *bayes);

/* Fantasies go before an answer comes in or a fit begins. */
void dt_bayes_wake(struct bayes *bayes);
dt_status dt_bayes_believe(struct bayes *bayes) DT_MUST_CHECK;

/* What came of a candidate; no fantasy is believed. */
dt_status dt_bayes_learn(struct bayes *bayes, int candidate,
                         const struct dt_trial *trial) DT_MUST_CHECK;

/* Hyper-parameters and weights again, from the answers. */
dt_status dt_bayes_refit(struct bayes *bayes) DT_MUST_CHECK;

/* The candidates first .. last - 1 have changed. */
dt_status dt_bayes_columns(struct bayes *bayes, int first, int last) DT_MUST_CHECK;

/* Models whose means may be used: 2 with the warm one, which has neither unit nor scale before it was fitted to answers. */
int dt_bayes_models(const struct bayes *bayes);

/* Both models have a mean of the candidate. */
bool dt_bayes_warm(const struct bayes *bayes, int candidate);

/* log value that is expected of a candidate. */
double dt_bayes_mean(const struct bayes *bayes, int candidate);

/* Least expected log value of a candidate that was answered. */
double dt_bayes_incumbent(const struct bayes *bayes);

/* Chance that a trial of the candidate ends well, by all that failed. */
double dt_bayes_works(const struct bayes *bayes, int candidate);

/* Chance that some candidate is better than the incumbent by more than 0.5 %; exact enough only below `enough`. */
double dt_bayes_gain(struct bayes *bayes, double enough);

/* The best candidate to try; -1 when all were seen. */
int dt_bayes_choose(struct bayes *bayes);

#endif
