/* SPDX-License-Identifier: MIT */
/* simd - the vector kernels, compiled once per instruction set and data type and chosen at run time
 *
 * To add an instruction set or a data type: docs/adding.md, "CPU kernels".
 */
#ifndef DT_KERNELS_CPU_SIMD_H
#define DT_KERNELS_CPU_SIMD_H

#include "kernels/compute.h"

#include <stdbool.h>

/* One token of struct dt_modulate. */
struct dt_row {
    float *x;
    const void *branch;
    const float *gate, *shift, *scale;
    void *y;
    int channels;
};

struct dt_simd {
    const char *name;
    enum dt_dtype dtype; /* type of activations */
    /* Query rows first .. first+count-1 (count <= tile_q) of one sequence and head. */
    void (*attention)(const struct dt_attention *op, int sequence, int head, int first,
                      float *scratch);
    void (*exp)(const float *x, float *y,
                int n); /* relative error of a few ulp for -87 <= x <= 88, clamped beyond */
    void (*activate)(float *y, const float *bias, int n,
                     enum dt_activation act); /* y = act(y + bias) */
    void (*modulate)(const struct dt_row *row);
    void (*residual)(const struct dt_row *row); /* x += gate branch, then modulate */
    void (*blend)(void *x, float a, const void *y, float b, int n); /* x = a x + b y */
    void (*narrow)(const float *x, void *y, int n);                 /* NULL for float32 */
};

extern const struct dt_simd dt_simd_portable, dt_simd_portable_bf16;
#if defined(__x86_64__)
extern const struct dt_simd dt_simd_avx2, dt_simd_avx512, dt_simd_bf16;
#endif

/* The best one for a data type on this processor, or the one chosen by dt_simd_use;
 * NULL if there is none. */
const struct dt_simd *dt_simd(enum dt_dtype dtype);

/* Rows in order of preference, NULL-ended; whether this processor can run row i; for tests: uses it
 * for its data type (NULL: back to the best of each). */
const struct dt_simd *const *dt_simd_rows(void);
bool dt_simd_usable(int i);
void dt_simd_use(const struct dt_simd *simd);

#endif
