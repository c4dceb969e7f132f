/* SPDX-License-Identifier: MIT */
/* models - what is learnt of a candidate beside its value: does it fail, does it fit the
 * memory, what did a prior say, what does a trial cost; and the expected improvement that
 * the search maximises
 */
#ifndef DT_SEARCH_BAYES_MODELS_H
#define DT_SEARCH_BAYES_MODELS_H

#include "base/status.h"
#include "search/bayes/candidates.h"
#include "search/bayes/process.h"
#include "search/search.h"

/* log(phi(z) + z Phi(z)): the logarithm of the expected improvement in units of the deviation,
 * where z is (best - mean) / deviation (Ament et al. 2023, eq. 9, with the Mills ratio in place of
 * erfcx). Accurate to 1e-9 for every z; far below zero it is -z^2 / 2 - log(sqrt(2 pi) z^2). */
double dt_log_improvement(double z);

/* A cheap upper bound of dt_log_improvement. */
double dt_log_improvement_bound(double z);

/* log(exp(a) + exp(b)). */
double dt_log_sum(double a, double b);

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

struct dt_memory {
    struct dt_process process;
    double capacity; /* log bytes; NAN: not known */
    double largest;  /* log bytes of a success */
    int measured;    /* successes with a peak */
    int failures;    /* plans that ran out of memory */
};

/* capacity_bytes 0: not known. cloud outlives it. DT_ENOMEM. */
dt_status dt_memory_init(struct dt_memory *memory, const struct dt_cloud *cloud,
                         const struct dt_process_priors *priors,
                         int64_t capacity_bytes) DT_MUST_CHECK;
void dt_memory_fini(struct dt_memory *memory);

/* Adds the peak bytes of a plan that ran. */
dt_status dt_memory_ran(struct dt_memory *memory, int candidate, int64_t bytes) DT_MUST_CHECK;

/* Adds a plan that did not fit. With fewer than two known peaks nothing is
 * learnt (*learnt is false). */
dt_status dt_memory_overran(struct dt_memory *memory, int candidate, bool *learnt) DT_MUST_CHECK;

/* Probability that the candidate fits; 1 while sizes or the limit are unknown. */
double dt_memory_fits(const struct dt_memory *memory, int candidate);

enum dt_hint_kind { DT_HINT_NONE, DT_HINT_VALUE, DT_HINT_FAILED, DT_HINT_KINDS };

struct dt_hint {
    struct dt_cloud cloud; /* coordinates of the candidates, with centred log values as belief */
    uint8_t *kind;         /* [cloud.room] enum dt_hint_kind */
    int values;            /* candidates of DT_HINT_VALUE */
    double centre;         /* subtracted from the log values */
    /* counts of trials here, by the prior's kind */
    int tried[DT_HINT_KINDS], worked[DT_HINT_KINDS];
};

/* DT_ENOMEM. */
dt_status dt_hint_init(struct dt_hint *hint, const struct dt_candidates *candidates,
                       const struct dt_prior *prior) DT_MUST_CHECK;
void dt_hint_fini(struct dt_hint *hint);

/* Asks the prior for the candidates first .. last - 1 again, after they changed. */
void dt_hint_ask(struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_prior *prior, int first, int last);

/* The candidate with the best prior value while none was seen; then, of a random half of the
 * `top` best unseen ones, the one farthest from those seen (k-centre; Gonzalez 1985). -1:
 * the prior knows none. */
int dt_hint_next(const struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_kernel *kernel, int top, struct dt_rng *rng);

/* Most of the tried plans that have a value in the prior failed here. */
bool dt_hint_fails(const struct dt_hint *hint);

/* dt_hint_answered records an answer. dt_hint_works is the probability of success by the prior's
 * kind: it starts at 1 where the prior has a value and at 0.3 where it has a failure (weight of two
 * trials), and is updated by trials here. 1 for others. */
void dt_hint_answered(struct dt_hint *hint, int candidate, bool works);
double dt_hint_works(const struct dt_hint *hint, int candidate);

/* Weight of the second of two models, from each model's leave-one-out log densities of n answers:
 * the weight that maximises the density of the mixture (stacking; Yao, Vehtari, Simpson, Gelman
 * 2018), with `trust` pseudo-answers for either model. */
double dt_hint_stack(const double first[], const double second[], int n, double trust);

struct dt_trial_cost {
    const struct dt_space *space;
    double budget, spent; /* seconds; budget 0: cost does not count */
    int n;
    double least; /* seconds of the cheapest */
    /* sums over (1, value, switched), and their products with the cost */
    double squares[3][3], moments[3];
    double line[3];
    bool told;              /* `before` is set */
    struct dt_point before; /* point of the previous trial */
};

void dt_cost_init(struct dt_trial_cost *cost, const struct dt_space *space, double budget);

/* Adds a trial; one without a value (NAN) counts only as time spent. */
void dt_cost_add(struct dt_trial_cost *cost, const struct dt_trial *trial);

/* Expected seconds of a trial of the point with this expected value; at least half of
 * the cheapest so far. */
double dt_cost_seconds(const struct dt_trial_cost *cost, const struct dt_point *point,
                       double value);

/* The exponent of the cost; 0: it does not count. */
double dt_cost_exponent(const struct dt_trial_cost *cost);

#endif
