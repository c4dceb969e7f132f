/* SPDX-License-Identifier: MIT */
/* Recomputes the factors, one block of rows of V at a time, in pieces of columns that fit the first-level cache. */
#include "search/bayes/process_int.h"
#include "search/bayes/rows.h"

#include <math.h>
#include <stdlib.h>

#define LOG_TWO_PI 1.83787706640934548356

enum { BLOCK = DT_PROCESS_BLOCK, COLUMNS = 128 };

void dt_process_matrix(const struct dt_process *process, double matrix[], int stride)
{
    for (int i = 0; i < process->n; i++) {
        double *row = matrix + (size_t)i * (size_t)stride;
        for (int j = 0; j <= i; j++)
            row[j] = matrix[(size_t)j * (size_t)stride + (size_t)i] =
                dt_kernel_at(&process->kernel, process->cloud, process->at[i], process->at[j]);
        row[i] += dt_process_noise(process, i);
    }
}

/* part[rows, columns] = L[from.., first..] in single precision. */
static void copy_part(const struct dt_process *process, int from, int first, int rows, int columns,
                      float part[])
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            part[i * BLOCK + j] =
                (float)process
                    ->factor[(size_t)(from + i) * (size_t)process->room + (size_t)(first + j)];
}

/* out[rows, columns] -= part[rows, BLOCK] V[BLOCK, columns] */
static void subtract_block(const struct dt_process *process, const float part[], int rows,
                           const float v[], float out[], int columns)
{
    const size_t stride = process->cloud->room;
    for (int first = 0; first < columns; first += COLUMNS)
        for (int i = 0; i < rows; i++)
            dt_rows_subtract(part + i * BLOCK, v + first, stride, BLOCK,
                             out + (size_t)i * stride + first,
                             columns - first < COLUMNS ? columns - first : COLUMNS);
}

/* out[rows, columns] = part^-1 out, part a lower triangle. */
static void solve_part(const struct dt_process *process, const float part[], int rows, float out[],
                       int columns)
{
    const size_t stride = process->cloud->room;
    for (int first = 0; first < columns; first += COLUMNS) {
        const int some = columns - first < COLUMNS ? columns - first : COLUMNS;
        for (int i = 0; i < rows; i++) {
            float *row = out + (size_t)i * stride + first;
            const float inverse = 1 / part[i * BLOCK + i];
            dt_rows_subtract(part + i * BLOCK, out + first, stride, i, row, some);
            for (int k = 0; k < some; k++)
                row[k] *= inverse;
        }
    }
}

/* Rows from .. of V, columns first .. : V_b = L_bb^-1 (K_b - sum of L_ba V_a over the blocks a before). */
static void solve_block(const struct dt_process *process, int from, int first, int columns)
{
    const struct dt_cloud *cloud = process->cloud;
    const int rows = process->n - from < BLOCK ? process->n - from : BLOCK;
    float *block = process->blocks[from / BLOCK] + first, part[BLOCK * BLOCK];
    for (int i = 0; i < rows; i++)
        dt_kernel_row(&process->kernel, cloud, process->at[from + i], first, columns,
                      block + (size_t)i * cloud->room);
    for (int before = 0; before < from; before += BLOCK) {
        copy_part(process, from, before, rows, BLOCK, part);
        subtract_block(process, part, rows, process->blocks[before / BLOCK] + first, block,
                       columns);
    }
    copy_part(process, from, from, rows, rows, part);
    solve_part(process, part, rows, block, columns);
    for (int i = 0; i < rows; i++) {
        const float *v = block + (size_t)i * cloud->room;
        const double beta = process->beta[from + i];
        double *mean = process->mean + first, *variance = process->variance + first;
        for (int k = 0; k < columns; k++) {
            mean[k] += beta * (double)v[k];
            variance[k] -= (double)v[k] * (double)v[k];
        }
    }
}

dt_status dt_process_columns(struct dt_process *process, int first, int last)
{
    const struct dt_kernel *kernel = &process->kernel;
    for (int i = first; i < last; i++) {
        double f = process->cloud->belief != NULL ? (double)process->cloud->belief[i] : 0;
        process->mean[i] = 0;
        process->variance[i] = kernel->constant + kernel->slope * f * f + kernel->signal;
    }
    if (last > first)
        for (int from = 0; from < process->n; from += BLOCK)
            solve_block(process, from, first, last - first);
    return DT_OK;
}

dt_status dt_process_refactor(struct dt_process *process)
{
    const int n = process->n;
    if (n > 0) {
        dt_process_matrix(process, process->factor, process->room);
        if (!dt_rows_factor(process->factor, (size_t)process->room, n))
            return dt_fail(DT_ELIB, "a model of %d answers cannot be factored", n);
        for (int i = 0; i < n; i++)
            process->beta[i] = dt_process_target(process, i);
        dt_rows_solve(process->factor, (size_t)process->room, n, process->beta);
    }
    return dt_process_columns(process, 0, process->cloud->count);
}

dt_status dt_process_leave_one_out(const struct dt_process *process, double density[])
{
    const int n = process->n;
    double *inverse = malloc(((size_t)n * (size_t)n + 1) * sizeof *inverse);
    double *alpha = malloc(((size_t)n + 1) * sizeof *alpha);
    if (inverse == NULL || alpha == NULL) {
        free(inverse);
        free(alpha);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", n);
    }
    for (int i = 0; i < n; i++) {
        alpha[i] = process->beta[i];
        for (int j = 0; j <= i; j++)
            inverse[(size_t)i * (size_t)n + (size_t)j] =
                process->factor[(size_t)i * (size_t)process->room + (size_t)j];
    }
    if (n > 0) {
        dt_rows_solve_transposed(process->factor, (size_t)process->room, n, alpha);
        dt_rows_invert(inverse, (size_t)n, n);
    }
    for (int i = 0; i < n; i++) {
        double variance = 1 / inverse[(size_t)i * (size_t)n + (size_t)i];
        double off = alpha[i] * variance;
        density[i] =
            -0.5 * (LOG_TWO_PI + log(variance) + off * off / variance) - log(process->scale);
    }
    free(inverse);
    free(alpha);
    return DT_OK;
}
