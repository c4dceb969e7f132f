/* SPDX-License-Identifier: MIT */
/* The factors from the beginning, a block of rows of V at a time: products of matrices instead of solves, so that most
 * of the work runs at the speed of sgemm. */
#include "search/bayes/process_int.h"

#include <gsl/gsl_cblas.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

#define LOG_TWO_PI 1.83787706640934548356

enum { BLOCK = DT_PROCESS_BLOCK };

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

/* Rows from .. of V, columns first .. : V_b = L_bb^-1 (K_b - sum of L_ba V_a over the blocks a before). */
static void solve_block(const struct dt_process *process, int from, int first, int columns)
{
    const struct dt_cloud *cloud = process->cloud;
    const int rows = process->n - from < BLOCK ? process->n - from : BLOCK;
    const int stride = (int)cloud->room;
    float *block = process->blocks[from / BLOCK] + first, part[BLOCK * BLOCK];
    for (int i = 0; i < rows; i++)
        dt_kernel_row(&process->kernel, cloud, process->at[from + i], first, columns,
                      block + (size_t)i * cloud->room);
    for (int before = 0; before < from; before += BLOCK) {
        copy_part(process, from, before, rows, BLOCK, part);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, BLOCK, -1, part,
                    BLOCK, process->blocks[before / BLOCK] + first, stride, 1, block, stride);
    }
    copy_part(process, from, from, rows, rows, part);
    cblas_strsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, rows, columns, 1,
                part, BLOCK, block, stride);
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
        gsl_matrix_view factor = gsl_matrix_view_array_with_tda(process->factor, (size_t)n,
                                                                (size_t)n, (size_t)process->room);
        if (gsl_linalg_cholesky_decomp1(&factor.matrix) != 0)
            return dt_fail(DT_ELIB, "a model of %d answers cannot be factored", n);
        for (int i = 0; i < n; i++)
            process->beta[i] = dt_process_target(process, i);
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, n, process->factor,
                    process->room, process->beta, 1);
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
        cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, n, process->factor,
                    process->room, alpha, 1);
        gsl_matrix_view view = gsl_matrix_view_array(inverse, (size_t)n, (size_t)n);
        gsl_linalg_cholesky_invert(&view.matrix);
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
