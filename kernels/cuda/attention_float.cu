/* SPDX-License-Identifier: MIT */
/* Online softmax over tiles of 32 keys (Milakov & Gimelshein 2018) for 32 queries a block.
 * Eight lanes share a query: each computes every eighth key of its scores and every eighth
 * channel of its output. Rows in shared memory are an odd number of words apart, so that eight
 * of them are in different banks. */
#include "kernels/cuda/attention_float.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

#define TILE    32
#define THREADS 256
#define MOST    256 /* channels of a head */

/* Copies a tile of rows to shared memory; rows from `there` on become zeros. */
static __device__ void fetch_row(float *to, const float *from, int64_t stride, int there, int head)
{
    for (int row = threadIdx.x / 32; row < TILE; row += THREADS / 32)
        for (int d = threadIdx.x % 32; d < head; d += 32)
            to[row * (head + 1) + d] = row < there ? from[row * stride + d] : 0.0f;
}

static __device__ float dot_rows(const float *x, const float *y, int head)
{
    float sum = 0.0f;
    for (int d = 0; d < head; d++)
        sum = fmaf(x[d], y[d], sum);
    return sum;
}

/* Maximum over the eight lanes of a query. */
static __device__ float largest_of(float x)
{
    for (int mask = 1; mask < 8; mask *= 2)
        x = fmaxf(x, dt_shuffle_xor(x, mask));
    return x;
}

static __device__ float total_of(float x)
{
    for (int mask = 1; mask < 8; mask *= 2)
        x += dt_shuffle_xor(x, mask);
    return x;
}

/* Weights of a tile's keys for one query, to weights[TILE]; returns the factor for
 * earlier sums and outputs. */
static __device__ float soften_scores(const float *query, const float *keys, int there, int head,
                                      float *weights, float *top, float *sum)
{
    float scores[TILE / 8], most = *top, scale = 1.0f / sqrtf((float)head);
    int part = threadIdx.x % 8;
    for (int i = 0; i < TILE / 8; i++) {
        int key = part + 8 * i;
        scores[i] =
            key < there ? dot_rows(query, keys + key * (head + 1), head) * scale : -INFINITY;
        most = fmaxf(most, scores[i]);
    }
    most = largest_of(most);
    float decay = expf(*top - most);
    *sum *= decay;
    *top = most;
    for (int i = 0; i < TILE / 8; i++) {
        float weight = expf(scores[i] - most);
        weights[part + 8 * i] = weight;
        *sum += weight;
    }
    return decay;
}

/* CHANNELS: channels per lane. blockIdx.x is the tile of queries, y the head, z the sequence. */
template <int CHANNELS>
static __global__ void __launch_bounds__(THREADS, 2) attend_keys(struct dt_attention op)
{
    float *queries = (float *)dt_shared_memory(), *rows = queries + TILE * (op.head + 1);
    float *weights = rows + TILE * (op.head + 1) + threadIdx.x / 8 * (TILE + 1);
    int first = blockIdx.x * TILE, own = threadIdx.x / 8, part = threadIdx.x % 8;
    int64_t column = (int64_t)blockIdx.y * op.head;
    const float *q =
        (const float *)op.q + blockIdx.z * op.q_at.sequence + first * op.q_at.row + column;
    const float *k = (const float *)op.k + blockIdx.z * op.kv_at.sequence + column;
    const float *v = (const float *)op.v + blockIdx.z * op.kv_at.sequence + column;
    float out[CHANNELS] = {}, top = -INFINITY, sum = 0.0f;

    fetch_row(queries, q, op.q_at.row, op.queries - first, op.head);
    for (int key = 0; key < op.keys; key += TILE) {
        int there = op.keys - key;
        __syncthreads();
        fetch_row(rows, k + key * op.kv_at.row, op.kv_at.row, there, op.head);
        __syncthreads();
        float decay =
            soften_scores(queries + own * (op.head + 1), rows, there, op.head, weights, &top, &sum);
        __syncthreads();
        fetch_row(rows, v + key * op.kv_at.row, op.kv_at.row, there, op.head);
        __syncthreads();
        for (int c = 0; c < CHANNELS; c++)
            out[c] *= decay;
        for (int j = 0; j < TILE; j++)
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                if (part + 8 * c < op.head)
                    out[c] = fmaf(weights[j], rows[j * (op.head + 1) + part + 8 * c], out[c]);
    }
    sum = total_of(sum);
    if (first + own >= op.queries)
        return;
    float *to =
        (float *)op.out + blockIdx.z * op.out_at.sequence + (first + own) * op.out_at.row + column;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        if (part + 8 * c < op.head)
            to[part + 8 * c] = sum > 0.0f ? out[c] / sum : 0.0f;
    if (op.lse != NULL && part == 0)
        op.lse[((int64_t)blockIdx.z * op.heads + blockIdx.y) * op.queries + first + own] =
            top + logf(sum);
}

static int shared_bytes(const struct dt_attention *op)
{
    return (int)sizeof(float) * TILE * (2 * (op->head + 1) + TILE + 1);
}

static void (*attention_rows(const struct dt_attention *op))(struct dt_attention)
{
    return op->head <= 64    ? attend_keys<8>
           : op->head <= 128 ? attend_keys<16>
                             : attend_keys<MOST / 8>;
}

int dt_attention_float_ready(const struct dt_attention *op)
{
    if (op->head > MOST)
        return -1;
    struct dt_attention most = *op;
    most.head = op->head <= 64 ? 64 : op->head <= 128 ? 128 : MOST;
    return (int)cudaFuncSetAttribute((const void *)attention_rows(op),
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shared_bytes(&most));
}

int dt_attention_float(const struct dt_attention *op, void *stream)
{
    if (op->head > MOST)
        return (int)cudaErrorInvalidValue;
    dim3 grid(dt_blocks(op->queries, TILE), (unsigned)op->heads, (unsigned)op->sequences);
    return DT_LAUNCH(attention_rows(op), grid, THREADS, shared_bytes(op), stream, *op);
}
