/* SPDX-License-Identifier: MIT */
/* Attention: every tile of model/tiles_cuda.def and cuDNN's, 4 S^2 D operations a head, at the head dimensions that are built. */
#include "bench/gpu/bench.h"

#include "model/plan.h"

#include <stdio.h>

static void call(struct bench *bench, void *arg)
{
    bench->device->compute->attention.run(bench->device, DT_BFLOAT16, arg);
}

static void time_kernel(struct bench *bench, struct dt_attention *op)
{
    const struct dt_compute *compute = bench->device->compute;
    char kernel[64] = "cudnn", what[96];
    if (op->kind == DT_ATTENTION_OWN)
        snprintf(kernel, sizeof kernel, "own %dx%d stages %d warps %d", op->tile.tile_q,
                 op->tile.tile_kv, op->tile.stages, op->tile.warps);
    snprintf(what, sizeof what, "attention S=%d D=%d %d heads, %s", op->queries, op->head,
             op->heads, kernel);
    if (compute->attention.ready(bench->device, DT_BFLOAT16, op) != DT_OK) {
        printf("%-58s not run: %s\n", what, dt_message());
        return;
    }
    double amount = 4.0 * op->sequences * op->heads * op->head * (double)op->queries * op->keys;
    bench_time(bench, &(struct bench_row){what, "TFLOP/s", amount, call, op});
}

static void time_shape(struct bench *bench, int tokens, int heads, int head)
{
    int64_t channels = (int64_t)heads * head;
    char *qkv = bench_memory(bench, tokens * 3 * channels * 2);
    void *out = bench_memory(bench, tokens * channels * 2);
    struct dt_attention op = {.q = qkv,
                              .k = qkv + channels * 2,
                              .v = qkv + channels * 4,
                              .out = out,
                              .q_at = {tokens * 3 * channels, 3 * channels},
                              .kv_at = {tokens * 3 * channels, 3 * channels},
                              .out_at = {tokens * channels, channels},
                              .sequences = 1,
                              .heads = heads,
                              .head = head,
                              .queries = tokens,
                              .keys = tokens};
    if (qkv == NULL || out == NULL) {
        bench_refused(bench, "attention");
    } else {
        for (int i = 0; i < DT_ATTN_TILES; i++) {
            op.tile = dt_attn_tiles[i];
            time_kernel(bench, &op);
        }
        op.kind = DT_ATTENTION_CUDNN;
        time_kernel(bench, &op);
    }
    bench_release(bench, qkv);
    bench_release(bench, out);
}

void bench_attention(struct bench *bench)
{
    if (bench->quick) {
        time_shape(bench, 96, 2, 64);
        return;
    }
    time_shape(bench, 1024, 16, 72);
    time_shape(bench, 4608, 24, 128);
    time_shape(bench, 16384, 24, 128);
    time_shape(bench, 16384, 24, 64);
    time_shape(bench, 16384, 16, 88);
}
