/* SPDX-License-Identifier: MIT */
/* bayes_int - the state of the strategy, and the functions its files share */
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

/* Models of the log value: COLD from the answers alone, WARM around the prior. */
enum { COLD, WARM, MODELS };

/* Candidates that were asked for and not yet told. */
struct outstanding {
    int32_t *at; /* [count] in the order of asking; owned */
    int count;
    int believed; /* how many of them have a fantasy in the models */
    bool waiting; /* waiting for answers before a fit; none came yet */
    int64_t lost; /* answers that will not come */
};

/* State of the stopping rule. */
struct stop {
    double best;  /* least value told */
    double gain;  /* probability of a gain when last computed; 1 before */
    int unlikely; /* consecutive verdicts that a gain is unlikely */
};

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
    struct dt_vote vote; /* for the probability of success */
    struct dt_trial_cost cost;
    int explored;   /* design points so far, from the prior and others */
    int told;       /* number of candidates no longer outstanding */
    bool *answered; /* [room] */
    struct outstanding outstanding;
    int fantasies[MODELS];
    struct stop stop;
    struct dt_refits refits;
    dt_status status; /* error of a tell, returned by the next ask */
};

extern const struct dt_strategy dt_strategy_bayes;

/* Of the models of log values. */
struct dt_process_priors dt_bayes_priors(const double knobs[]);

/* Creates the empty models. DT_ENOMEM. */
dt_status dt_bayes_open(struct bayes *bayes) DT_MUST_CHECK;
void dt_bayes_close(struct bayes *bayes);

/* Number of real answers with a value in the cold model. */
int dt_bayes_answers(const struct bayes *bayes);

/* Removes the fantasies; needed before an answer is added or a fit begins. */
void dt_bayes_wake(struct bayes *bayes);
dt_status dt_bayes_believe(struct bayes *bayes) DT_MUST_CHECK;

/* Adds the answer of a candidate; there must be no fantasies. */
dt_status dt_bayes_learn(struct bayes *bayes, int candidate,
                         const struct dt_trial *trial) DT_MUST_CHECK;

/* Fits hyper-parameters and weights to the answers again. */
dt_status dt_bayes_refit(struct bayes *bayes) DT_MUST_CHECK;

/* Updates the models after candidates first .. last - 1 changed. */
dt_status dt_bayes_columns(struct bayes *bayes, int first, int last) DT_MUST_CHECK;

/* Number of models whose means may be used: 2 once the warm model was fitted, since it has no unit or scale before. */
int dt_bayes_models(const struct bayes *bayes);

/* Both models have a mean of the candidate. */
bool dt_bayes_warm(const struct bayes *bayes, int candidate);

/* Expected log value of a candidate. */
double dt_bayes_mean(const struct bayes *bayes, int candidate);

/* Least expected log value of a candidate that was answered. */
double dt_bayes_incumbent(const struct bayes *bayes);

/* Probability that a trial of the candidate succeeds. */
double dt_bayes_works(const struct bayes *bayes, int candidate);

/* Probability that some candidate is better than the incumbent by more than 0.5 %; accurate only below `enough`. */
double dt_bayes_gain(struct bayes *bayes, double enough);

/* The best candidate to try; -1 when all were seen. */
int dt_bayes_choose(struct bayes *bayes);

#endif
