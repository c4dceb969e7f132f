/* SPDX-License-Identifier: MIT */
/* hint - a prior's values for the candidates, and its weight */
#ifndef DT_SEARCH_BAYES_HINT_H
#define DT_SEARCH_BAYES_HINT_H

#include "search/bayes/points/candidates.h"
#include "search/search.h"

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

/* The candidate with the best prior value while none was seen; then, of a random half of the `top` best unseen ones,
 * the one farthest from those seen (k-centre; Gonzalez 1985). -1: the prior knows none. */
int dt_hint_next(const struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_kernel *kernel, int top, struct dt_rng *rng);

/* Most of the tried plans that have a value in the prior failed here. */
bool dt_hint_fails(const struct dt_hint *hint);

/* dt_hint_answered records an answer. dt_hint_works is the probability of success by the prior's kind: it starts at 1
 * where the prior has a value and at 0.3 where it has a failure (weight of two trials), and is updated by trials here.
 * 1 for others. */
void dt_hint_answered(struct dt_hint *hint, int candidate, bool works);
double dt_hint_works(const struct dt_hint *hint, int candidate);

/* Weight of the second of two models, from each model's leave-one-out log densities of n answers: the weight that
 * maximises the density of the mixture (stacking; Yao, Vehtari, Simpson, Gelman 2018), with `trust` pseudo-answers for
 * either model. */
double dt_hint_stack(const double first[], const double second[], int n, double trust);

#endif
