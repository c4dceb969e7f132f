/* SPDX-License-Identifier: MIT */
/* Selects the observations of a fit and prepares its tables. */
#include "search/bayes/process_int.h"

#include <math.h>
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

/* Half of the selection are the smallest values, since the search goes there; the others are drawn from the rest. */
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

static float coordinate(const struct dt_fit *fit, int d, int i)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    return cloud->x[(size_t)d * cloud->room + (size_t)fit->process->at[fit->chosen[i]]];
}

/* Lists the distinct values of the axis in the fit; values with equal coordinates count as one. */
static void sort_values(const struct dt_fit *fit, struct dt_fit_axis *axis)
{
    for (int i = 0; i < fit->n; i++) {
        int like = 0;
        bool same = false;
        for (; like < axis->kinds && !same; like += !same) {
            same = true;
            for (int d = axis->first; d < axis->end && same; d++)
                same = !(fabsf(coordinate(fit, d, i) - coordinate(fit, d, axis->of[like])) > 0);
        }
        axis->kind[i] = like;
        if (!same)
            axis->of[axis->kinds++] = i;
    }
}

/* Sets up the axes; *size is the memory for their tables. */
static void sort_axes(struct dt_fit *fit, size_t *size)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    *size = 0;
    for (int d = 0, end; d < cloud->dims; d = end) {
        end = dt_kernel_axis_end(cloud, d);
        struct dt_fit_axis *axis = &fit->axis[fit->axes];
        int32_t *ints = fit->chosen + (size_t)fit->n * (1 + 2 * (size_t)fit->axes++);
        *axis = (struct dt_fit_axis){.first = d, .end = end, .kind = ints, .of = ints + fit->n};
        sort_values(fit, axis);
        *size += (size_t)(axis->kinds * axis->kinds) * (size_t)(2 + end - d);
    }
}

static void lay_out(struct dt_fit *fit, double *tables)
{
    for (int a = 0; a < fit->axes; a++) {
        struct dt_fit_axis *axis = &fit->axis[a];
        size_t square = (size_t)(axis->kinds * axis->kinds);
        axis->factor = tables;
        axis->by_odds = tables + square;
        axis->by_length = tables + 2 * square;
        tables += square * (size_t)(2 + axis->end - axis->first);
    }
}

dt_status dt_fit_init(struct dt_fit *fit, const struct dt_process *process, struct dt_rng *rng)
{
    const struct dt_cloud *cloud = process->cloud;
    int most = process->priors.points;
    int n = process->n < most ? process->n : most;
    size_t size = (size_t)n, square = size * size, tables = 0;
    *fit = (struct dt_fit){.process = process, .n = n};
    fit->chosen = calloc(size * (1 + 2 * (size_t)cloud->dims) + 1, sizeof *fit->chosen);
    dt_status status = fit->chosen != NULL ? choose(fit, rng) : DT_ENOMEM;
    if (status == DT_OK) {
        sort_axes(fit, &tables);
        fit->z = malloc((size * 4 + 2 * square + tables + 1) * sizeof *fit->z);
    }
    if (fit->chosen == NULL || fit->z == NULL) {
        dt_fit_fini(fit);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", n);
    }
    fit->v = fit->z + size;
    fit->f = fit->v + size;
    fit->alpha = fit->f + size;
    fit->k = fit->alpha + size;
    fit->product = fit->k + square;
    lay_out(fit, fit->product + square);
    for (int i = 0; i < n; i++) {
        int from = fit->chosen[i];
        fit->f[i] = cloud->belief != NULL ? (double)cloud->belief[process->at[from]] : 0;
        fit->z[i] = dt_process_target(process, from);
        fit->v[i] = process->y_variance[from] / (process->scale * process->scale);
    }
    return DT_OK;
}

void dt_fit_fini(struct dt_fit *fit)
{
    free(fit->chosen);
    free(fit->z);
    *fit = (struct dt_fit){0};
}
