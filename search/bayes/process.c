/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "search/bayes/process_int.h"
#include "search/bayes/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
dt_status dt_process_init(struct dt_process *process, const struct dt_cloud *cloud,
                          const struct dt_process_priors *priors)
{
    *process = (struct dt_process){
        .cloud = cloud, .priors = *priors, .noise = priors->noise.median, .scale = 1};
    process->kernel.signal = priors->signal.median;
    process->kernel.constant = priors->constant;
    process->kernel.share = priors->share.median / (1 + priors->share.median);
    process->kernel.slope = cloud->belief != NULL ? priors->slope : 0;
    for (int d = 0; d < cloud->dims; d++)
        process->kernel.length[d] = priors->length.median;
    process->mean = malloc((cloud->room + 1) * sizeof *process->mean);
    process->variance = malloc((cloud->room + 1) * sizeof *process->variance);
    if (process->mean == NULL || process->variance == NULL) {
        dt_process_fini(process);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d plans", cloud->count);
    }
    return dt_process_columns(process, 0, cloud->count);
}

void dt_process_fini(struct dt_process *process)
{
    for (int b = 0; b < process->block_count; b++)
        free(process->blocks[b]);
    free(process->blocks);
    free(process->at);
    free(process->y);
    free(process->y_variance);
    free(process->factor);
    free(process->beta);
    free(process->row);
    free(process->mean);
    free(process->variance);
    *process = (struct dt_process){0};
}

static double belief(const struct dt_process *process, int candidate)
{
    return process->cloud->belief != NULL ? (double)process->cloud->belief[candidate] : 0;
}

double dt_process_target(const struct dt_process *process, int i)
{
    return (process->y[i] - process->centre - belief(process, process->at[i])) / process->scale;
}

double dt_process_noise(const struct dt_process *process, int i)
{
    return process->noise + process->y_variance[i] / (process->scale * process->scale);
}

static dt_status grow_rows(struct dt_process *process)
{
    if (process->n < process->room)
        return DT_OK;
    int room = process->room > 0 ? 2 * process->room : 2 * DT_PROCESS_BLOCK;
    size_t size = (size_t)room;
    DT_TRY(DT_RESIZE(process->at, room));
    DT_TRY(DT_RESIZE(process->y, room));
    DT_TRY(DT_RESIZE(process->y_variance, room));
    DT_TRY(DT_RESIZE(process->beta, room));
    DT_TRY(DT_RESIZE(process->row, room));
    double *factor = malloc(size * size * sizeof *factor);
    if (factor == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n + 1);
    for (int i = 0; i < process->n; i++)
        memcpy(factor + (size_t)i * size, process->factor + (size_t)i * (size_t)process->room,
               (size_t)process->n * sizeof *factor);
    free(process->factor);
    process->factor = factor;
    process->room = room;
    return DT_OK;
}

static dt_status grow_blocks(struct dt_process *process)
{
    if (process->n < process->block_count * DT_PROCESS_BLOCK)
        return DT_OK;
    DT_TRY(DT_GROW(process->blocks, process->block_count, 1));
    float *block = malloc(process->cloud->room * DT_PROCESS_BLOCK * sizeof *block);
    if (block == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n + 1);
    process->blocks[process->block_count++] = block;
    return DT_OK;
}

static float *v_row(const struct dt_process *process, int i)
{
    return process->blocks[i / DT_PROCESS_BLOCK] +
           (size_t)(i % DT_PROCESS_BLOCK) * process->cloud->room;
}

/* v -= V' l, v and V over all candidates. */
static void subtract_rows(const struct dt_process *process, const double l[], float v[])
{
    const int columns = process->cloud->count;
    for (int from = 0; from < process->n; from += DT_PROCESS_BLOCK) {
        int rows = process->n - from < DT_PROCESS_BLOCK ? process->n - from : DT_PROCESS_BLOCK;
        float part[DT_PROCESS_BLOCK];
        for (int i = 0; i < rows; i++)
            part[i] = (float)l[from + i];
        dt_rows_subtract(part, v_row(process, from), process->cloud->room, rows, v, columns);
    }
}

dt_status dt_process_add(struct dt_process *process, int candidate, double y, double variance)
{
    DT_TRY(grow_rows(process));
    DT_TRY(grow_blocks(process));
    const struct dt_cloud *cloud = process->cloud;
    const int n = process->n;
    double *l = process->factor + (size_t)n * (size_t)process->room;
    process->at[n] = candidate;
    process->y[n] = y;
    process->y_variance[n] = variance;
    for (int i = 0; i < n; i++)
        l[i] = dt_kernel_at(&process->kernel, cloud, candidate, process->at[i]);
    dt_rows_solve(process->factor, (size_t)process->room, n, l);
    double noise = dt_process_noise(process, n);
    double own =
        dt_kernel_at(&process->kernel, cloud, candidate, candidate) + noise - dt_rows_dot(l, l, n);
    l[n] = sqrt(fmax(own, noise)); /* in exact arithmetic it is never below the noise */
    process->beta[n] = (dt_process_target(process, n) - dt_rows_dot(l, process->beta, n)) / l[n];
    float *v = v_row(process, n);
    dt_kernel_row(&process->kernel, cloud, candidate, 0, cloud->count, v);
    subtract_rows(process, l, v);
    const float inverse = (float)(1 / l[n]);
    const double beta = process->beta[n];
    for (int i = 0; i < cloud->count; i++) {
        v[i] *= inverse;
        process->mean[i] += beta * (double)v[i];
        process->variance[i] -= (double)v[i] * (double)v[i];
    }
    process->n++;
    return DT_OK;
}

void dt_process_pop(struct dt_process *process)
{
    const float *v = v_row(process, --process->n);
    const double beta = process->beta[process->n];
    for (int i = 0; i < process->cloud->count; i++) {
        process->mean[i] -= beta * (double)v[i];
        process->variance[i] += (double)v[i] * (double)v[i];
    }
}

double dt_process_mean(const struct dt_process *process, int candidate)
{
    return process->centre + process->scale * process->mean[candidate] + belief(process, candidate);
}

/* Rounding in single precision may give a negative variance. */
double dt_process_deviation(const struct dt_process *process, int candidate)
{
    double least = 1e-6 * process->kernel.signal;
    return process->scale * sqrt(fmax(process->variance[candidate], least));
}

double dt_process_covariance(const struct dt_process *process, int a, int b)
{
    double sum = dt_kernel_at(&process->kernel, process->cloud, a, b);
    for (int i = 0; i < process->n; i++) {
        const float *v = v_row(process, i);
        sum -= (double)v[a] * (double)v[b];
    }
    return process->scale * process->scale * sum;
}
