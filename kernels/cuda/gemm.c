/* SPDX-License-Identifier: MIT */
/* Linear layers by cuBLASLt. It is column-major: a row-major matrix is its transpose there, so y^T [out, rows] = W x^T,
 * with W, which it sees as [in, out], transposed, and bias and activation as an epilogue on y's rows.
 *
 * Its GELU is computed with tanh.approx.f32, whose relative error is 2^-11 (PTX ISA), for outputs in float32, too (read in the sm_90
 * code of cuBLASLt 13.1). So only outputs in bfloat16 take it; float32 outputs are activated by a kernel of our own after the product.
 *
 * Where it has no algorithm, simpler calls are tried: the groups one after the other, then no epilogue, with the bias
 * stored in y before (beta 1) and the activation after (float32 outputs only). */
#include "kernels/cuda/gemm_int.h"
#include "kernels/cuda/launch.h"

#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 16 };

static dt_status checked(cublasStatus_t code, const char *what)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return DT_OK;
    return dt_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? DT_ENOMEM : DT_ELIB,
                   "cuBLASLt could not %s: %s", what, cublasLtGetStatusName(code));
}

static cudaDataType_t type_of(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasComputeType_t compute_of(enum dt_dtype dtype)
{
    return dtype == DT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static int64_t element_of(cudaDataType_t type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

/* Bytes that every row of `bytes` bytes starts at a multiple of, ALIGN at most, if the first does. */
static uint32_t alignment(int64_t bytes)
{
    uint32_t align = ALIGN;
    while (bytes % align != 0)
        align /= 2;
    return align;
}

static bool is_wide(const struct dt_linear *linear)
{
    return linear->shape.wide || linear->dtype != DT_BFLOAT16;
}

static cudaDataType_t y_type(const struct dt_linear *linear)
{
    return is_wide(linear) ? CUDA_R_32F : CUDA_R_16BF;
}

int64_t dt_cuda_gemm_in_bytes(const struct dt_linear *linear)
{
    return element_of(type_of(linear->dtype));
}

int64_t dt_cuda_gemm_out_bytes(const struct dt_linear *linear)
{
    return element_of(y_type(linear));
}

static dt_status set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t name,
                     const void *value, size_t size)
{
    return checked(cublasLtMatmulDescSetAttribute(product, name, value, size),
                   "describe a product");
}

/* layout is new: rows x cols in cuBLASLt's order, rows contiguous; of `count` matrices `stride` elements apart. */
static dt_status lay_out(cublasLtMatrixLayout_t *layout, cudaDataType_t type, int rows, int cols,
                         const int64_t batch[2])
{
    int32_t count = (int32_t)batch[0];
    DT_TRY(checked(cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows, (uint64_t)cols, rows),
                   "describe a matrix"));
    if (count == 1)
        return DT_OK;
    DT_TRY(checked(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &count, sizeof count),
                   "describe a matrix"));
    return checked(cublasLtMatrixLayoutSetAttribute(*layout,
                                                    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                    &batch[1], sizeof batch[1]),
                   "describe a matrix");
}

static void forget(struct dt_linear *linear)
{
    if (linear->product != NULL)
        (void)cublasLtMatmulDescDestroy(linear->product);
    if (linear->weight != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->weight);
    if (linear->x != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->x);
    if (linear->y != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->y);
    linear->product = NULL;
    linear->weight = linear->x = linear->y = NULL;
}

static cublasLtEpilogue_t epilogue_of(const struct dt_linear *linear)
{
    if (linear->seeded)
        return CUBLASLT_EPILOGUE_DEFAULT;
    return linear->after != linear->shape.act ? CUBLASLT_EPILOGUE_GELU_BIAS
                                              : CUBLASLT_EPILOGUE_BIAS;
}

/* The heuristics use only the alignment of the bias's address. */
static dt_status describe(struct dt_linear *linear)
{
    const struct dt_linear_shape *shape = &linear->shape;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = epilogue_of(linear);
    const int64_t out = shape->out / linear->groups, count = linear->batched ? linear->groups : 1;
    const void *bias = (const void *)(uintptr_t)alignment(out * element_of(y_type(linear)));
    cudaDataType_t type = type_of(linear->dtype);
    DT_TRY(
        checked(cublasLtMatmulDescCreate(&linear->product, compute_of(linear->dtype), CUDA_R_32F),
                "describe a product"));
    DT_TRY(set(linear->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    DT_TRY(set(linear->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (!linear->seeded)
        DT_TRY(set(linear->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    if (!linear->seeded && count > 1)
        DT_TRY(set(linear->product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &out, sizeof out));
    DT_TRY(lay_out(&linear->weight, type, shape->in, (int)out,
                   (const int64_t[]){count, out * shape->in}));
    DT_TRY(lay_out(&linear->x, type, shape->in, shape->rows, (const int64_t[]){count, 0}));
    return lay_out(&linear->y, y_type(linear), (int)out, shape->rows,
                   (const int64_t[]){count, shape->group_stride});
}

/* Matrices are aligned like their rows; tensors and buffers are aligned more strictly. */
static dt_status prefer(const struct dt_linear *linear, cublasLtMatmulPreference_t preference)
{
    const uint64_t most = (uint64_t)DT_CUDA_LIBRARY_BYTES;
    const struct dt_linear_shape *shape = &linear->shape;
    int64_t out = shape->out / linear->groups, element = element_of(y_type(linear));
    uint32_t in_align = alignment(shape->in * element_of(type_of(linear->dtype)));
    uint32_t out_align = alignment(out * element), apart = alignment(shape->group_stride * element);
    if (linear->groups > 1 && apart < out_align)
        out_align = apart;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } rows[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &in_align, sizeof in_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &in_align, sizeof in_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &out_align, sizeof out_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &out_align, sizeof out_align},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        DT_TRY(checked(cublasLtMatmulPreferenceSetAttribute(preference, rows[i].name, rows[i].value,
                                                            rows[i].size),
                       "take a preference"));
    return DT_OK;
}

/* DT_WAIT: cuBLASLt has no algorithm, or rejects the combination, in its heuristics or when it is called. */
static dt_status propose(struct dt_linear *linear, cublasLtMatmulPreference_t preference)
{
    cublasLtMatmulHeuristicResult_t found[DT_CUDA_PROPOSALS];
    int count = 0, usable = 0;
    DT_TRY(prefer(linear, preference));
    cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(
        linear->cuda->lt, linear->product, linear->weight, linear->x, linear->y, linear->y,
        preference, DT_CUDA_PROPOSALS, found, &count);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE ||
        (code == CUBLAS_STATUS_SUCCESS && count == 0))
        return DT_WAIT;
    DT_TRY(checked(code, "propose algorithms"));
    for (int i = 0; i < count; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS &&
            found[i].workspaceSize <= (size_t)DT_CUDA_LIBRARY_BYTES)
            found[usable++] = found[i];
    if (usable == 0)
        return DT_WAIT;
    int choice = linear->shape.choice;
    if (choice == 0)
        return dt_cuda_gemm_choose(linear, found, usable);
    linear->algorithm = found[choice <= usable ? choice - 1 : usable - 1].algo;
    return DT_OK;
}

/* Tries the most fused form first. */
static dt_status choose(struct dt_linear *linear)
{
    const struct dt_linear_shape *shape = &linear->shape;
    cublasLtMatmulPreference_t preference = NULL;
    dt_status status = DT_WAIT;
    DT_TRY(checked(cublasLtMatmulPreferenceCreate(&preference), "take a preference"));
    for (int less = linear->groups > 1 ? 0 : 1; less < 4 && status == DT_WAIT; less++) {
        if (less == 2 && linear->groups == 1)
            continue;
        linear->batched = less % 2 == 0;
        linear->seeded = less >= 2;
        bool fused = shape->act == DT_ACT_GELU && !is_wide(linear) && !linear->seeded;
        linear->after = fused ? DT_ACT_NONE : shape->act;
        if (linear->after != DT_ACT_NONE && !is_wide(linear))
            break;
        forget(linear);
        status = describe(linear);
        if (status == DT_OK)
            status = propose(linear, preference);
    }
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (status == DT_WAIT)
        return dt_fail(DT_EUNSUP, "cuBLASLt has no %s product of %d x %d by %d",
                       dt_dtype_text(linear->dtype), shape->rows, shape->in, shape->out);
    return status;
}

dt_status dt_cuda_linear_new(struct dt_device *device, enum dt_dtype dtype,
                             const struct dt_linear_shape *shape, struct dt_linear **linear)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (!shape->wide && shape->out > DT_CUDA_BIAS_MOST)
        return dt_fail(DT_EUNSUP, "a layer of %d outputs, at most %d are supported", shape->out,
                       DT_CUDA_BIAS_MOST);
    struct dt_linear *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a linear layer");
    made->cuda = cuda;
    made->dtype = dtype;
    made->shape = *shape;
    made->groups = shape->groups > 1 ? shape->groups : 1;
    dt_status status = choose(made);
    if (status != DT_OK) {
        dt_cuda_linear_free(made);
        return status;
    }
    *linear = made;
    return DT_OK;
}

/* Writes the bias to every row of a group's matrix, in y's data type. */
static void seed(const struct dt_linear *linear, const void *bias, void *y, int64_t out)
{
    const struct dt_copy op = {.to = y,
                               .from = bias,
                               .count = {1, 1, linear->shape.rows},
                               .to_stride = {0, 0, out},
                               .width = out,
                               .element = (int)element_of(y_type(linear))};
    dt_cuda_keep(linear->cuda, dt_launch_copy(&op, linear->cuda->stream), "spread a bias");
}

cublasStatus_t dt_cuda_multiply(struct dt_linear *linear, const void *x, const void *weight,
                                const void *bias, void *y)
{
    static const float one = 1.0F, none = 0.0F;
    struct dt_cuda *cuda = linear->cuda;
    if (!linear->seeded) {
        cublasStatus_t code = cublasLtMatmulDescSetAttribute(
            linear->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (code != CUBLAS_STATUS_SUCCESS)
            return code;
    }
    return cublasLtMatmul(cuda->lt, linear->product, &one, weight, linear->weight, x, linear->x,
                          linear->seeded ? &one : &none, y, linear->y, y, linear->y,
                          &linear->algorithm, cuda->workspace, (size_t)DT_CUDA_LIBRARY_BYTES,
                          cuda->stream);
}

/* cuBLASLt's error may hide an error of CUDA, which is more precise. */
static void keep_product(struct dt_cuda *cuda, cublasStatus_t code)
{
    static const char what[] = "multiply matrices";
    cudaError_t cause = code == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaGetLastError();
    dt_cuda_keep(cuda, (int)cause, what);
    if (cause == cudaSuccess)
        dt_error_keep(&cuda->error, checked(code, what));
}

void dt_cuda_linear(struct dt_device *device, struct dt_linear *linear,
                    const struct dt_linear_call *call)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    const struct dt_linear_shape *shape = &linear->shape;
    const int64_t out = shape->out / linear->groups, y_element = element_of(y_type(linear));
    if (cuda == NULL)
        return;
    const void *bias = is_wide(linear) ? call->bias : dt_cuda_bias(cuda, call->bias, shape->out);
    for (int i = 0; i < linear->groups && linear->seeded && cuda->error.status == DT_OK; i++)
        seed(linear, (const char *)bias + i * out * y_element,
             (char *)call->y + i * shape->group_stride * y_element, out);
    for (int i = 0; i < (linear->batched ? 1 : linear->groups) && cuda->error.status == DT_OK;
         i++) {
        const char *weight =
            (const char *)call->weight + i * out * shape->in * element_of(type_of(linear->dtype));
        keep_product(cuda, dt_cuda_multiply(linear, call->x, weight,
                                            (const char *)bias + i * out * y_element,
                                            (char *)call->y + i * shape->group_stride * y_element));
    }
    for (int i = 0;
         i < linear->groups && cuda->error.status == DT_OK && linear->after != DT_ACT_NONE; i++)
        dt_cuda_keep(cuda,
                     dt_launch_activation(linear->after, (float *)call->y + i * shape->group_stride,
                                          shape->rows * out, cuda->stream),
                     "apply an activation");
}

void dt_cuda_linear_free(struct dt_linear *linear)
{
    if (linear != NULL)
        forget(linear);
    free(linear);
}
