/* SPDX-License-Identifier: MIT */
/* attention_shape - resources of an instance of attention.cuh: registers, shared memory,
 * blocks per multiprocessor
 *
 * dt_attn_tile_bytes (model/plan.h) computes the same shared memory.
 */
#ifndef DT_KERNELS_CUDA_ATTENTION_SHAPE_CUH
#define DT_KERNELS_CUDA_ATTENTION_SHAPE_CUH

#include "kernels/compute.h"

#include <stdint.h>

/* A row of the table in attention.cu. kernel is NULL where the tile does not fit the registers. */
struct dt_attention_build {
    int tile_q, tile_kv, stages, warps, head;
    int shared_bytes;
    void (*kernel)(struct dt_attention op, float log2_scale);
    int (*start)(const struct dt_attention *op, void *stream);
};

/* Limit of a lane's registers for scores, outputs and queries; queries are kept in
 * registers where they fit. */
#define DT_ATTENTION_TILE_REGISTERS 192
#define DT_ATTENTION_HOLD_REGISTERS 176

template <int TILE_Q, int TILE_KV, int STAGES, int WARPS, int HEAD> struct dt_attention_shape {
    static constexpr int tile_q = TILE_Q, tile_kv = TILE_KV, stages = STAGES, head = HEAD;
    static constexpr int threads = 32 * WARPS;
    static constexpr int padded = (HEAD + 15) / 16 * 16;
    static constexpr int row_bytes = 2 * padded + 16;
    static constexpr int tile_bytes = TILE_KV * row_bytes;

    /* Sizes for a warp, in blocks of dt_mma_bf16: 16 rows; 8 columns of scores and of
     * outputs; 16 channels. */
    static constexpr int rows = TILE_Q / WARPS / 16;
    static constexpr int keys = TILE_KV / 8, outs = HEAD / 8, steps = padded / 16;
    static constexpr bool fits = rows * 4 * (keys + outs) <= DT_ATTENTION_TILE_REGISTERS;
    static constexpr bool hold = rows * 4 * (keys + outs + steps) <= DT_ATTENTION_HOLD_REGISTERS;

    /* Unrolled steps of channels: with more, the compiler starts so many loads that it
     * runs out of registers. */
    static constexpr int together = hold || steps < 8 ? steps : steps / 2;

    /* Blocks that fit the 65536 registers of a multiprocessor when a lane needs `spare` more: the
     * smallest value that compiles without spills (CUDA 13.0, sm_80 and sm_90). */
    static constexpr int spare = rows == 2 || stages * head == 256 ? 44 : stages == 2 ? 28 : 36;
    static constexpr int registers =
        (rows * 4 * (keys + outs + (hold ? steps : 0)) + spare + 7) / 8 * 8;
    static constexpr int blocks = registers < 256 ? 65536 / (threads * registers) : 1;

    /* Queries in registers are loaded through the buffers of keys and values. */
    static constexpr int kv_bytes = 2 * STAGES * tile_bytes, q_bytes = TILE_Q * row_bytes;
    static constexpr int q_at = hold ? 0 : kv_bytes;
    static constexpr int shared_bytes = q_at + q_bytes > kv_bytes ? q_at + q_bytes : kv_bytes;

    static_assert(TILE_Q % (16 * WARPS) == 0 && TILE_KV % 16 == 0 && HEAD % 8 == 0,
                  "blocks of mma");
    static_assert(STAGES == 1 || STAGES == 2, "buffers");
};

#endif
