/* SPDX-License-Identifier: MIT */
/* Which observations a fit looks at, laid out for it. */
#include "search/bayes/process_int.h"

#include <stdlib.h>

struct ranked {
    double y;
    int32_t i;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->y != y->y)
        return x->y < y->y ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* The smaller half of what is looked at, because that is where the search goes, and others drawn from the rest. */
static dt_status choose(struct dt_fit *fit, struct dt_rng *rng)
{
    const struct dt_process *process = fit->process;
    struct ranked *ranked = calloc((size_t)process->n + 1, sizeof *ranked);
    if (ranked == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n);
    for (int i = 0; i < process->n; i++)
        ranked[i] = (struct ranked){process->y[i], i};
    if (fit->n < process->n) {
        qsort(ranked, (size_t)process->n, sizeof *ranked, by_value);
        for (int k = fit->n / 2; k < fit->n; k++) {
            int other = k + (int)dt_rng_below(rng, (uint64_t)(process->n - k));
            struct ranked kept = ranked[k];
            ranked[k] = ranked[other];
            ranked[other] = kept;
        }
    }
    for (int k = 0; k < fit->n; k++)
        fit->chosen[k] = ranked[k].i;
    free(ranked);
    return DT_OK;
}

dt_status dt_fit_init(struct dt_fit *fit, const struct dt_process *process, struct dt_rng *rng)
{
    const struct dt_cloud *cloud = process->cloud;
    int most = process->priors.points;
    int n = process->n < most ? process->n : most;
    size_t size = (size_t)n, square = size * size;
    *fit = (struct dt_fit){.process = process, .n = n};
    fit->chosen = calloc(size + 1, sizeof *fit->chosen);
    fit->x = malloc((size * ((size_t)cloud->dims + 4) + 4 * square + 1) * sizeof *fit->x);
    if (fit->chosen == NULL || fit->x == NULL) {
        dt_fit_fini(fit);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", n);
    }
    fit->z = fit->x + size * (size_t)cloud->dims;
    fit->v = fit->z + size;
    fit->f = fit->v + size;
    fit->alpha = fit->f + size;
    fit->k = fit->alpha + size;
    fit->inverse = fit->k + square;
    fit->matern = fit->inverse + square;
    fit->slope = fit->matern + square;
    dt_status status = choose(fit, rng);
    if (status < 0) {
        dt_fit_fini(fit);
        return status;
    }
    for (int i = 0; i < n; i++) {
        int from = fit->chosen[i];
        for (int d = 0; d < cloud->dims; d++)
            fit->x[(size_t)d * size + (size_t)i] =
                (double)cloud->x[(size_t)d * cloud->room + (size_t)process->at[from]];
        fit->f[i] = cloud->belief != NULL ? (double)cloud->belief[process->at[from]] : 0;
        fit->z[i] = dt_process_target(process, from);
        fit->v[i] = process->y_variance[from] / (process->scale * process->scale);
    }
    return DT_OK;
}

void dt_fit_fini(struct dt_fit *fit)
{
    free(fit->chosen);
    free(fit->x);
    *fit = (struct dt_fit){0};
}
