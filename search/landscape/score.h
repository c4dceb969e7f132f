/* SPDX-License-Identifier: MIT */
/* score - rates a search on a landscape whose optimum is known
 *
 * The yardstick is random search. R(t) is the exact expected best of t draws without replacement; F(t) is the best that
 * a run found in t evaluations. Failures are evaluations: in both they rank last, at the slowest valid value, as does a
 * run before its first success. P is the mean over t = 1..N of (R(t) - F(t)) / (R(t) - optimum): 0 is random search, 1
 * the optimum at once, below 0 worse than random. t at which random search is sure of the optimum are left out.
 * Intervals are over the repeats, at 95 %.
 */
#ifndef DT_SEARCH_LANDSCAPE_SCORE_H
#define DT_SEARCH_LANDSCAPE_SCORE_H

#include "search/landscape/landscape.h"

/* expected[t - 1] = R(t), t = 1..evals, of n values among which NAN are failures. */
dt_status dt_score_random(const double values[], int64_t n, int evals,
                          double expected[]) DT_MUST_CHECK;

/* P of a run whose best after t evaluations was best[t - 1]. */
double dt_score_p(const double best[], const double expected[], int evals, double optimum);

/* best[t - 1] of the entries evaluated (-1: the run had ended), t = 1..evals. */
void dt_score_best(const struct dt_landscape *landscape, const int32_t entries[], int evals,
                   double best[]);

#endif
