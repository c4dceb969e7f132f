/* SPDX-License-Identifier: MIT */
/* lt_int - contents of cuBLASLt's opaque structures */
#ifndef DT_TESTS_FAKE_CUDA_BLAS_LT_INT_H
#define DT_TESTS_FAKE_CUDA_BLAS_LT_INT_H

#include "tests/fake_cuda/fake_cuda_int.h"

#include <cublasLt.h>

struct lt_layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t stride;
};

struct lt_product {
    int32_t compute, scale, transposed[3], epilogue;
    const void *bias;
    int64_t bias_stride;
    int32_t bias_type; /* -1: D's */
};

struct lt_preference {
    uint64_t workspace;
    uint32_t align[4]; /* A, B, C, D */
};

/* The contents of a cublasLtMatmulAlgo_t, which has 64 bytes. */
struct lt_algorithm {
    uint32_t magic, rank;
    uint64_t workspace, shape; /* shape: what it was found for */
    uint32_t align, parts;     /* parts: of the sums */
};

#define LT_MAGIC 0x51a70001u

/* All of a call, so that its shape can be judged before it runs. */
struct lt_call {
    struct lt_product product;
    struct lt_layout a, b, c, d;
};

struct lt_call lt_call_of(cublasLtMatmulDesc_t product, const cublasLtMatrixLayout_t layouts[4]);
/* CUBLAS_STATUS_NOT_SUPPORTED or INVALID_VALUE for what no algorithm does; a complaint says why. */
cublasStatus_t lt_judge(const struct lt_call *call);
uint64_t lt_shape(const struct lt_call *call);
int64_t lt_element(uint32_t type);
/* Elements from the first to the last of all its matrices. */
int64_t lt_extent(const struct lt_layout *layout);
cublasStatus_t lt_enter(const char *name);

#endif
