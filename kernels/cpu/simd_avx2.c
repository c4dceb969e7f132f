/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/simd.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#define LANES            8
#define ROWS             4
#define VEC_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define VEC_MAX(a, b)    _mm256_max_ps(a, b)
#define SIMD             dt_simd_avx2
#define SIMD_NAME        "avx2"

#include "kernels/cpu/simd_body.h"
#endif
