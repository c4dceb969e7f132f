/* SPDX-License-Identifier: MIT */
/* What a landscape answers: to a search in place of a machine, and to another landscape as a prior. */
#include "tuner/simulate/landscape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct dt_entry *entry_at(const struct dt_landscape *landscape,
                                       const struct dt_point *point)
{
    return &landscape->entries[dt_space_index(landscape->space, point)];
}

void dt_landscape_trial(const struct dt_landscape *landscape, const struct dt_point *point,
                        struct dt_trial *trial)
{
    const struct dt_entry *entry = entry_at(landscape, point);
    *trial = (struct dt_trial){.point = *point,
                               .outcome = entry->outcome,
                               .value = entry->value,
                               .low = entry->value,
                               .high = entry->value,
                               .seconds = landscape->seconds * entry->value,
                               .peak_bytes = entry->peak_bytes,
                               .cost = entry->cost};
}

struct draw {
    double mean, variance; /* of the drawn repetitions */
};

static struct draw bootstrap(const double samples[], int n, struct dt_rng *rng)
{
    double mean = 0, squares = 0; /* Welford 1962 */
    for (int i = 0; i < n; i++) {
        double x = samples[dt_rng_below(rng, (uint64_t)n)], step = x - mean;
        mean += step / (i + 1);
        squares += step * (x - mean);
    }
    return (struct draw){.mean = mean, .variance = n > 1 ? squares / (n - 1) : 0};
}

static double mean_of(const double samples[], int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += samples[i];
    return sum / n;
}

void dt_landscape_trial_noisy(const struct dt_landscape *landscape, const struct dt_point *point,
                              uint64_t seed, struct dt_trial *trial)
{
    int64_t k = dt_space_index(landscape->space, point);
    const struct dt_entry *entry = &landscape->entries[k];
    struct dt_rng rng = {.seed = dt_rng_hash(seed, dt_rng_stream("replay noise"), (uint64_t)k),
                         .stream = dt_rng_stream("repetitions")};
    dt_landscape_trial(landscape, point, trial);
    if (entry->count < 2 || isnan(entry->value))
        return;
    const double *samples = &landscape->samples[entry->first];
    struct draw draw = bootstrap(samples, entry->count, &rng);
    double error = sqrt(draw.variance / entry->count) / draw.mean;
    trial->value *= draw.mean / mean_of(samples, entry->count);
    trial->seconds = landscape->seconds * trial->value;
    trial->variance = error * error;
    trial->low = trial->value * exp(-1.96 * error);
    trial->high = trial->value * exp(1.96 * error);
}

static bool same(const struct dt_original *a, const struct dt_original *b)
{
    if (a->text != NULL || b->text != NULL)
        return a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0;
    return a->number == b->number;
}

/* For each value of an axis its index in the source's axis, or -1. */
static int32_t *match(const struct dt_landscape *landscape, int axis,
                      const struct dt_landscape *source, int its)
{
    int count = dt_space_axis(landscape->space, axis)->count;
    int32_t *indices = malloc((size_t)count * sizeof *indices);
    for (int i = 0; indices != NULL && i < count; i++) {
        indices[i] = -1;
        for (int k = 0; k < dt_space_axis(source->space, its)->count; k++)
            if (same(&landscape->originals[axis][i], &source->originals[its][k]))
                indices[i] = k;
    }
    return indices;
}

struct matching {
    const struct dt_landscape *landscape, *source;
    int theirs[DT_AXES_MAX];       /* axis of the source, -1: it has none */
    int32_t *indices[DT_AXES_MAX]; /* owned */
};

/* A parameter of one value may be missing on one side: it says nothing. */
static dt_status match_axes(struct matching *matching)
{
    const struct dt_space *space = matching->landscape->space, *other = matching->source->space;
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        int its = dt_space_find(other, axis->name);
        matching->theirs[i] = its;
        if (its < 0 && axis->count > 1)
            return dt_fail(DT_EUSAGE, "the prior has no parameter '%s'", axis->name);
        if (its < 0)
            continue;
        matching->indices[i] = match(matching->landscape, i, matching->source, its);
        if (matching->indices[i] == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for a prior");
    }
    for (int i = 0; i < dt_space_axes(other); i++) {
        const struct dt_axis *axis = dt_space_axis(other, i);
        if (axis->count > 1 && dt_space_find(space, axis->name) < 0)
            return dt_fail(DT_EUSAGE, "the prior's parameter '%s' is none of the landscape's",
                           axis->name);
    }
    return DT_OK;
}

static double value_at(const struct matching *matching, const struct dt_point *point)
{
    struct dt_point there = {{0}};
    for (int i = 0; i < dt_space_axes(matching->landscape->space); i++) {
        if (matching->theirs[i] < 0)
            continue;
        int32_t index = matching->indices[i][point->index[i]];
        if (index < 0)
            return NAN;
        there.index[matching->theirs[i]] = index;
    }
    int64_t k = dt_space_index(matching->source->space, &there);
    if (k < 0)
        return NAN;
    double value = matching->source->entries[k].value;
    return isnan(value) ? INFINITY : value;
}

dt_status dt_landscape_map(const struct dt_landscape *landscape, const struct dt_landscape *source,
                           double values[], int64_t *found)
{
    struct matching matching = {.landscape = landscape, .source = source};
    dt_status status = match_axes(&matching);
    int64_t n = 0;
    for (int64_t k = 0; k < landscape->count && status == DT_OK; k++) {
        struct dt_point point;
        dt_space_at(landscape->space, k, &point);
        values[k] = value_at(&matching, &point);
        n += !isnan(values[k]);
    }
    for (int i = 0; i < DT_AXES_MAX; i++)
        free(matching.indices[i]);
    if (status == DT_OK && n == 0)
        status = dt_fail(DT_EUSAGE, "the prior and the landscape have no plan in common");
    if (status == DT_OK)
        *found = n;
    return status;
}
