/* SPDX-License-Identifier: MIT */
/* fa3 - attention by FlashAttention-3 (Shah et al. 2024; Dao-AILab/flash-attention, hopper/,
 * BSD-3-Clause), where CMake has its checkout
 *
 * The kernels are templates over CUTLASS that take a struct of pointers and strides; each head
 * dimension they are compiled for is a file of the build (instance.cuh). Nothing of it is in this
 * tree. Only GPUs of capability 9.0 run it.
 */
#ifndef DT_KERNELS_CUDA_FA3_FA3_H
#define DT_KERNELS_CUDA_FA3_FA3_H

#include "kernels/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The launcher of a compiled head dimension: op in bfloat16, its head at most that; lse [sequences,
 * heads, queries] is always written. Returns the CUDA error as an int. */
typedef int dt_fa3_launch(const struct dt_attention *op, float *lse, void *stream);
#define DT_FA3_HEAD(head) dt_fa3_launch dt_fa3_launch_##head;
#include "kernels/cuda/fa3/heads.def"

#ifdef __cplusplus
}
#endif
#endif
