/* SPDX-License-Identifier: MIT */
/* The small operations in plain C, and the table. */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/gemm_int.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static void copy(struct dt_device *device, const struct dt_copy *op)
{
    int64_t inner = op->count[2], middle = op->count[1], rows = op->count[0] * middle * inner;
    (void)device;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        int64_t i = row / (middle * inner), k = row / inner % middle, l = row % inner;
        int64_t to = i * op->to_stride[0] + k * op->to_stride[1] + l * op->to_stride[2];
        int64_t from = i * op->from_stride[0] + k * op->from_stride[1] + l * op->from_stride[2];
        memcpy((char *)op->to + to * op->element, (const char *)op->from + from * op->element,
               (size_t)(op->width * op->element));
    }
}

static void sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *total)
{
    const char *from = data;
    (void)device;
    for (int64_t i = 0; i < bytes; i += 2) {
        uint16_t word;
        memcpy(&word, from + i, sizeof word);
        *total += word;
    }
}

/* As kernels/cuda/rows_float.cu, which says why in double. */
static void sinusoid(struct dt_device *device, const struct dt_sinusoid *op)
{
    (void)device;
    int half = op->channels / 2;
    for (int n = 0; n < op->count; n++) {
        float *row = op->out + (int64_t)n * op->channels;
        for (int i = 0; i < half; i++) {
            float exponent = -9.210340371976184f * (float)i / (float)half;
            float frequency = (float)exp((double)exponent);
            row[i] = cosf(op->time[n] * frequency);
            row[half + i] = sinf(op->time[n] * frequency);
        }
    }
}

static void condition(struct dt_device *device, const struct dt_condition *op)
{
    (void)device;
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

static void guide(struct dt_device *device, const struct dt_guide *op)
{
    (void)device;
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

static void sampler(struct dt_device *device, const struct dt_sampler *op)
{
    (void)device;
    for (int64_t token = 0; token < op->tokens; token++) {
        float *latent = op->latent + token * op->channels * op->pixels;
        const float *eps = op->eps + token * op->pixels * op->eps_channels;
        for (int c = 0; c < op->channels; c++)
            for (int i = 0; i < op->pixels; i++)
                latent[c * op->pixels + i] = op->update[0] * latent[c * op->pixels + i] +
                                             op->update[1] * eps[i * op->eps_channels + c];
    }
}

static bool usable(enum dt_dtype dtype)
{
    return dt_simd(dtype) != NULL && dt_gemm(dtype) != NULL;
}

static dt_status pack(struct dt_device *device, enum dt_dtype dtype, const float *weight, int in,
                      int out, void *packed)
{
    (void)device;
    return dt_gemm(dtype)->pack(dtype, weight, in, out, packed);
}

static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    return dt_gemm(dtype)->weight_row(dtype, in, row);
}

static dt_status linear_new(struct dt_device *device, enum dt_dtype dtype,
                            const struct dt_linear_shape *shape, struct dt_linear **linear)
{
    (void)device;
    if (shape->groups > 1)
        return dt_fail(DT_EUNSUP, "packed weights cannot be cut into %d groups", shape->groups);
    return dt_linear_new(dtype, shape, linear);
}

static void linear(struct dt_device *device, struct dt_linear *layer,
                   const struct dt_linear_call *call)
{
    (void)device;
    dt_linear_run(layer, call);
}

const struct dt_compute dt_compute_cpu = {
    .name = "cpu",
    .host = true,
    .usable = usable,
    .versions = dt_cpu_versions,
    .count = dt_cpu_count,
    .open = dt_cpu_open,
    .close = dt_cpu_close,
    .model = dt_cpu_model,
    .memory.space = dt_cpu_memory,
    .threads = dt_cpu_threads,
    .memory.alloc = dt_cpu_alloc,
    .memory.release = dt_cpu_release,
    .memory.put = dt_cpu_copy_bytes,
    .memory.get = dt_cpu_copy_bytes,
    .memory.fill = dt_cpu_fill,
    .finish = dt_cpu_finish,
    .timeline.mark = dt_cpu_mark,
    .timeline.times = dt_cpu_times,
    .linear.pack = pack,
    .linear.weight_row = weight_row,
    .linear.make = linear_new,
    .linear.apply = linear,
    .linear.free = dt_linear_free,
    .rows.narrow = dt_cpu_narrow,
    .rows.modulate = dt_cpu_modulate,
    .attention.ready = dt_cpu_attention_ready,
    .attention.run = dt_cpu_attention,
    .attention.merge = dt_cpu_merge,
    .rows.copy = copy,
    .rows.sum = sum,
    .rows.sinusoid = sinusoid,
    .rows.condition = condition,
    .rows.position = dt_cpu_position,
    .rows.guide = guide,
    .rows.sampler = sampler,
    .peak = dt_cpu_peak,
};
