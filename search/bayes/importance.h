/* SPDX-License-Identifier: MIT */
/* importance - how much of the differences between plans each parameter explains, by
 * the model of the search
 *
 * The trials of a search are crowded around good plans, so their own differences say little
 * about the space. Here the Gaussian process of `bayes` is fitted to the trials and predicts
 * log(value) of the feasible plans; the share of a parameter is the variance of its marginal
 * means over the variance of all predictions: the first-order terms of functional ANOVA (Sobol
 * 1993; Hutter, Hoos, Leyton-Brown 2014). Where rules tie parameters together, their shares
 * overlap and may add up to more than 1.
 */
#ifndef DT_SEARCH_BAYES_IMPORTANCE_H
#define DT_SEARCH_BAYES_IMPORTANCE_H

#include "search/trial.h"

#define DT_IMPORTANCE_LEAST 8 /* fewer trials teach the model too little */

/* share[a], 0..1, of each axis of the sealed space; false: fewer trials than that have a
 * value, all have the same, or memory ran out. Uses at most 300 of the n trials, evenly
 * spread, and at most 4000 plans, drawn where the space has more. The seed decides the draws
 * and the starts of the fit. */
bool dt_importance(const struct dt_space *space, const struct dt_trial trials[], int n,
                   uint64_t seed, double share[]);

#endif
