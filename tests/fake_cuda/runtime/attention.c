/* SPDX-License-Identifier: MIT */
/* The launchers of attention and of the clock. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include "kernels/cuda/launch.h"

#include <math.h>
#include <stdlib.h>

static const int tiles[][4] = {
#define DT_ATTN_TILE(tile_q, tile_kv, stages, warps) {tile_q, tile_kv, stages, warps},
#include "model/tiles_cuda.def"
#undef DT_ATTN_TILE
};
static const int heads[] = {64, 72, 88, 128};

#define ROWS  (sizeof tiles / sizeof tiles[0])
#define HEADS (sizeof heads / sizeof heads[0])

/* tanh form, as cuBLASLt has it (Hendrycks and Gimpel 2016, section 2) */
float fake_gelu(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

int dt_launch_attention_ready(enum dt_dtype dtype, const struct dt_attention *op)
{
    cudaError_t error = fake_enter(__func__);
    if (error != cudaSuccess)
        return (int)fake_leave(error);
    if (dtype != DT_BFLOAT16)
        return op->head <= 256 ? 0 : -1;
    bool tile = false, head = false;
    for (size_t i = 0; i < ROWS; i++)
        tile = tile || (tiles[i][0] == op->tile.tile_q && tiles[i][1] == op->tile.tile_kv &&
                        tiles[i][2] == op->tile.stages && tiles[i][3] == op->tile.warps);
    for (size_t i = 0; i < HEADS; i++)
        head = head || heads[i] == op->head;
    return tile && head ? 0 : -1;
}

struct launched {
    enum dt_dtype dtype;
    struct dt_attention op;
};

/* One thread's floats, no less than model/layout.c gives the CPU back end. */
static void make_scratch(struct CUstream_st *stream, struct dt_attention *op)
{
    size_t channels = ((size_t)op->head + 7) / 8 * 8,
           queries = ((size_t)op->tile.tile_q + 31) / 32 * 32;
    size_t keys = ((size_t)op->tile.tile_kv + 7) / 8 * 8;
    size_t floats = 2 * queries * (channels + 1) + 48 * keys + 2 * keys * channels + 64;
    if (stream->scratch_floats < floats) {
        free(stream->scratch);
        stream->scratch = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
        stream->scratch_floats = floats;
        if (stream->scratch == NULL)
            abort();
    }
    op->scratch = stream->scratch;
    op->scratch_floats = (int64_t)floats;
    op->poll = NULL;
}

static int64_t reach(const struct dt_strides *at, int sequences, int rows, int64_t width)
{
    return rows > 0 ? (sequences - 1) * at->sequence + (rows - 1) * at->row + width : 0;
}

static cudaError_t attention(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_attention *op = &all.op;
    int64_t width = (int64_t)op->heads * op->head, size = all.dtype == DT_BFLOAT16 ? 2 : 4;
    int64_t kv = reach(&op->kv_at, op->sequences, op->keys, width) * size;
    int64_t q = reach(&op->q_at, op->sequences, op->queries, width) * size;
    int64_t out = reach(&op->out_at, op->sequences, op->queries, width) * size;
    if (!fake_see_field(stream, &op->q, q) || !fake_see_field(stream, &op->k, kv) ||
        !fake_see_field(stream, &op->v, kv) || !fake_see_field(stream, &op->out, out) ||
        !fake_see_field(stream, &op->lse, (int64_t)op->sequences * op->heads * op->queries * 4))
        return cudaErrorIllegalAddress;
    if (op->tile.tile_q <= 0 || op->tile.tile_kv <= 0)
        op->tile.tile_q = op->tile.tile_kv = 64;
    make_scratch(stream, op);
    dt_compute_cpu.attention.run(fake_cpu(stream), all.dtype, op);
    return cudaSuccess;
}

int dt_launch_attention(enum dt_dtype dtype, const struct dt_attention *op, void *stream)
{
    struct launched all = {dtype == DT_BFLOAT16 ? DT_BFLOAT16 : DT_FLOAT32, *op};
    struct fake_task task = {attention, NULL, sizeof all};
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_put(stream, FAKE_KERNEL, &task, &all);
    fake_unlock();
    fake_leave(error);
    return (int)cudaGetLastError();
}

/* Only the names of the instances; the registers of the real ones are in the
 * build folder, from ptxas. */
bool dt_attention_instance(int index, struct dt_attention_instance *out)
{
    if (index < 0 || index >= (int)(ROWS * HEADS))
        return false;
    const int *row = tiles[index / (int)HEADS];
    *out = (struct dt_attention_instance){.tile_q = row[0],
                                          .tile_kv = row[1],
                                          .stages = row[2],
                                          .warps = row[3],
                                          .head = heads[index % (int)HEADS],
                                          .threads = 32 * row[3]};
    return true;
}

static cudaError_t ticks(struct CUstream_st *stream, void *data)
{
    uint64_t *out = fake_see(stream->device, *(uint64_t **)data, 16);
    if (out == NULL)
        return cudaErrorIllegalAddress;
    int64_t now = fake_clock_ns();
    out[0] = (uint64_t)(now / 1000 * 1980 + now % 1000 * 1980 / 1000);
    out[1] = (uint64_t)now;
    return cudaSuccess;
}

int dt_launch_clock(uint64_t *out, void *stream)
{
    struct fake_task task = {ticks, NULL, sizeof out};
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_put(stream, FAKE_KERNEL, &task, &out);
    fake_unlock();
    fake_leave(error);
    return (int)cudaGetLastError();
}
