/* SPDX-License-Identifier: MIT */
/* rows - shared by the row kernels: loading activations of either type as float32,
 * and sums over a block
 *
 * Activations are T: float, or uint16_t for bfloat16. These files are compiled without
 * contraction of a b + c, so that their formulas are those of kernels/cpu: fmaf is used where a
 * single rounding is wanted.
 */
#ifndef DT_KERNELS_CUDA_ROWS_CUH
#define DT_KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

#define DT_WARP 32

DT_INLINE float dt_widen(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

DT_INLINE float dt_widen(float x)
{
    return x;
}

DT_INLINE void dt_narrow_to(uint16_t *to, float x)
{
    *to = (uint16_t)(dt_pack_bf16(x, 0.0f) & 0xffffu);
}

DT_INLINE void dt_narrow_to(float *to, float x)
{
    *to = x;
}

/* Eight consecutive elements at a multiple of 16 bytes. */
DT_INLINE void dt_load8(float x[8], const float *from)
{
    uint4 a = dt_load16(from), b = dt_load16(from + 4);
    x[0] = __uint_as_float(a.x), x[1] = __uint_as_float(a.y);
    x[2] = __uint_as_float(a.z), x[3] = __uint_as_float(a.w);
    x[4] = __uint_as_float(b.x), x[5] = __uint_as_float(b.y);
    x[6] = __uint_as_float(b.z), x[7] = __uint_as_float(b.w);
}

DT_INLINE void dt_load8(float x[8], const uint16_t *from)
{
    uint4 a = dt_load16(from);
    x[0] = __uint_as_float(a.x << 16), x[1] = __uint_as_float(a.x & 0xffff0000u);
    x[2] = __uint_as_float(a.y << 16), x[3] = __uint_as_float(a.y & 0xffff0000u);
    x[4] = __uint_as_float(a.z << 16), x[5] = __uint_as_float(a.z & 0xffff0000u);
    x[6] = __uint_as_float(a.w << 16), x[7] = __uint_as_float(a.w & 0xffff0000u);
}

DT_INLINE void dt_store8(float *to, const float x[8])
{
    uint4 a = {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
               __float_as_uint(x[3])};
    uint4 b = {__float_as_uint(x[4]), __float_as_uint(x[5]), __float_as_uint(x[6]),
               __float_as_uint(x[7])};
    dt_store16(to, a);
    dt_store16(to + 4, b);
}

DT_INLINE void dt_store8(uint16_t *to, const float x[8])
{
    uint4 a = {dt_pack_bf16(x[0], x[1]), dt_pack_bf16(x[2], x[3]), dt_pack_bf16(x[4], x[5]),
               dt_pack_bf16(x[6], x[7])};
    dt_store16(to, a);
}

/* The sum over the block in every thread, in an order that depends only on the block's size. parts:
 * one shared float per warp, not in use by any thread. */
DT_INLINE float dt_block_sum(float x, float *parts)
{
    for (int mask = DT_WARP / 2; mask > 0; mask /= 2)
        x += dt_shuffle_xor(x, mask);
    if (threadIdx.x % DT_WARP == 0)
        parts[threadIdx.x / DT_WARP] = x;
    __syncthreads();
    float sum = parts[0];
    for (int warp = 1; warp < (int)(blockDim.x / DT_WARP); warp++)
        sum += parts[warp];
    return sum;
}

/* True when the pointer is a multiple of 16 bytes, or NULL. */
static inline bool dt_aligned16(const void *pointer)
{
    return (uintptr_t)pointer % 16 == 0;
}

#endif
