/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/simd.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define LANES            16
#define ROWS             8
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define VEC_MAX(a, b)    _mm512_max_ps(a, b)
#define SIMD             dt_simd_avx512
#define SIMD_NAME        "avx512"

#include "kernels/cpu/simd_body.h"
#endif
