/* SPDX-License-Identifier: MIT */
/* Passes that only move memory: gated residual, norm and modulation in one; bytes that must
 * be read and written. */
#include "bench/gpu/bench.h"

#include <stdio.h>

static void call(struct bench *bench, void *arg, int set)
{
    (void)set;
    bench->device->compute->rows.modulate(bench->device, DT_BFLOAT16, arg);
}

static void time_width(struct bench *bench, int tokens, int channels, bool gated,
                       enum dt_dtype stream)
{
    int64_t size = (int64_t)tokens * channels;
    char what[96];
    const int of_x = dt_dtype_bytes(stream);
    float *table = bench_memory(bench, 6L * channels * 4);
    void *x = bench_memory(bench, size * of_x), *y = bench_memory(bench, size * 2);
    struct dt_modulate op = {.x = x,
                             .branch = gated ? y : NULL,
                             .gate = table,
                             .shift = table,
                             .scale = table,
                             .y = y,
                             .gate_stride = 6L * channels,
                             .stride = 6L * channels,
                             .sequences = 1,
                             .tokens = tokens,
                             .channels = channels,
                             .stream = stream};
    /* The residual is read, and written when gated; the branch is read; the result is written. */
    double bytes = (double)size * (gated ? 2 * of_x + 2 + 2 : of_x + 2);
    snprintf(what, sizeof what, "%s %d x %d%s",
             gated ? "gate + residual + norm" : "norm + modulate", tokens, channels,
             stream == DT_BFLOAT16 ? ", residual=bfloat16" : "");
    if (x == NULL || table == NULL || y == NULL)
        bench_refused(bench, what);
    else
        bench_time(bench, &(struct bench_row){what, "GB/s", bytes, call, &op, 1});
    bench_release(bench, x);
    bench_release(bench, table);
    bench_release(bench, y);
}

/* 64 times a step's tokens, so that nothing stays in the cache. */
void bench_passes(struct bench *bench)
{
    int many = bench->quick ? 1 : 64;
    for (int gated = 0; gated < 2; gated++) {
        time_width(bench, many * 1024, bench->quick ? 64 : 1152, gated != 0, DT_FLOAT32);
        time_width(bench, many * 256, bench->quick ? 64 : 3072, gated != 0, DT_FLOAT32);
    }
    time_width(bench, many * 1024, bench->quick ? 64 : 1152, true, DT_BFLOAT16);
}
