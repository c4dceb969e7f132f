/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/simd.h"
#include "model/network.h"

#include <stddef.h>
#include <string.h>

static void widen(const uint16_t *x, float *y, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

/* Token i, with x in float32. */
static void modulate_row(const struct dt_simd *simd, const struct dt_modulate *op, int i, float *x)
{
    int64_t sequence = i / op->tokens;
    int64_t at = (int64_t)i * op->channels * dt_dtype_bytes(simd->dtype);
    struct dt_row row = {.x = x,
                         .shift = op->shift + sequence * op->stride,
                         .scale = op->scale + sequence * op->stride,
                         .y = (char *)op->y + at,
                         .channels = op->channels};
    if (op->branch == NULL) {
        simd->modulate(&row);
        return;
    }
    row.branch = (const char *)op->branch + at;
    row.gate = op->gate + sequence * op->gate_stride;
    simd->residual(&row);
}

/* Token i of a stream in bfloat16: widened, and rounded again after the sum. */
static void modulate_narrow(const struct dt_simd *simd, const struct dt_modulate *op, int i)
{
    float wide[DT_HIDDEN_MOST];
    uint16_t *x = (uint16_t *)op->x + (int64_t)i * op->channels;
    widen(x, wide, op->channels);
    modulate_row(simd, op, i, wide);
    if (op->branch != NULL)
        simd->narrow(wide, x, op->channels);
}

void dt_cpu_modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int rows = op->sequences * op->tokens;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < rows; i++) {
        if (op->stream == DT_BFLOAT16)
            modulate_narrow(simd, op, i);
        else
            modulate_row(simd, op, i, (float *)op->x + (int64_t)i * op->channels);
    }
}

void dt_cpu_position(struct dt_device *device, const struct dt_position *op)
{
    const struct dt_simd *simd = dt_simd(op->stream);
    int rows = op->sequences * op->tokens;
    (void)device;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        int64_t image = row / op->tokens % op->images, token = row % op->tokens;
        const float *x = op->x + (image * op->tokens + token) * op->channels;
        const float *at = op->position + token * op->channels;
        int64_t first = (int64_t)row * op->channels;
        float wide[DT_HIDDEN_MOST],
            *out = op->stream == DT_BFLOAT16 ? wide : (float *)op->out + first;
        for (int c = 0; c < op->channels; c++)
            out[c] = x[c] + at[c];
        if (op->stream == DT_BFLOAT16)
            simd->narrow(wide, (uint16_t *)op->out + first, op->channels);
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
