/* SPDX-License-Identifier: MIT */
/* hint - what a prior says of the candidates, and how far it is to be trusted */
#ifndef DT_SEARCH_BAYES_HINT_H
#define DT_SEARCH_BAYES_HINT_H

#include "search/bayes/points/candidates.h"
#include "search/search.h"

enum dt_hint_kind { DT_HINT_NONE, DT_HINT_VALUE, DT_HINT_FAILED, DT_HINT_KINDS };

struct dt_hint {
    struct dt_cloud cloud; /* the candidates' coordinates, with log values, centred, as belief */
    uint8_t *kind;         /* [cloud.room] enum dt_hint_kind */
    int values;            /* candidates of DT_HINT_VALUE */
    double centre;         /* taken from the log values */
    int tried[DT_HINT_KINDS], worked[DT_HINT_KINDS]; /* here, by what the prior said of them */
};

/* DT_ENOMEM. */
dt_status dt_hint_init(struct dt_hint *hint, const struct dt_candidates *candidates,
                       const struct dt_prior *prior) DT_MUST_CHECK;
void dt_hint_fini(struct dt_hint *hint);

/* Asks the prior of the candidates first .. last - 1, after they were changed. */
void dt_hint_ask(struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_prior *prior, int first, int last);

/* The best believed candidate while none was seen; then, of a random half of the `top` best believed that were not seen,
 * the one farthest from those seen (k-centre; Gonzalez 1985). -1: nothing is believed of any. */
int dt_hint_next(const struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_kernel *kernel, int top, struct dt_rng *rng);

/* Most of what was tried of the plans that have a value in the prior failed here. */
bool dt_hint_fails(const struct dt_hint *hint);

/* Takes note of an answer of a candidate, and the chance that one works by what the prior said of it: 1 where it has a
 * value and 0.3 where it failed, on the word of two trials, until trials here say otherwise. 1 for others. */
void dt_hint_answered(struct dt_hint *hint, int candidate, bool works);
double dt_hint_works(const struct dt_hint *hint, int candidate);

/* Weight of the second of two models, from the log densities that each gives n answers without having seen them: that of
 * the greatest density of all under the mixture (stacking; Yao, Vehtari, Simpson, Gelman 2018), where `trust` answers
 * stand for either model beforehand. */
double dt_hint_stack(const double first[], const double second[], int n, double trust);

#endif
