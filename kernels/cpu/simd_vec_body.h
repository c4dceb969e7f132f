/* SPDX-License-Identifier: MIT */
/* simd_vec_body - vectors of LANES floats, for simd_rows_body.h and simd_attention_body.h
 *
 * The includer defines LANES, VEC_FMA(a, b, c) and VEC_MAX(a, b) (b when either is not a number).
 */
#include "kernels/cpu/simd.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define VEC    float __attribute__((vector_size(LANES * 4)))
#define IVEC   int32_t __attribute__((vector_size(LANES * 4)))
#define INLINE static inline __attribute__((always_inline))

INLINE VEC load(const float *p)
{
    VEC v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, VEC v)
{
    memcpy(p, &v, sizeof v);
}

/* The first n lanes; the rest are zero. */
INLINE VEC load_part(const float *p, int n)
{
    VEC v = {0};
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

INLINE void store_part(float *p, VEC v, int n)
{
    memcpy(p, &v, (size_t)n * sizeof *p);
}

INLINE VEC splat(float x)
{
    VEC zero = {0};
    return zero + x;
}

/* e^x = 2^n e^r with |r| <= ln(2)/2, e^r by the polynomial of Cephes expf (Moshier). n is rounded
 * by adding 1.5 * 2^23, which leaves it in the low bits. */
INLINE VEC exp_vec(VEC x)
{
    const float magic = 12582912.0f;
    x = VEC_MAX(splat(-87.0f), x); /* this order propagates NAN */
    x = -VEC_MAX(splat(-88.0f), -x);
    VEC shifted = VEC_FMA(x, splat(1.44269504088896341f), splat(magic));
    VEC n = shifted - magic;
    VEC r = VEC_FMA(n, splat(-0.693359375f), x);
    r = VEC_FMA(n, splat(2.12194440e-4f), r);
    VEC p = splat(1.9875691500e-4f);
    p = VEC_FMA(p, r, splat(1.3981999507e-3f));
    p = VEC_FMA(p, r, splat(8.3334519073e-3f));
    p = VEC_FMA(p, r, splat(4.1665795894e-2f));
    p = VEC_FMA(p, r, splat(1.6666665459e-1f));
    p = VEC_FMA(p, r, splat(5.0000001201e-1f));
    p = VEC_FMA(p, r * r, r) + 1.0f;
    IVEC bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

INLINE float sum(VEC v)
{
    float lanes[LANES];
    store(lanes, v);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

static void exp_row(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, exp_vec(load(x + i)));
    if (i < n)
        store_part(y + i, exp_vec(load_part(x + i, n - i)), n - i);
}
