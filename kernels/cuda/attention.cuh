/* SPDX-License-Identifier: MIT */
/* attention - softmax(q k^T / sqrt(D)) v in bfloat16 by tensor cores, tile by tile
 *
 * A block has TILE_Q queries of one head; keys and values are loaded in tiles of TILE_KV through
 * shared memory, and a warp keeps the scores, maxima, sums and outputs of its TILE_Q / WARPS
 * queries in registers (Milakov & Gimelshein 2018; Dao 2023, FlashAttention-2). Fragments are those
 * of dt_mma_bf16: a lane has rows `group` and `group + 8` of each 16.
 *
 * STAGES 1: one buffer for keys and one for values, each filled while the other is used. STAGES
 * 2: the next tile of both is loaded during the whole of this one, into buffers of its own, with
 * one barrier per tile.
 *
 * Rows in shared memory are 16 bytes longer than their channels: eight consecutive rows then begin
 * in eight different groups of four banks, so ldmatrix and stores have no bank conflicts. Channels
 * are padded to a multiple of 16 by zeros.
 *
 * DT_ATTENTION_INSTANCE defines the kernel of a row of model/tiles_cuda.def and a head dimension.
 */
#ifndef DT_KERNELS_CUDA_ATTENTION_CUH
#define DT_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda/attention_shape.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

#include <math.h>

/* Registers of a lane. In a 16 x 8 block elements 0, 1 belong to row `group`, 2,
 * 3 to row `group + 8`. */
template <class SHAPE> struct dt_attention_lane {
    float scores[SHAPE::rows][SHAPE::keys][4];
    uint32_t weights[SHAPE::rows][SHAPE::keys / 2][4]; /* exp of the scores, in mma's layout */
    float out[SHAPE::rows][SHAPE::outs][4];
    float top[SHAPE::rows][2]; /* running maximum times scale log2(e) */
    float sum[SHAPE::rows][2]; /* sums of this lane's columns only */
    uint32_t queries[SHAPE::hold ? SHAPE::rows : 1][SHAPE::hold ? SHAPE::steps : 1][4];
    uint32_t q_row, k_row,
        v_row; /* where this lane's row of ldmatrix begins, keys and values from their tile's beginning */
};

/* Copies the last `chunks` pieces of 16 bytes of each row, beyond its multiples of 128 bytes, with
 * one thread per piece. */
template <int COUNT, int CHUNKS, class SHAPE>
DT_INLINE void dt_attention_fetch_left(uint32_t to, const char *from, int64_t stride, int there)
{
    constexpr int lanes = CHUNKS > 2 ? 4 : CHUNKS, step = SHAPE::threads / lanes;
    int row = threadIdx.x / lanes, chunk = threadIdx.x % lanes;
    if (chunk >= CHUNKS)
        return;
    from += row * stride + 16 * chunk;
    to += row * SHAPE::row_bytes + 16 * chunk;
#pragma unroll
    for (int i = 0; i < COUNT; i += step, from += step * stride)
        if (COUNT % step == 0 || row + i < COUNT)
            dt_copy_async(to + i * SHAPE::row_bytes, from, row + i < there);
}

/* Starts the copy of COUNT rows of a head, zeros from row `there` on: 128 bytes of a row by 8
 * threads. from: where the first row begins; stride in bytes. */
template <int COUNT, class SHAPE>
DT_INLINE void dt_attention_fetch(uint32_t to, const char *from, int64_t stride, int there)
{
    constexpr int step = SHAPE::threads / 8, chunks = SHAPE::head / 8, left = chunks % 8;
    int row = threadIdx.x / 8, chunk = threadIdx.x % 8;
    const char *at = from + row * stride + 16 * chunk;
    uint32_t into = to + row * SHAPE::row_bytes + 16 * chunk;
    there -= row;
#pragma unroll
    for (int i = 0; i < COUNT; i += step, at += step * stride)
#pragma unroll
        for (int first = 0; first + 8 <= chunks; first += 8)
            dt_copy_async(into + i * SHAPE::row_bytes + 16 * first, at + 16 * first, i < there);
    if constexpr (left > 0)
        dt_attention_fetch_left<COUNT, left, SHAPE>(
            to + 16 * (chunks - left), from + 16 * (chunks - left), stride, there + row);
}

/* scores = queries keys^T. Keys are stored [key, channel], which is the column order of
 * mma's second operand. */
template <class SHAPE>
DT_INLINE void dt_attention_scores(dt_attention_lane<SHAPE> &lane, uint32_t tile)
{
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++)
#pragma unroll
        for (int key = 0; key < SHAPE::keys; key++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                lane.scores[row][key][i] = 0.0f;
#pragma unroll SHAPE::together
    for (int step = 0; step < SHAPE::steps; step++) {
        uint32_t a[SHAPE::rows][4], b[4];
#pragma unroll
        for (int row = 0; row < SHAPE::rows; row++)
            if (SHAPE::hold)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    a[row][i] = lane.queries[SHAPE::hold ? row : 0][SHAPE::hold ? step : 0][i];
            else
                dt_load_matrices(a[row], lane.q_row + row * 16 * SHAPE::row_bytes + step * 32);
#pragma unroll
        for (int key = 0; key < SHAPE::keys; key += 2) {
            dt_load_matrices(b, tile + lane.k_row + key * 8 * SHAPE::row_bytes + step * 32);
#pragma unroll
            for (int row = 0; row < SHAPE::rows; row++) {
                dt_mma_bf16(lane.scores[row][key], a[row], b);
                dt_mma_bf16(lane.scores[row][key + 1], a[row], b + 2);
            }
        }
    }
}

/* Masks the scores of keys beyond the end. */
template <class SHAPE> DT_INLINE void dt_attention_mask(dt_attention_lane<SHAPE> &lane, int there)
{
    int left = there - threadIdx.x % 4 * 2;
#pragma unroll
    for (int key = 0; key < SHAPE::keys; key++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (key * 8 + i % 2 >= left)
#pragma unroll
                for (int row = 0; row < SHAPE::rows; row++)
                    lane.scores[row][key][i] = -INFINITY;
}

/* Scores become exp(scale (score - maximum)), for each half of the 16 rows; earlier sums and
 * outputs are rescaled to the new maximum. log2_scale: scale log2(e), so that one FMA and one exp2
 * suffice. Every tile has a key, so the maximum is finite. */
template <class SHAPE>
DT_INLINE void dt_attention_soften(dt_attention_lane<SHAPE> &lane, float log2_scale)
{
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = -INFINITY;
#pragma unroll
            for (int key = 0; key < SHAPE::keys; key++)
                top = fmaxf(top, fmaxf(lane.scores[row][key][2 * half],
                                       lane.scores[row][key][2 * half + 1]));
            top = fmaxf(top, dt_shuffle_xor(top, 1));
            top = fmaxf(top, dt_shuffle_xor(top, 2));
            top = fmaxf(top * log2_scale, lane.top[row][half]);
            float decay = dt_exp2(lane.top[row][half] - top), sum = lane.sum[row][half] * decay;
            lane.top[row][half] = top;
#pragma unroll
            for (int key = 0; key < SHAPE::keys; key++) {
                const float *score = &lane.scores[row][key][2 * half];
                float p0 = dt_exp2(fmaf(score[0], log2_scale, -top)),
                      p1 = dt_exp2(fmaf(score[1], log2_scale, -top));
                sum += p0 + p1;
                lane.weights[row][key / 2][key % 2 * 2 + half] = dt_pack_bf16(p0, p1);
            }
            lane.sum[row][half] = sum;
#pragma unroll
            for (int out = 0; out < SHAPE::outs; out++) {
                lane.out[row][out][2 * half] *= decay;
                lane.out[row][out][2 * half + 1] *= decay;
            }
        }
}

/* out += scores values. */
template <class SHAPE>
DT_INLINE void dt_attention_values(dt_attention_lane<SHAPE> &lane, uint32_t tile)
{
#pragma unroll
    for (int key = 0; key < SHAPE::keys; key += 2) {
        uint32_t b[4];
#pragma unroll
        for (int out = 0; out < SHAPE::outs; out += 2) {
            dt_load_matrices_transposed(b,
                                        tile + lane.v_row + key * 8 * SHAPE::row_bytes + out * 16);
#pragma unroll
            for (int row = 0; row < SHAPE::rows; row++) {
                const uint32_t *a = lane.weights[row][key / 2];
                dt_mma_bf16(lane.out[row][out], a, b);
                if (out + 1 < SHAPE::outs)
                    dt_mma_bf16(lane.out[row][out + 1], a, b + 2);
            }
        }
    }
}

/* Initialises: queries in shared memory, or in registers where they are held; no keys yet.
 * Ends before a barrier. */
template <class SHAPE>
DT_INLINE void dt_attention_begin(dt_attention_lane<SHAPE> &lane, uint32_t memory, const char *q,
                                  int64_t stride, int there)
{
    int id = threadIdx.x % 32, first = threadIdx.x / 32 * SHAPE::rows * 16;
    lane.q_row = memory + SHAPE::q_at + (first + id % 16) * SHAPE::row_bytes + id / 16 * 16;
    lane.k_row = (id / 16 * 8 + id % 8) * SHAPE::row_bytes + id / 8 % 2 * 16;
    lane.v_row = id % 16 * SHAPE::row_bytes + id / 16 * 16;
    if (SHAPE::padded > SHAPE::head)
        for (int row = threadIdx.x; row < SHAPE::shared_bytes / SHAPE::row_bytes;
             row += SHAPE::threads)
            dt_zero_shared16(memory + row * SHAPE::row_bytes + 2 * SHAPE::head);
    dt_attention_fetch<SHAPE::tile_q, SHAPE>(memory + SHAPE::q_at, q, stride, there);
    dt_copy_commit();
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++) {
        lane.top[row][0] = lane.top[row][1] = -INFINITY;
        lane.sum[row][0] = lane.sum[row][1] = 0.0f;
#pragma unroll
        for (int out = 0; out < SHAPE::outs; out++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                lane.out[row][out][i] = 0.0f;
    }
    if (!SHAPE::hold)
        return;
    dt_copy_wait<0>();
    __syncthreads();
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++)
#pragma unroll
        for (int step = 0; step < SHAPE::steps; step++)
            dt_load_matrices(lane.queries[SHAPE::hold ? row : 0][SHAPE::hold ? step : 0],
                             lane.q_row + row * 16 * SHAPE::row_bytes + step * 32);
    __syncthreads();
}

/* Writes outputs divided by sums to shared memory, in place of the warp's queries, so that rows can
 * be stored in pieces of 16 bytes. */
template <class SHAPE>
DT_INLINE void dt_attention_end(dt_attention_lane<SHAPE> &lane, uint32_t memory, uint16_t *to,
                                int64_t stride, int there)
{
    int id = threadIdx.x % 32, first = threadIdx.x / 32 * SHAPE::rows * 16;
    uint32_t own = memory + SHAPE::q_at + first * SHAPE::row_bytes;
    __syncthreads();
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = lane.sum[row][half], inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
            uint32_t at = own + (row * 16 + half * 8 + id / 4) * SHAPE::row_bytes + id % 4 * 4;
#pragma unroll
            for (int out = 0; out < SHAPE::outs; out++)
                dt_store_shared4(at + out * 16,
                                 dt_pack_bf16(lane.out[row][out][2 * half] * inverse,
                                              lane.out[row][out][2 * half + 1] * inverse));
        }
    dt_warp_sync();
    for (int i = id; i < SHAPE::rows * 16 * SHAPE::outs; i += 32) {
        int row = i / SHAPE::outs, chunk = i % SHAPE::outs;
        if (first + row < there)
            dt_store16(to + (first + row) * stride + 8 * chunk,
                       dt_load_shared16(own + row * SHAPE::row_bytes + 16 * chunk));
    }
}

/* Completes the sums of rows, and writes lse[there] if requested. */
template <class SHAPE>
DT_INLINE void dt_attention_sums(dt_attention_lane<SHAPE> &lane, float *lse, int there)
{
    int id = threadIdx.x % 32, first = threadIdx.x / 32 * SHAPE::rows * 16;
#pragma unroll
    for (int row = 0; row < SHAPE::rows; row++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = lane.sum[row][half];
            sum += dt_shuffle_xor(sum, 1);
            sum += dt_shuffle_xor(sum, 2);
            lane.sum[row][half] = sum;
            int at = first + row * 16 + half * 8 + id / 4;
            if (lse != NULL && id % 4 == 0 && at < there)
                lse[at] = lane.top[row][half] * 0.693147181f + logf(sum);
        }
}

/* blockIdx.x is the tile of queries, y the head, z the sequence; blocks that read the
 * same keys run together. */
template <class SHAPE>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks)
    dt_attention_kernel(const struct dt_attention op, float log2_scale)
{
    constexpr int stages = SHAPE::stages, tile_kv = SHAPE::tile_kv;
    dt_attention_lane<SHAPE> lane;
    uint32_t memory = dt_shared_address(dt_shared_memory());
    int first = blockIdx.x * SHAPE::tile_q;
    int64_t column = (int64_t)blockIdx.y * SHAPE::head;
    const char *q =
        (const char *)op.q + 2 * (blockIdx.z * op.q_at.sequence + first * op.q_at.row + column);
    const char *k = (const char *)op.k + 2 * (blockIdx.z * op.kv_at.sequence + column);
    int64_t stride = 2 * op.kv_at.row, apart = (const char *)op.v - (const char *)op.k;

    dt_attention_begin(lane, memory, q, 2 * op.q_at.row, op.queries - first);
    dt_attention_fetch<tile_kv, SHAPE>(memory, k, stride, op.keys);
    if (stages == 2)
        dt_attention_fetch<tile_kv, SHAPE>(memory + SHAPE::tile_bytes, k + apart, stride, op.keys);
    dt_copy_commit();
    uint32_t keys = memory;
    for (int there = op.keys; there > 0; there -= tile_kv) {
        uint32_t values = keys + SHAPE::tile_bytes;
        uint32_t next = stages == 2 ? 2 * memory + 2 * SHAPE::tile_bytes - keys : memory;
        dt_copy_wait<0>();
        __syncthreads();
        if (stages == 1)
            dt_attention_fetch<tile_kv, SHAPE>(values, k + apart, stride, there);
        k += tile_kv * stride;
        if (stages == 2 && there > tile_kv) {
            dt_attention_fetch<tile_kv, SHAPE>(next, k, stride, there - tile_kv);
            dt_attention_fetch<tile_kv, SHAPE>(next + SHAPE::tile_bytes, k + apart, stride,
                                               there - tile_kv);
        }
        dt_copy_commit();
        dt_attention_scores(lane, keys);
        if (there < tile_kv)
            dt_attention_mask(lane, there);
        if (stages == 1) {
            dt_copy_wait<0>();
            __syncthreads();
            if (there > tile_kv)
                dt_attention_fetch<tile_kv, SHAPE>(next, k, stride, there - tile_kv);
            dt_copy_commit();
        }
        dt_attention_soften(lane, log2_scale);
        dt_attention_values(lane, values);
        keys = next;
    }
    dt_copy_wait<0>();
    float *lse = op.lse;
    if (lse != NULL)
        lse += ((int64_t)blockIdx.z * op.heads + blockIdx.y) * op.queries + first;
    dt_attention_sums(lane, lse, op.queries - first);
    uint16_t *out =
        (uint16_t *)op.out + blockIdx.z * op.out_at.sequence + first * op.out_at.row + column;
    dt_attention_end(lane, memory, out, op.out_at.row, op.queries - first);
}

template <class SHAPE> static int dt_attention_start(const struct dt_attention *op, void *stream)
{
    dim3 grid((unsigned)((op->queries + SHAPE::tile_q - 1) / SHAPE::tile_q), (unsigned)op->heads,
              (unsigned)op->sequences);
    return DT_LAUNCH(dt_attention_kernel<SHAPE>, grid, SHAPE::threads, SHAPE::shared_bytes, stream,
                     *op, 1.44269504f / sqrtf((float)SHAPE::head));
}

template <class SHAPE> constexpr struct dt_attention_build dt_attention_build_of()
{
    struct dt_attention_build build = {
        SHAPE::tile_q, SHAPE::tile_kv,      SHAPE::stages, SHAPE::threads / 32,
        SHAPE::head,   SHAPE::shared_bytes, NULL,          NULL};
    if constexpr (SHAPE::fits) {
        build.kernel = dt_attention_kernel<SHAPE>;
        build.start = dt_attention_start<SHAPE>;
    }
    return build;
}

#define DT_ATTENTION_JOIN(q, kv, stages, warps, head)                                              \
    dt_attention_##q##_##kv##_##stages##_##warps##_##head
#define DT_ATTENTION_NAME(q, kv, stages, warps, head) DT_ATTENTION_JOIN(q, kv, stages, warps, head)

#define DT_ATTENTION_INSTANCE(q, kv, stages, warps, head)                                          \
    extern const struct dt_attention_build DT_ATTENTION_NAME(q, kv, stages, warps, head);          \
    constexpr struct dt_attention_build DT_ATTENTION_NAME(q, kv, stages, warps, head) =            \
        dt_attention_build_of<dt_attention_shape<q, kv, stages, warps, head>>();

#endif
