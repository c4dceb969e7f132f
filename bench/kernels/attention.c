/* SPDX-License-Identifier: MIT */
/* Attention at every tile pair against a large product of the libraries. */
#include "bench/kernels/side.h"
#include "model/family.h"

#include <stdio.h>

struct work {
    enum dt_dtype dtype;
    struct dt_attention op;
};

static void run(void *arg)
{
    struct work *work = arg;
    dt_compute_cpu.attention.run(NULL, work->dtype, &work->op);
}

static int64_t scratch_of(const struct work *work)
{
    const struct dt_workload workload = {.network = {.family = &dt_family_dit,
                                                     .hidden = work->op.head,
                                                     .heads = 1,
                                                     .patch = 1,
                                                     .in_channels = 1,
                                                     .mlp_ratio = 1},
                                         .height = 1,
                                         .width = 1,
                                         .dtype = work->dtype};
    struct dt_plan plan = dt_plan_fallback;
    struct dt_layout layout;
    plan.tile_q = work->op.tile.tile_q;
    plan.tile_kv = work->op.tile.tile_kv;
    dt_layout_init(&layout, &workload, &plan, 0);
    return layout.scratch;
}

/* The libraries' best product: who wants to be compared is compared with the faster one, too. */
static void bench(enum dt_dtype dtype, int tokens, int heads, int head)
{
    static const int size[] = {2048, 2048, 2048};
    int64_t width = (int64_t)heads * head;
    struct dt_bench_product *product = dt_bench_product(dtype, size);
    struct dt_side theirs[2];
    const char *library[] = {dt_bench_openblas(product, &theirs[0]),
                             dt_bench_onednn(product, &theirs[1])};
    int element = dt_dtype_bytes(dtype), first = library[0] != NULL ? 0 : 1;
    char *qkv = dt_bench_numbers(dtype, 3 * width * tokens), what[128];
    double least = 1e9, most = 0;
    struct work best = {.dtype = dtype}, work = best;
    work.op = (struct dt_attention){.q = qkv,
                                    .k = qkv + width * element,
                                    .v = qkv + 2 * width * element,
                                    .out = dt_bench_room(4 * width * tokens),
                                    .q_at = {0, 3 * width},
                                    .kv_at = {0, 3 * width},
                                    .out_at = {0, width},
                                    .sequences = 1,
                                    .heads = heads,
                                    .head = head,
                                    .queries = tokens,
                                    .keys = tokens};
    double flops = 4.0 * tokens * tokens * (double)width;
    for (int i = 0; i < DT_TILES_Q * DT_TILES_KV && library[first] != NULL; i++) {
        work.op.tile.tile_q = dt_tiles_q[i / DT_TILES_KV];
        work.op.tile.tile_kv = dt_tiles_kv[i % DT_TILES_KV];
        work.op.scratch_floats = scratch_of(&work);
        work.op.scratch = dt_bench_room(4 * work.op.scratch_floats * dt_bench_threads);
        struct dt_side ours = {run, &work, flops};
        snprintf(what, sizeof what, "%s S=%d D=%d, tile %d x %d, of %s", dt_dtype_text(dtype),
                 tokens, head, work.op.tile.tile_q, work.op.tile.tile_kv, library[first]);
        double ratio = dt_bench_compare(what, "GFLOP/s", &ours, &theirs[first]);
        least = ratio < least ? ratio : least;
        best = ratio > most ? work : best;
        most = ratio > most ? ratio : most;
    }
    printf("%-58s %6.3f  (the best pair over the worst)\n", "  spread", most / least);
    struct dt_side ours = {run, &best, flops};
    for (int i = first; i < 2 && library[i] != NULL; i++) { /* the best of many was lucky, too */
        snprintf(what, sizeof what, "%s S=%d D=%d, chosen tile %d x %d, of %s",
                 dt_dtype_text(dtype), tokens, head, best.op.tile.tile_q, best.op.tile.tile_kv,
                 library[i]);
        dt_bench_compare(what, "GFLOP/s", &ours, &theirs[i]);
    }
}

void dt_bench_attention(void)
{
    printf("# attention against a product of 2048^3; float32 at S=4096 with a good tile pair, of "
           "sgemm: targets 0.80 "
           "(D=64), 0.85 (D=128)\n");
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        if (!dt_compute_cpu.usable((enum dt_dtype)dtype))
            continue;
        bench((enum dt_dtype)dtype, 4096, 4, 64);
        bench((enum dt_dtype)dtype, 4096, 2, 128);
        bench((enum dt_dtype)dtype, 1024, 16, 72);
    }
}
