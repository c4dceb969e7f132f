/* SPDX-License-Identifier: MIT */
/* The greatest expected improvement of the logarithm of the value over the incumbent, times the probability of success,
 * over all candidates. The incumbent is the least posterior mean of the answered candidates, not the least sample,
 * which is lucky under noise. Two models' improvements are mixed with their weights. */
#include "search/bayes/acquisition.h"
#include "search/bayes/bayes_int.h"

#include <math.h>

double dt_bayes_incumbent(const struct bayes *bayes)
{
    const struct dt_process *process = &bayes->model[COLD];
    double least = INFINITY;
    for (int i = 0; i < process->n; i++)
        least = fmin(least, dt_bayes_mean(bayes, process->at[i]));
    return least;
}

double dt_bayes_works(const struct bayes *bayes, int k)
{
    double chance = dt_vote_works(&bayes->vote, k) * dt_memory_fits(&bayes->memory, k);
    return bayes->models > 1 ? chance * dt_hint_works(&bayes->hint, k) : chance;
}

/* Log of the expected improvement, or of its cheaper bound when `exact` is false. */
static double improvement(const struct bayes *bayes, int k, double best, bool exact)
{
    double sum = -INFINITY;
    bool both = dt_bayes_warm(bayes, k);
    for (int m = 0; m <= both; m++) {
        const struct dt_process *process = &bayes->model[m];
        double deviation = dt_process_deviation(process, k);
        double z = (best - dt_process_mean(process, k)) / deviation;
        double one = exact ? dt_log_improvement(z) : dt_log_improvement_bound(z);
        one += log(deviation);
        if (both)
            one += log(m == WARM ? bayes->weight : 1 - bayes->weight);
        sum = m == 0 ? one : exact ? dt_log_sum(sum, one) : fmax(sum, one) + M_LN2;
    }
    return sum;
}

/* -exponent * log(seconds of the candidate), in units of half the cheapest trial: never positive. */
static double price(const struct bayes *bayes, int k, double exponent)
{
    struct dt_point point;
    if (!(exponent > 0))
        return 0;
    dt_candidates_at(&bayes->candidates, k, &point);
    double seconds = dt_cost_seconds(&bayes->cost, &point, exp(dt_bayes_mean(bayes, k)));
    return -exponent * log(seconds / (bayes->cost.least / 2));
}

/* The best candidate whose probability of success is above the threshold; -1: none. */
static int choose_above(const struct bayes *bayes, double best, double threshold)
{
    const double exponent = bayes->knobs[COOLING] * dt_cost_exponent(&bayes->cost);
    double most = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < bayes->candidates.cloud.count; k++) {
        if (bayes->candidates.seen[k] || (chosen >= 0 && improvement(bayes, k, best, false) < most))
            continue;
        double works = dt_bayes_works(bayes, k);
        if (!(works >= threshold))
            continue;
        double score = improvement(bayes, k, best, true) + log(works) + price(bayes, k, exponent);
        if (chosen < 0 || score > most) {
            most = score;
            chosen = k;
        }
    }
    return chosen;
}

/* The threshold is drawn anew each time, so that the boundary of the working region is probed, too (BaCO; Hellsten et
 * al. 2023). */
int dt_bayes_choose(struct bayes *bayes)
{
    const double best = dt_bayes_incumbent(bayes);
    double threshold = bayes->knobs[THRESHOLD] * (double)dt_rng_below(&bayes->rng, 11) / 10;
    int chosen = choose_above(bayes, best, threshold);
    return chosen >= 0 || threshold <= 0 ? chosen : choose_above(bayes, best, 0);
}
