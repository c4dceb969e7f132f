/* SPDX-License-Identifier: MIT */
/* Answers of a landscape: to a search in place of a machine, and to another landscape as a prior (transfer.h). */
#include "search/landscape/transfer.h"

#include <math.h>
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

dt_status dt_landscape_map(const struct dt_landscape *landscape, const struct dt_landscape *source,
                           double values[], int64_t *found)
{
    struct dt_transfer transfer;
    const struct dt_original *originals[DT_AXES_MAX];
    memcpy(originals, landscape->originals, sizeof originals);
    dt_status status = dt_transfer_init(&transfer, landscape->space, originals, source);
    int64_t n = 0;
    for (int64_t k = 0; k < landscape->count && status == DT_OK; k++) {
        struct dt_point point;
        dt_space_at(landscape->space, k, &point);
        values[k] = dt_transfer_value(&transfer, &point);
        n += !isnan(values[k]);
    }
    dt_transfer_fini(&transfer);
    if (status == DT_OK && n == 0)
        status = dt_fail(DT_EUSAGE, "the prior and the landscape have no plan in common");
    if (status == DT_OK)
        *found = n;
    return status;
}
