/* SPDX-License-Identifier: MIT */
/* Linear layers by OpenBLAS (OpenMP flavour: it shares the threads of our own loops), and what works row by row. */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/simd.h"

#include <cblas.h>
#include <omp.h>

void dt_cpu_threads(int count)
{
    omp_set_num_threads(count);
}

void dt_cpu_linear(const struct dt_linear *op)
{
    const struct dt_simd *simd = dt_simd();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, op->rows, op->out, op->in, 1.0f, op->x,
                op->in, op->weight, op->in, 0.0f, op->y, op->out);
#pragma omp parallel for schedule(static)
    for (int row = 0; row < op->rows; row++)
        simd->activate(op->y + (int64_t)row * op->out, op->bias, op->out, op->act);
}

void dt_cpu_modulate(const struct dt_modulate *op)
{
    const struct dt_simd *simd = dt_simd();
    int rows = op->sequences * op->tokens;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        int64_t at = (int64_t)row * op->channels, from = row / op->tokens * op->stride;
        simd->modulate(op->x + at, op->shift + from, op->scale + from, op->y + at, op->channels);
    }
}

void dt_cpu_gate(const struct dt_gate *op)
{
    const struct dt_simd *simd = dt_simd();
    int rows = op->sequences * op->tokens;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        int64_t at = (int64_t)row * op->channels;
        simd->gate(op->x + at, op->y + at, op->gate + row / op->tokens * op->stride, op->channels);
    }
}
