/* SPDX-License-Identifier: MIT */
/* simd_portable_body - what simd_vec_body.h needs: vectors of four floats, available on every
 * 64-bit processor; no fused multiply-add is assumed */
#define LANES            4
#define VEC_FMA(a, b, c) ((a) * (b) + (c))
#define VEC_MAX(a, b)    max_vec(a, b)

#include <stdint.h>

/* C has no ?: for vectors: select by mask. */
static inline float __attribute__((vector_size(16)))
max_vec(float __attribute__((vector_size(16))) a, float __attribute__((vector_size(16))) b)
{
    int32_t __attribute__((vector_size(16))) mask = a > b;
    return (float __attribute__((vector_size(16))))(
        (mask & (int32_t __attribute__((vector_size(16))))a) |
        (~mask & (int32_t __attribute__((vector_size(16))))b));
}
