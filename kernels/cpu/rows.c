/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/simd.h"

#include <stddef.h>
#include <string.h>

void dt_cpu_modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int rows = op->sequences * op->tokens;
    int64_t width = (int64_t)op->channels * dt_dtype_bytes(dtype);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < rows; i++) {
        int64_t sequence = i / op->tokens;
        struct dt_row row = {.x = op->x + (int64_t)i * op->channels,
                             .shift = op->shift + sequence * op->stride,
                             .scale = op->scale + sequence * op->stride,
                             .y = (char *)op->y + i * width,
                             .channels = op->channels};
        if (op->branch == NULL) {
            simd->modulate(&row);
            continue;
        }
        row.branch = (const char *)op->branch + i * width;
        row.gate = op->gate + sequence * op->gate_stride;
        simd->residual(&row);
    }
}

void dt_cpu_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                   int64_t n)
{
    enum { CHUNK = 8192 };
    const struct dt_simd *simd = dt_simd(dtype);
    int bytes = dt_dtype_bytes(dtype);
    (void)device;
    if (simd->narrow == NULL) {
        memcpy(y, x, (size_t)n * sizeof *x);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += CHUNK)
        simd->narrow(x + i, (char *)y + i * bytes, n - i < CHUNK ? (int)(n - i) : CHUNK);
}
