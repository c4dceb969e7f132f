/* SPDX-License-Identifier: MIT */
/* simd - the vector kernels, compiled once an instruction set from simd_body.h and chosen at run time
 *
 * To add an instruction set: simd_<name>.c that defines the macros of simd_body.h, a row in simd.c, its flags in
 * cmake/dittune.cmake.
 */
#ifndef DT_KERNELS_CPU_SIMD_H
#define DT_KERNELS_CPU_SIMD_H

#include "kernels/compute.h"

#include <stdbool.h>

struct dt_simd {
    const char *name;
    /* Query rows first .. first+count-1 (count <= tile_q) of one sequence and head. */
    void (*attention)(const struct dt_attention *op, int sequence, int head, int first,
                      float *scratch);
    void (*exp)(const float *x, float *y,
                int n); /* relative error of a few ulp for -87 <= x <= 88, clamped beyond */
    void (*activate)(float *y, const float *bias, int n,
                     enum dt_activation act); /* y = act(y + bias) */
    void (*modulate)(const float *x, const float *shift, const float *scale, float *y, int n);
    void (*gate)(float *x, const float *y, const float *gate, int n); /* x += gate * y */
    void (*blend)(float *x, float a, const float *y, float b, int n); /* x = a x + b y */
};

extern const struct dt_simd dt_simd_portable;
#if defined(__x86_64__)
extern const struct dt_simd dt_simd_avx2, dt_simd_avx512;
#endif

/* The best this processor has, or what dt_simd_use chose. */
const struct dt_simd *dt_simd(void);

/* Rows in order of preference, NULL-ended; whether this processor can run row i; for tests: use it (NULL: the best). */
const struct dt_simd *const *dt_simd_rows(void);
bool dt_simd_usable(int i);
void dt_simd_use(const struct dt_simd *simd);

#endif
