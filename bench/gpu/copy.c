/* SPDX-License-Identifier: MIT */
/* The memory's ceiling: one large copy, bytes read and written together; and the strided copy
 * that packs an exchange. */
#include "bench/gpu/bench.h"

#include <stdio.h>

static void call(struct bench *bench, void *arg, int set)
{
    (void)set;
    bench->device->compute->rows.copy(bench->device, arg);
}

void bench_copy(struct bench *bench)
{
    int64_t rows = bench->quick ? 64 : 1 << 18, width = 4096; /* 2 GiB */
    void *from = bench_memory(bench, rows * width * 2), *to = bench_memory(bench, rows * width * 2);
    struct dt_copy whole = {
        .to = to, .from = from, .count = {1, 1, 1}, .width = rows * width, .element = 2};
    /* Queries, keys and values of a quarter of 24 heads of 128, out of rows of all. */
    int64_t tokens = rows * width / (3 * 3072);
    struct dt_copy pack = {.to = to,
                           .from = from,
                           .count = {1, tokens, 3},
                           .to_stride = {0, 3 * 768, 768},
                           .from_stride = {0, 3 * 3072, 3072},
                           .width = 768,
                           .element = 2};
    if (from == NULL || to == NULL) {
        bench_refused(bench, "copy");
    } else {
        bench_time(bench, &(struct bench_row){"copy, read and write", "GB/s",
                                              4.0 * (double)(rows * width), call, &whole, 1});
        bench_time(bench, &(struct bench_row){"pack qkv of 6 of 24 heads, read and write", "GB/s",
                                              4.0 * 3.0 * 768.0 * (double)tokens, call, &pack, 1});
    }
    bench_release(bench, from);
    bench_release(bench, to);
}
