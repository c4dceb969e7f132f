/* SPDX-License-Identifier: MIT */
/* Fused passes against the memory: bytes that must move, by the time they take. */
#include "bench/kernels/side.h"

#include <stdio.h>

#define ELEMENTS 26214400 /* some 100 MB of float32: more than caches hold */

struct streams {
    enum dt_dtype dtype;
    float *x, *y, *parts;
    void *branch;
    int64_t rows;
    int channels;
};

/* Two arrays read and written in place: the pattern of a gated residual, and no
 * arithmetic to speak of. */
static void run_memory(void *arg)
{
    struct streams *s = arg;
    int64_t n = s->rows * s->channels;
    float *x = s->x, *y = s->y;
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; i++) {
        x[i] += 1e-6f;
        y[i] += 1e-6f;
    }
}

static void modulate(struct streams *s, const void *branch)
{
    const struct dt_modulate op = {.x = s->x,
                                   .branch = branch,
                                   .gate = s->parts,
                                   .shift = s->parts,
                                   .scale = s->parts,
                                   .y = s->branch,
                                   .sequences = 1,
                                   .tokens = (int)s->rows,
                                   .channels = s->channels};
    dt_compute_cpu.rows.modulate(NULL, s->dtype, &op);
}

static void run_joined(void *arg)
{
    struct streams *s = arg;
    modulate(s, s->branch);
}

static void run_norm(void *arg)
{
    modulate(arg, NULL);
}

static void bench(enum dt_dtype dtype, int channels)
{
    struct streams s = {.dtype = dtype, .rows = ELEMENTS / channels, .channels = channels};
    int64_t n = s.rows * channels, element = dt_dtype_bytes(dtype);
    char what[128];
    s.x = dt_bench_numbers(DT_FLOAT32, n);
    s.y = dt_bench_numbers(DT_FLOAT32, n);
    s.branch = dt_bench_numbers(dtype, n);
    s.parts = dt_bench_numbers(DT_FLOAT32, channels);
    const struct dt_side memory = {run_memory, &s, 16.0 * (double)n};
    const struct dt_side joined = {run_joined, &s, (double)(n * (8 + 2 * element))};
    const struct dt_side norm = {run_norm, &s, (double)(n * (4 + 2 * element))};
    snprintf(what, sizeof what, "%s gate + residual + norm + modulate, C=%d", dt_dtype_text(dtype),
             channels);
    dt_bench_compare(what, "GB/s", &joined, &memory);
    snprintf(what, sizeof what, "%s norm + modulate, C=%d", dt_dtype_text(dtype), channels);
    dt_bench_compare(what, "GB/s", &norm, &memory);
}

void dt_bench_passes(void)
{
    printf("# passes over 100 MB a stream against reading and writing two arrays in place: target "
           "0.80 (what is "
           "written is counted as fetched, too)\n");
    for (int dtype = 0; dtype < DT_DTYPES; dtype++)
        for (int c = 384; c <= 1152 && dt_compute_cpu.usable((enum dt_dtype)dtype); c += 768)
            bench((enum dt_dtype)dtype, c);
}
