/* SPDX-License-Identifier: MIT */
/* gemm_int - a product of cuBLASLt, shared by its making (gemm.c) and the choice of its algorithm (gemm_choice.c) */
#ifndef DT_KERNELS_CUDA_GEMM_INT_H
#define DT_KERNELS_CUDA_GEMM_INT_H

#include "kernels/cuda/cuda_int.h"

enum { DT_CUDA_PROPOSALS = 8 };

struct dt_linear {
    struct dt_cuda *cuda;
    enum dt_dtype dtype;
    struct dt_linear_shape shape;
    int groups;               /* 1 or more */
    bool batched;             /* all groups in one product */
    bool seeded;              /* y holds the bias before and is added to */
    enum dt_activation after; /* activation to apply after the product */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t weight, x, y;
    cublasLtMatmulAlgo_t algorithm;
};

/* Queues one product, of one group unless batched. bias: in y's data type; not used when seeded. */
cublasStatus_t dt_cuda_multiply(struct dt_linear *linear, const void *x, const void *weight,
                                const void *bias, void *y);

/* Bytes of an element of x and weight, and of y and bias. */
int64_t dt_cuda_gemm_in_bytes(const struct dt_linear *linear);
int64_t dt_cuda_gemm_out_bytes(const struct dt_linear *linear);

/* Sets the algorithm: the fastest of the proposals, best guess first, by the device's clock on random numbers and weights out of memory; once for each shape
 * on an open device, later from memory. Proposals that the library does not run after all are left out; DT_WAIT: that was each of
 * them. Where there is no memory to try them, or while the stream is recorded, the first. count: 1 or more. Not reentrant; waits. */
dt_status dt_cuda_gemm_choose(struct dt_linear *linear,
                              const cublasLtMatmulHeuristicResult_t found[],
                              int count) DT_MUST_CHECK;

#endif
