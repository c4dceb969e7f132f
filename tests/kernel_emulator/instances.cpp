// SPDX-License-Identifier: MIT
// The attention kernels of one head dimension, EMU_HEAD, in one file: the build for GPUs makes a file of each.
#include "kernels/cuda/attention.cuh"

#define NAME(q, kv, stages, warps) DT_ATTENTION_NAME(q, kv, stages, warps, EMU_HEAD)
#define DT_ATTN_TILE(q, kv, stages, warps)                                                         \
    extern const struct dt_attention_build NAME(q, kv, stages, warps);                             \
    const struct dt_attention_build NAME(q, kv, stages, warps) =                                   \
        dt_attention_build_of<dt_attention_shape<q, kv, stages, warps, EMU_HEAD>>();
#include "model/attn_tiles.def"
