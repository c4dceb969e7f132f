/* SPDX-License-Identifier: MIT */
/* Probability that some candidate is better than the incumbent by more than DT_GAIN. The likeliest ones are drawn jointly,
 * DRAWS times, from their joint posterior K - V'V, each failing with its own probability; the others count as if they
 * excluded one another, so that the sum is too large rather than too small (the stopping rule of Makarova et al. 2022
 * by draws instead of confidence bounds). */
#include "search/bayes/bayes_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

enum { LIKELY = 64, DRAWS_EACH = 512 };

struct likely {
    int n;
    int32_t at[LIKELY];
    double chance[LIKELY]; /* probabilities of a gain, descending */
    double rest;           /* sum over all others */
};

static double chance_of(const struct bayes *bayes, int k, double target)
{
    bool both = dt_bayes_warm(bayes, k);
    double chance = 0;
    for (int m = 0; m <= both; m++) {
        double weight = !both ? 1 : m == WARM ? bayes->weight : 1 - bayes->weight;
        const struct dt_process *process = &bayes->model[m];
        chance += weight * gsl_cdf_ugaussian_P((target - dt_process_mean(process, k)) /
                                               dt_process_deviation(process, k));
    }
    return chance * dt_bayes_works(bayes, k);
}

static void insert(struct likely *likely, int32_t k, double chance)
{
    int at = likely->n;
    if (at == LIKELY) {
        double least = likely->chance[LIKELY - 1];
        if (chance <= least) {
            likely->rest += chance;
            return;
        }
        likely->rest += least;
        at--;
    } else
        likely->n++;
    for (; at > 0 && likely->chance[at - 1] < chance; at--) {
        likely->chance[at] = likely->chance[at - 1];
        likely->at[at] = likely->at[at - 1];
    }
    likely->chance[at] = chance;
    likely->at[at] = k;
}

/* Share of one model's draws in which a likely candidate gains; without draws, the sum of the probabilities. */
static double drawn(struct bayes *bayes, int model, const struct likely *likely, double target)
{
    double bound = 0;
    for (int i = 0; i < likely->n; i++)
        bound += likely->chance[i];
    const struct dt_process *process = &bayes->model[model];
    double covariance[LIKELY * LIKELY], normal[LIKELY];
    const size_t n = (size_t)likely->n;
    /* V is in single precision: a small remaining variance is rounding error. */
    const double rounding = 1e-5 * process->kernel.signal * process->scale * process->scale;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            covariance[i * n + j] = dt_process_covariance(process, likely->at[i], likely->at[j]) +
                                    (i == j ? rounding : 0);
    gsl_matrix_view factor = gsl_matrix_view_array(covariance, n, n);
    if (gsl_linalg_cholesky_decomp1(&factor.matrix) != 0)
        return bound;
    int gains = 0;
    for (int draw = 0; draw < DRAWS_EACH; draw++) {
        bool gain = false;
        for (size_t i = 0; i < n; i++)
            normal[i] = dt_rng_normal(&bayes->rng);
        for (size_t i = 0; i < n && !gain; i++) {
            double value = dt_process_mean(process, likely->at[i]);
            for (size_t j = 0; j <= i; j++)
                value += covariance[i * n + j] * normal[j];
            gain = value < target &&
                   dt_rng_uniform(&bayes->rng) < dt_bayes_works(bayes, likely->at[i]);
        }
        gains += gain;
    }
    return (double)gains / DRAWS_EACH;
}

double dt_bayes_gain(struct bayes *bayes, double enough)
{
    const double target = dt_bayes_incumbent(bayes) + log1p(-DT_GAIN);
    struct likely likely = {0};
    for (int k = 0; k < bayes->candidates.cloud.count; k++)
        if (!bayes->candidates.seen[k])
            insert(&likely, k, chance_of(bayes, k, target));
    if (likely.n == 0)
        return 0;
    if (likely.chance[0] >= enough) /* the first alone suffices */
        return likely.chance[0];
    double chance = 0;
    const int models = dt_bayes_models(bayes);
    for (int m = 0; m < models; m++) {
        double weight = models == 1 ? 1 : m == WARM ? bayes->weight : 1 - bayes->weight;
        chance += weight * drawn(bayes, m, &likely, target);
    }
    return fmin(chance + likely.rest, 1);
}
