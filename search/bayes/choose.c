/* SPDX-License-Identifier: MIT */
/* The greatest expected improvement of the logarithm of the value over the incumbent, times the chance of working, over
 * all candidates. The incumbent is the least posterior mean among what was answered, not the least sample: with noise
 * that one is lucky. Two models' improvements are mixed with their weights. */
#include "search/bayes/acquisition.h"
#include "search/bayes/bayes_int.h"

#include <math.h>

static double incumbent(const struct bayes *bayes)
{
    const struct dt_process *process = &bayes->model[COLD];
    double least = INFINITY;
    for (int i = 0; i < process->n; i++)
        least = fmin(least, dt_bayes_mean(bayes, process->at[i]));
    return least;
}

static double works(const struct bayes *bayes, int k)
{
    double chance = dt_vote_works(&bayes->vote, k);
    return bayes->models > 1 ? chance * dt_hint_works(&bayes->hint, k) : chance;
}

/* Log of the expected improvement; of a bound of it, cheaper, where `exact` is false. */
static double improvement(const struct bayes *bayes, int k, double best, bool exact)
{
    double sum = -INFINITY;
    bool both = bayes->models > 1 && bayes->hint.kind[k] == DT_HINT_VALUE;
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

int dt_bayes_choose(struct bayes *bayes)
{
    const double best = incumbent(bayes);
    double most = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < bayes->candidates.cloud.count; k++) {
        if (bayes->candidates.seen[k] || (chosen >= 0 && improvement(bayes, k, best, false) < most))
            continue;
        double score = improvement(bayes, k, best, true) + log(works(bayes, k));
        if (chosen < 0 || score > most) {
            most = score;
            chosen = k;
        }
    }
    return chosen;
}
