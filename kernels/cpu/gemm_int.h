/* SPDX-License-Identifier: MIT */
/* gemm_int - linear layers by a library: one file and one row (gemm.c) per library
 *
 * oneDNN where it was built in and the processor has AVX-512: weights packed once, bias and
 * activation fused, bfloat16. OpenBLAS elsewhere: unpacked weights, float32.
 */
#ifndef DT_KERNELS_CPU_GEMM_INT_H
#define DT_KERNELS_CPU_GEMM_INT_H

#include "kernels/compute.h"

struct dt_gemm {
    const char *name;
    bool (*usable)(enum dt_dtype dtype);
    const char *(*version)(void);
    dt_status (*pack)(enum dt_dtype dtype, const float *weight, int in, int out, void *packed);
    int64_t (*weight_row)(enum dt_dtype dtype, int in, int row); /* see struct dt_compute */
    /* (optional) Creates the library's data for a shape, *own; freed by free. */
    dt_status (*ready)(enum dt_dtype dtype, const struct dt_linear_shape *shape, void **own);
    void (*run)(void *own, const struct dt_linear_shape *shape, const struct dt_linear_call *call);
    void (*free)(void *own); /* with ready */
};

extern const struct dt_gemm dt_gemm_openblas;
#if defined(DT_HAVE_ONEDNN)
extern const struct dt_gemm dt_gemm_onednn;
#endif

/* The best library for a data type; NULL if there is none. */
const struct dt_gemm *dt_gemm(enum dt_dtype dtype);

/* Rows in order of preference, NULL-ended. */
const struct dt_gemm *const *dt_gemm_rows(void);

/* `linear` of the compute table. */
dt_status dt_linear_new(enum dt_dtype dtype, const struct dt_linear_shape *shape,
                        struct dt_linear **linear);
void dt_linear_run(struct dt_linear *linear, const struct dt_linear_call *call);
void dt_linear_free(struct dt_linear *linear);

#endif
