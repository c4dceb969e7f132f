/* SPDX-License-Identifier: MIT */
/* cost - expected duration of a candidate's trial
 *
 *     seconds = setup + rate * value + switching [a new worker group must start]
 *
 * by least squares over the trials so far, with a little weight on the mean cost alone, so that one trial is enough. A
 * new group starts when an axis of role ranks or environment differs from the previous trial. The weight of cost
 * depends on the remaining budget: the exponent falls from 1 to 0 (EI-cool; Lee, Perrone, Archambeau, Seeger 2020).
 */
#ifndef DT_SEARCH_BAYES_COST_H
#define DT_SEARCH_BAYES_COST_H

#include "search/search.h"

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

/* Expected seconds of a trial of the point with this expected value; at least half of the cheapest so far. */
double dt_cost_seconds(const struct dt_trial_cost *cost, const struct dt_point *point,
                       double value);

/* The exponent of the cost; 0: it does not count. */
double dt_cost_exponent(const struct dt_trial_cost *cost);

#endif
