/* SPDX-License-Identifier: MIT */
/* cost - how long a trial of a candidate will take
 *
 *     seconds = setup + rate * value + switching [the group of workers must start anew]
 *
 * by least squares over the trials so far, with a little weight on the mean cost alone, so that one trial is enough. A
 * group starts anew when an axis of ranks or of the environment differs from the trial before (axes of roles ranks and
 * environment). What is left of the budget says how much it counts: the exponent falls from 1 to 0 (EI-cool; Lee,
 * Perrone, Archambeau, Seeger 2020).
 */
#ifndef DT_SEARCH_BAYES_COST_H
#define DT_SEARCH_BAYES_COST_H

#include "search/search.h"

struct dt_trial_cost {
    const struct dt_space *space;
    double budget, spent; /* seconds; budget 0: cost does not count */
    int n;
    double least;                     /* seconds of the cheapest */
    double squares[3][3], moments[3]; /* of (1, value, switched) and with the cost */
    double line[3];
    bool told;              /* there is a trial before */
    struct dt_point before; /* it */
};

void dt_cost_init(struct dt_trial_cost *cost, const struct dt_space *space, double budget);

/* A trial, of which value may be NAN: then it counts as time spent only. */
void dt_cost_add(struct dt_trial_cost *cost, const struct dt_trial *trial);

/* Expected seconds of a trial of the point whose value is expected so; at least half of the cheapest so far. */
double dt_cost_seconds(const struct dt_trial_cost *cost, const struct dt_point *point,
                       double value);

/* The exponent of the cost; 0: it does not count. */
double dt_cost_exponent(const struct dt_trial_cost *cost);

#endif
