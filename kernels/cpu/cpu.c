/* SPDX-License-Identifier: MIT */
/* The small operations in plain C, and the table. */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/gemm_int.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <string.h>

static void copy(const struct dt_copy *op)
{
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < op->rows; row++)
        memcpy((char *)op->to + row * op->to_stride * op->element,
               (const char *)op->from + row * op->from_stride * op->element,
               (size_t)(op->width * op->element));
}

static void sinusoid(const struct dt_sinusoid *op)
{
    int half = op->channels / 2;
    for (int n = 0; n < op->count; n++) {
        float *row = op->out + (int64_t)n * op->channels;
        for (int i = 0; i < half; i++) {
            float frequency = expf(-9.210340371976184f * (float)i / (float)half);
            row[i] = cosf(op->time[n] * frequency);
            row[half + i] = sinf(op->time[n] * frequency);
        }
    }
}

static void condition(const struct dt_condition *op)
{
    for (int n = 0; n < op->count; n++) {
        const float *x = op->x + (int64_t)n * op->channels;
        const float *class = op->table + (int64_t)op->label[n] * op->channels;
        float *row = op->out + (int64_t)n * op->channels;
        for (int c = 0; c < op->channels; c++) {
            float both = x[c] + class[c];
            row[c] = both / (1.0f + expf(-both));
        }
    }
}

static void position(const struct dt_position *op)
{
    int rows = op->sequences * op->tokens;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        int64_t image = row / op->tokens % op->images, token = row % op->tokens;
        const float *x = op->x + (image * op->tokens + token) * op->channels;
        const float *at = op->position + token * op->channels;
        float *out = op->out + (int64_t)row * op->channels;
        for (int c = 0; c < op->channels; c++)
            out[c] = x[c] + at[c];
    }
}

static void guide(const struct dt_guide *op)
{
    for (int64_t i = 0; i < op->pixels; i++) {
        const float *cond = op->cond + i * op->cond_stride;
        const float *uncond = op->uncond + i * op->uncond_stride;
        float *out = op->out + i * op->channels;
        for (int c = 0; c < op->guided; c++)
            out[c] = uncond[c] + op->scale * (cond[c] - uncond[c]);
        for (int c = op->guided; c < op->channels; c++)
            out[c] = op->rest[i * op->channels + c];
    }
}

static void sampler(const struct dt_sampler *op)
{
    for (int64_t token = 0; token < op->tokens; token++) {
        float *latent = op->latent + token * op->channels * op->pixels;
        const float *eps = op->eps + token * op->pixels * op->eps_channels;
        for (int c = 0; c < op->channels; c++)
            for (int i = 0; i < op->pixels; i++)
                latent[c * op->pixels + i] = op->keep * latent[c * op->pixels + i] +
                                             op->step * eps[i * op->eps_channels + c];
    }
}

static void threads(int count)
{
    omp_set_num_threads(count);
}

static bool usable(enum dt_dtype dtype)
{
    return dt_simd(dtype) != NULL && dt_gemm(dtype) != NULL;
}

static dt_status pack(enum dt_dtype dtype, const float *weight, int in, int out, void *packed)
{
    return dt_gemm(dtype)->pack(dtype, weight, in, out, packed);
}

const struct dt_compute dt_compute_cpu = {
    .name = "cpu",
    .doc = "oneDNN or OpenBLAS, OpenMP and vectors",
    .usable = usable,
    .threads = threads,
    .pack = pack,
    .linear_new = dt_linear_new,
    .linear = dt_linear_run,
    .linear_free = dt_linear_free,
    .narrow = dt_cpu_narrow,
    .modulate = dt_cpu_modulate,
    .attention = dt_cpu_attention,
    .merge = dt_cpu_merge,
    .copy = copy,
    .sinusoid = sinusoid,
    .condition = condition,
    .position = position,
    .guide = guide,
    .sampler = sampler,
};
