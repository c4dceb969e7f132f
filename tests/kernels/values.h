/* SPDX-License-Identifier: MIT */
/* values - seeded values, and activations of any data type, for the tests of the vector
 * kernels; after cmocka.h */
#ifndef DT_TESTS_KERNELS_VALUES_H
#define DT_TESTS_KERNELS_VALUES_H

#include "base/rng.h"
#include "model/dtype.h"

#include <stdlib.h>
#include <string.h>

static inline float *seeded(int64_t n, const char *name, float scale)
{
    float *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    dt_rng_fill(x, (size_t)n, 3, dt_rng_stream(name), 0, scale);
    return x;
}

/* Element i of activations, as a float; and activations made of floats (owned by the caller). */
static inline float value(enum dt_dtype dtype, const void *x, int64_t i)
{
    uint32_t bits;
    float wide;
    if (dtype == DT_FLOAT32)
        return ((const float *)x)[i];
    bits = (uint32_t)((const uint16_t *)x)[i] << 16;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* To bfloat16 the value is cut, not rounded: the kernels must take what they get. */
static inline void *activations(enum dt_dtype dtype, const float *x, int64_t n)
{
    char *made = calloc((size_t)n, (size_t)dt_dtype_bytes(dtype));
    assert_non_null(made);
    for (int64_t i = 0; i < n; i++)
        memcpy(made + i * dt_dtype_bytes(dtype),
               (const char *)(x + i) + (dtype == DT_FLOAT32 ? 0 : 2),
               (size_t)dt_dtype_bytes(dtype));
    return made;
}

#endif
