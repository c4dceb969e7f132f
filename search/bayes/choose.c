/* SPDX-License-Identifier: MIT */
/* The greatest expected improvement of the logarithm of the value over the incumbent, times the chance of working, over
 * all candidates. The incumbent is the least posterior mean among what was answered, not the least sample: with noise
 * that one is lucky. */
#include "search/bayes/acquisition.h"
#include "search/bayes/bayes_int.h"

#include <math.h>

static double incumbent(const struct dt_process *process)
{
    double least = INFINITY;
    for (int i = 0; i < process->n; i++)
        least = fmin(least, dt_process_mean(process, process->at[i]));
    return least;
}

int dt_bayes_choose(struct bayes *bayes)
{
    const struct dt_process *process = &bayes->cold;
    const double best = incumbent(process);
    double most = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < bayes->candidates.cloud.count; k++) {
        if (bayes->candidates.seen[k])
            continue;
        double deviation = dt_process_deviation(process, k);
        double z = (best - dt_process_mean(process, k)) / deviation;
        double bound = z < 0 ? -z * z / 2 + log(process->scale) : INFINITY;
        if (chosen >= 0 && bound < most)
            continue;
        double score = log(deviation) + log(dt_vote_works(&bayes->vote, k));
        if (chosen >= 0 && score + dt_log_improvement_bound(z) < most)
            continue;
        score += dt_log_improvement(z);
        if (chosen < 0 || score > most) {
            most = score;
            chosen = k;
        }
    }
    return chosen;
}
