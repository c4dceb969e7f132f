/* SPDX-License-Identifier: MIT */
#include "search/bayes/importance.h"

#include "search/bayes/bayes_int.h"

#include <math.h>
#include <stdlib.h>

enum { TRIALS = 300, PLANS = 4000 };

static bool has_value(const struct dt_trial *trial)
{
    return isfinite(trial->value) && trial->value > 0;
}

/* Adds at most TRIALS of them, evenly spread. */
static dt_status learn(struct dt_process *process, struct dt_candidates *candidates,
                       const struct dt_trial trials[], int n)
{
    int valued = 0, seen = 0;
    for (int i = 0; i < n; i++)
        valued += has_value(&trials[i]);
    const int every = 1 + (valued - 1) / TRIALS;
    for (int i = 0; i < n; i++) {
        if (!has_value(&trials[i]) || seen++ % every != 0)
            continue;
        const int known = candidates->cloud.count,
                  k = dt_candidates_add(candidates, &trials[i].point);
        if (k >= known)
            DT_TRY(dt_process_columns(process, known, candidates->cloud.count));
        if (k >= 0)
            DT_TRY(dt_process_add(process, k, log(trials[i].value), fmax(trials[i].variance, 0)));
    }
    return DT_OK;
}

/* Variance of the axis' marginal means over that of all predictions. */
static double share_of(const struct dt_candidates *candidates, const double predicted[], int plans,
                       int axis)
{
    const int values = dt_space_axis(candidates->space, axis)->count;
    double *sum = calloc((size_t)values + 1, sizeof *sum), mean = 0, between = 0, total = 0;
    int *count = calloc((size_t)values + 1, sizeof *count);
    for (int k = 0; k < plans; k++)
        mean += predicted[k] / plans;
    for (int k = 0; sum != NULL && count != NULL && k < plans; k++) {
        struct dt_point point;
        dt_candidates_at(candidates, k, &point);
        sum[point.index[axis]] += predicted[k] - mean;
        count[point.index[axis]]++;
        total += (predicted[k] - mean) * (predicted[k] - mean);
    }
    for (int v = 0; sum != NULL && count != NULL && v < values; v++)
        between += count[v] > 0 ? sum[v] * sum[v] / count[v] : 0;
    free(sum);
    free(count);
    return total > 0 ? fmin(between / total, 1) : 0;
}

static bool shares(const struct dt_process *process, const struct dt_candidates *candidates,
                   int plans, double share[])
{
    double *predicted = calloc((size_t)plans + 1, sizeof *predicted), low = INFINITY,
           high = -INFINITY;
    for (int k = 0; predicted != NULL && k < plans; k++) {
        predicted[k] = dt_process_mean(process, k);
        low = fmin(low, predicted[k]);
        high = fmax(high, predicted[k]);
    }
    const bool differ = high > low;
    for (int a = 0; differ && a < dt_space_axes(candidates->space); a++)
        share[a] = share_of(candidates, predicted, plans, a);
    free(predicted);
    return differ;
}

bool dt_importance(const struct dt_space *space, const struct dt_trial trials[], int n,
                   uint64_t seed, double share[])
{
    double knobs[KNOBS];
    for (int i = 0; i < KNOBS; i++)
        knobs[i] = dt_strategy_bayes.knobs[i].fallback;
    const struct dt_process_priors priors = dt_bayes_priors(knobs);
    struct dt_rng rng = dt_rng_at(seed, "importance");
    struct dt_candidates candidates;
    struct dt_process process;
    bool known = false;
    if (dt_candidates_init(&candidates, space, PLANS, &rng) < 0)
        return false;
    const int plans = candidates.cloud.count; /* without plans of trials that a pool gets */
    if (dt_process_init(&process, &candidates.cloud, &priors) == DT_OK) {
        if (learn(&process, &candidates, trials, n) == DT_OK && process.n >= DT_IMPORTANCE_LEAST &&
            dt_process_fit(&process, &rng) == DT_OK)
            known = shares(&process, &candidates, plans, share);
        dt_process_fini(&process);
    }
    dt_candidates_fini(&candidates);
    return known;
}
