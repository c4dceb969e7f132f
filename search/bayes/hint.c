/* SPDX-License-Identifier: MIT */
#include "search/bayes/hint.h"

#include <math.h>
#include <stdlib.h>

#define WORD   2.0 /* pseudo-trials for the prior's information on failures */
#define ROUNDS 50  /* steps of expectation maximisation; the weight converges to 1e-3 long before */

dt_status dt_hint_init(struct dt_hint *hint, const struct dt_candidates *candidates,
                       const struct dt_prior *prior)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    *hint = (struct dt_hint){.cloud = *cloud};
    hint->cloud.belief = calloc(cloud->room + 1, sizeof *hint->cloud.belief);
    hint->kind = calloc(cloud->room + 1, sizeof *hint->kind);
    if (hint->cloud.belief == NULL || hint->kind == NULL) {
        dt_hint_fini(hint);
        return dt_fail(DT_ENOMEM, "out of memory for what is believed of %d plans", cloud->count);
    }
    dt_hint_ask(hint, candidates, prior, 0, cloud->count);
    double sum = 0;
    for (int k = 0; k < cloud->count; k++)
        sum += (double)hint->cloud.belief[k];
    hint->centre = hint->values > 0 ? sum / hint->values : 0;
    for (int k = 0; k < cloud->count; k++)
        if (hint->kind[k] == DT_HINT_VALUE)
            hint->cloud.belief[k] -= (float)hint->centre;
    return DT_OK;
}

void dt_hint_fini(struct dt_hint *hint)
{
    free(hint->cloud.belief);
    free(hint->kind);
    *hint = (struct dt_hint){0};
}

void dt_hint_ask(struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_prior *prior, int first, int last)
{
    hint->cloud.count = candidates->cloud.count;
    for (int k = first; k < last; k++) {
        struct dt_point point;
        dt_candidates_at(candidates, k, &point);
        double value = prior->value(prior->context, &point);
        bool known = isfinite(value) && value > 0;
        hint->values += known - (hint->kind[k] == DT_HINT_VALUE);
        hint->kind[k] = (uint8_t)(known                       ? DT_HINT_VALUE
                                  : isinf(value) && value > 0 ? DT_HINT_FAILED
                                                              : DT_HINT_NONE);
        hint->cloud.belief[k] = known ? (float)(log(value) - hint->centre) : 0;
    }
}

static double nearest(const struct dt_cloud *cloud, const struct dt_kernel *kernel,
                      const struct dt_candidates *candidates, int k)
{
    double least = INFINITY;
    for (int i = 0; i < cloud->count; i++)
        if (candidates->seen[i])
            least = fmin(least, dt_kernel_distance(kernel, cloud, i, k));
    return least;
}

struct believed {
    float value;
    int32_t candidate;
};

static int by_belief(const void *a, const void *b)
{
    const struct believed *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

int dt_hint_next(const struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_kernel *kernel, int top, struct dt_rng *rng)
{
    const struct dt_cloud *cloud = &hint->cloud;
    struct believed *order = calloc((size_t)hint->values + 1, sizeof *order);
    int n = 0, best = -1, seen = 0;
    double most = -1;
    for (int k = 0; k < cloud->count && order != NULL; k++) {
        seen += candidates->seen[k];
        if (hint->kind[k] == DT_HINT_VALUE && !candidates->seen[k])
            order[n++] = (struct believed){cloud->belief[k], k};
    }
    if (n > 0)
        qsort(order, (size_t)n, sizeof *order, by_belief);
    for (int i = 0; i < n && i < top; i++) {
        if (best >= 0 && (seen == 0 || dt_rng_below(rng, 2) == 0))
            continue;
        double distance = nearest(cloud, kernel, candidates, order[i].candidate);
        if (best < 0 || distance > most) {
            most = distance;
            best = order[i].candidate;
        }
    }
    free(order);
    return best;
}

void dt_hint_answered(struct dt_hint *hint, int candidate, bool works)
{
    hint->tried[hint->kind[candidate]]++;
    hint->worked[hint->kind[candidate]] += works;
}

bool dt_hint_fails(const struct dt_hint *hint)
{
    return 2 * hint->worked[DT_HINT_VALUE] < hint->tried[DT_HINT_VALUE];
}

double dt_hint_works(const struct dt_hint *hint, int candidate)
{
    static const double rates[DT_HINT_KINDS] = {
        [DT_HINT_NONE] = 1, [DT_HINT_VALUE] = 1, [DT_HINT_FAILED] = 0.3};
    const int kind = hint->kind[candidate];
    if (kind == DT_HINT_NONE)
        return 1;
    return (hint->worked[kind] + rates[kind] * WORD) / (hint->tried[kind] + WORD);
}

double dt_hint_stack(const double first[], const double second[], int n, double trust)
{
    double weight = 0.5;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = trust;
        for (int i = 0; i < n; i++)
            sum += 1 / (1 + (1 - weight) / weight * exp(fmin(first[i] - second[i], 700)));
        weight = sum / (n + 2 * trust);
    }
    return weight;
}
