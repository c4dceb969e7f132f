// SPDX-License-Identifier: MIT
// The attention kernels of one head dimension, EMU_HEAD, in one file: the build for GPUs makes a file of each.
#include "kernels/cuda/attention.cuh"

#define DT_ATTN_TILE(q, kv, stages, warps) DT_ATTENTION_INSTANCE(q, kv, stages, warps, EMU_HEAD)
#include "model/tiles_cuda.def"
