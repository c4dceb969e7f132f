/* SPDX-License-Identifier: MIT */
/* Attention: every tile of model/tiles_cuda.def and cuDNN's, 4 S^2 D operations a head, at the head
 * dimensions that are built. */
#include "bench/gpu/bench.h"

#include "model/plan.h"

#include <stdio.h>

/* Several sets of queries, keys, values and outputs, one behind the other. */
struct operands {
    struct dt_attention op; /* the call on the first set */
    enum dt_dtype dtype;
    char *qkv, *out;
    int64_t qkv_bytes, out_bytes; /* bytes of a set */
    int sets;
};

static void call(struct bench *bench, void *arg, int set)
{
    const struct operands *operands = arg;
    struct dt_attention op = operands->op;
    op.q = (const char *)op.q + set * operands->qkv_bytes;
    op.k = (const char *)op.k + set * operands->qkv_bytes;
    op.v = (const char *)op.v + set * operands->qkv_bytes;
    op.out = (char *)op.out + set * operands->out_bytes;
    bench->device->compute->attention.run(bench->device, operands->dtype, &op);
}

static void time_kernel(struct bench *bench, struct operands *operands)
{
    const struct dt_attention *op = &operands->op;
    const struct dt_compute *compute = bench->device->compute;
    char kernel[64], what[128];
    snprintf(kernel, sizeof kernel, "%s", dt_attention_texts[op->kind]);
    if (op->kind == DT_ATTENTION_OWN && operands->dtype == DT_BFLOAT16)
        snprintf(kernel, sizeof kernel, "own %dx%d stages %d warps %d", op->tile.tile_q,
                 op->tile.tile_kv, op->tile.stages, op->tile.warps);
    char sequences[24] = "";
    if (op->sequences > 1)
        snprintf(sequences, sizeof sequences, "%d x ", op->sequences);
    snprintf(what, sizeof what, "attention %s%sS=%d D=%d %d heads, %s",
             operands->dtype == DT_FLOAT32 ? "float32 " : "", sequences, op->queries, op->head,
             op->heads, kernel);
    if (compute->attention.ready(bench->device, operands->dtype, op) != DT_OK) {
        printf("%-58s not run: %s\n", what, dt_message());
        return;
    }
    double amount = 4.0 * op->sequences * op->heads * op->head * (double)op->queries * op->keys;
    bench_time(bench, &(struct bench_row){what, "TFLOP/s", amount, call, operands, operands->sets});
}

static void time_kernels(struct bench *bench, struct operands *operands)
{
    bool tiled = operands->dtype == DT_BFLOAT16; /* the float32 kernel has no tiles */
    for (int i = 0; i < (tiled ? DT_ATTN_TILES : 1); i++) {
        operands->op.tile = dt_attn_tiles[i];
        time_kernel(bench, operands);
    }
    for (int kind = DT_ATTENTION_OWN + 1; tiled && kind < DT_ATTENTIONS; kind++) {
        operands->op.kind = (enum dt_attention_kind)kind;
        time_kernel(bench, operands);
    }
}

struct shape {
    enum dt_dtype dtype;
    int sequences, tokens, heads, head;
};

static void time_shape(struct bench *bench, const struct shape *shape)
{
    const int64_t channels = (int64_t)shape->heads * shape->head, rows = shape->tokens,
                  element = dt_dtype_bytes(shape->dtype);
    struct operands operands = {.dtype = shape->dtype,
                                .qkv_bytes = shape->sequences * rows * 3 * channels * element,
                                .out_bytes = shape->sequences * rows * channels * element};
    operands.sets = bench_sets(bench, operands.qkv_bytes + operands.out_bytes);
    operands.qkv = bench_memory(bench, operands.sets * operands.qkv_bytes);
    operands.out = bench_memory(bench, operands.sets * operands.out_bytes);
    operands.op = (struct dt_attention){.q = operands.qkv,
                                        .k = operands.qkv + channels * element,
                                        .v = operands.qkv + channels * 2 * element,
                                        .out = operands.out,
                                        .q_at = {rows * 3 * channels, 3 * channels},
                                        .kv_at = {rows * 3 * channels, 3 * channels},
                                        .out_at = {rows * channels, channels},
                                        .sequences = shape->sequences,
                                        .heads = shape->heads,
                                        .head = shape->head,
                                        .queries = shape->tokens,
                                        .keys = shape->tokens};
    if (operands.qkv == NULL || operands.out == NULL)
        bench_refused(bench, "attention");
    else
        time_kernels(bench, &operands);
    bench_release(bench, operands.qkv);
    bench_release(bench, operands.out);
}

enum { SHORT = 5 };

void bench_attention(struct bench *bench)
{
    static const struct shape large[] = {
        {DT_BFLOAT16, 1, 1024, 16, 72},
        {DT_BFLOAT16, 1, 4608, 24, 128},
        {DT_BFLOAT16, 1, 16384, 24, 64},
        {DT_BFLOAT16, 1, 16384, 16, 88},
        {DT_FLOAT32, 1, 1024, 16, 72},
        /* Guided steps of DiT-S/2 and DiT-XL/2: at 256 px, at 512 px with one and
         * eight images, at 1024 px. */
        {DT_BFLOAT16, 2, 256, 6, 64},
        {DT_BFLOAT16, 2, 256, 16, 72},
        {DT_BFLOAT16, 2, 1024, 16, 72},
        {DT_BFLOAT16, 16, 1024, 16, 72},
        {DT_BFLOAT16, 2, 4096, 16, 72},
        {DT_BFLOAT16, 1, 16384, 24, 128},
    };
    static const struct shape small[] = {{DT_BFLOAT16, 2, 96, 2, 64}, {DT_FLOAT32, 1, 96, 2, 64}};
    size_t n = bench->quick ? sizeof small / sizeof small[0] : sizeof large / sizeof large[0];
    for (size_t i = 0; i < n && (i < SHORT || !bench->first_only); i++)
        time_shape(bench, bench->quick ? &small[i] : &large[i]);
}
