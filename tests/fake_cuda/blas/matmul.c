/* SPDX-License-Identifier: MIT */
/* D = epilogue(alpha op(A) op(B) + beta C), by float32 products of OpenBLAS. What the real library
 * leaves unchecked is checked: every matrix lies in one block of the device, at multiples of what
 * the algorithm was found for.
 *
 * DITTUNE_FAKE_CUDA lt=bestN: by the clock of events, products of other ranks take ten seconds;
 * lt=coldN: so they do when the weight is another one than a product before has read, and those of
 * rank N when it is the same. lt=refuseN: the heuristics propose rank N, and it is refused here;
 * lt=refuseepilogue: so is every rank with an epilogue. */
#include "tests/fake_cuda/blas/lt_int.h"

#include <cblas.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8 };
static _Atomic int64_t products[RANKS];
static _Atomic uintptr_t read_last; /* first operand of the last product */

int64_t dt_fake_cuda_products(int rank)
{
    return atomic_load(&products[rank]);
}

void fake_products_forget(void)
{
    for (int i = 0; i < RANKS; i++)
        atomic_store(&products[i], 0);
    atomic_store(&fake_planted_ns, 0);
}

struct work {
    struct lt_call call;
    struct lt_algorithm algorithm;
    const void *a, *b, *c;
    void *d, *workspace;
    float alpha, beta;
};

static float bf16_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* To the nearest, ties to even, with `keep` bits of the mantissa. */
static uint32_t rounded(float value, int keep)
{
    uint32_t bits, drop = 23 - (uint32_t)keep;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return bits | 0x400000u;
    bits += (1u << (drop - 1)) - 1 + (bits >> drop & 1);
    return bits >> drop << drop;
}

static float load(const void *at, int64_t i, uint32_t type)
{
    return type == CUDA_R_16BF ? bf16_to_float(((const uint16_t *)at)[i]) : ((const float *)at)[i];
}

static void store(void *at, int64_t i, uint32_t type, float value)
{
    if (type == CUDA_R_16BF)
        ((uint16_t *)at)[i] = (uint16_t)(rounded(value, 7) >> 16);
    else
        ((float *)at)[i] = value;
}

static int64_t index_of(const struct lt_layout *layout, int64_t row, int64_t col)
{
    return layout->order == CUBLASLT_ORDER_ROW ? row * layout->ld + col : col * layout->ld + row;
}

/* op(matrix) as rows, in float32; tf32 as its inputs are rounded. The caller frees it. */
static float *rows_of(const void *at, const struct lt_layout *layout, bool transposed, bool tf32)
{
    int64_t rows = (int64_t)(transposed ? layout->cols : layout->rows);
    int64_t cols = (int64_t)(transposed ? layout->rows : layout->cols);
    bool dense = (layout->order == CUBLASLT_ORDER_ROW) != transposed; /* rows of the result are */
    int64_t down = dense ? layout->ld : 1, right = dense ? 1 : layout->ld;
    float *out = malloc((size_t)(rows * cols) * sizeof *out);
    if (out == NULL)
        abort();
    for (int64_t i = 0; i < rows; i++) {
        float *row = out + i * cols;
        if (dense && layout->type != CUDA_R_16BF)
            memcpy(row, (const float *)at + i * down, (size_t)cols * sizeof *row);
        else
            for (int64_t k = 0; k < cols; k++)
                row[k] = load(at, i * down + k * right, layout->type);
        for (int64_t k = 0; tf32 && k < cols; k++) {
            uint32_t bits = rounded(row[k], 10);
            memcpy(&row[k], &bits, sizeof bits);
        }
    }
    return out;
}

/* With tanh.approx.f32's relative error of up to 2^-11 (PTX ISA), as cuBLASLt 13.1 has it for
 * outputs of any type. */
static float approximate_gelu(float x)
{
    float exact = tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)), cut;
    uint32_t bits = rounded(exact, 10);
    memcpy(&cut, &bits, sizeof cut);
    return 0.5f * x * (1.0f + cut);
}

/* One matrix of the batch. */
static void multiply(const struct work *work, const char *a, const char *b, const void *bias)
{
    const struct lt_call *call = &work->call;
    bool ta = call->product.transposed[0] != CUBLAS_OP_N;
    bool tb = call->product.transposed[1] != CUBLAS_OP_N;
    bool tf32 = call->product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    int m = (int)call->d.rows, n = (int)call->d.cols;
    int k = (int)(ta ? call->a.rows : call->a.cols), parts = (int)work->algorithm.parts;
    float *left = rows_of(a, &call->a, ta, tf32), *right = rows_of(b, &call->b, tb, tf32);
    float *sums = calloc((size_t)m * (size_t)n, sizeof *sums);
    if (sums == NULL)
        abort();
    for (int part = 0; part < parts; part++) {
        int from = (int)((int64_t)k * part / parts), to = (int)((int64_t)k * (part + 1) / parts);
        if (to > from)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, to - from, 1.0f,
                        left + from, k, right + (int64_t)from * n, n, 1.0f, sums, n);
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            int64_t at = index_of(&call->d, i, j);
            float value = work->alpha * sums[(int64_t)i * n + j];
            if (work->beta != 0)
                value += work->beta * load(work->c, index_of(&call->c, i, j), call->c.type);
            if (bias != NULL)
                value += load(bias, i, call->d.type);
            if ((call->product.epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
                value = approximate_gelu(value);
            store(work->d, at, call->d.type, value);
        }
    free(left), free(right), free(sums);
}

static int rank_named(const char *word)
{
    const char *at = strstr(fake_settings.lt, word);
    return at != NULL && at[strlen(word)] >= '0' && at[strlen(word)] <= '9' ? at[strlen(word)] - '0'
                                                                            : -1;
}

static cudaError_t run(struct CUstream_st *stream, void *data)
{
    struct work work = *(struct work *)data;
    const struct lt_call *call = &work.call;
    bool biased = (call->product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    const char *bias = biased ? call->product.bias : NULL;
    int64_t in = lt_element(call->a.type), out = lt_element(call->d.type);
    int64_t bias_bytes =
        ((call->d.batch - 1) * call->product.bias_stride + (int64_t)call->d.rows) * out;
    if (!fake_see_field(stream, &work.a, lt_extent(&call->a) * in) ||
        !fake_see_field(stream, &work.b, lt_extent(&call->b) * in) ||
        !fake_see_field(stream, &work.c, lt_extent(&call->c) * out) ||
        !fake_see_field(stream, &work.d, lt_extent(&call->d) * out) ||
        !fake_see_field(stream, &bias, bias_bytes) ||
        !fake_see_field(stream, &work.workspace, (int64_t)work.algorithm.workspace))
        return cudaErrorIllegalAddress;
    if (work.algorithm.workspace > 0) /* as a kernel would: what lay there is gone */
        memset(work.workspace, 0xff, work.algorithm.workspace);
    (void)fake_cpu(stream); /* one thread, for OpenBLAS, too */
    int best = rank_named("best"), cold = rank_named("cold");
    bool again = atomic_exchange(&read_last, (uintptr_t)work.a) == (uintptr_t)work.a;
    if ((best >= 0 && best != (int)work.algorithm.rank) ||
        (cold >= 0 && (cold == (int)work.algorithm.rank) == again))
        atomic_fetch_add(&fake_planted_ns, INT64_C(10000000000));
    if (work.algorithm.rank < RANKS)
        atomic_fetch_add(&products[work.algorithm.rank], 1);
    struct work one = work;
    for (int i = 0; i < call->d.batch; i++) {
        one.c = (const char *)work.c + i * call->c.stride * out;
        one.d = (char *)work.d + i * call->d.stride * out;
        multiply(&one, (const char *)work.a + i * call->a.stride * in,
                 (const char *)work.b + i * call->b.stride * in,
                 biased ? bias + i * call->product.bias_stride * out : NULL);
    }
    return cudaSuccess;
}

static bool lies(const char *name, const void *at, int64_t bytes, uint32_t align)
{
    struct fake_device *device;
    if (fake_block_at(at, (size_t)bytes, &device) == NULL) {
        fake_complain("cublasLtMatmul: %lld bytes of %s at %p are in no block of a device",
                      (long long)bytes, name, at);
        return false;
    }
    if ((uintptr_t)at % align != 0)
        fake_complain("cublasLtMatmul: %s at %p, the algorithm wants multiples of %u", name, at,
                      align);
    return (uintptr_t)at % align == 0;
}

static bool is_refused(const struct work *work)
{
    return rank_named("refuse") == (int)work->algorithm.rank ||
           (strstr(fake_settings.lt, "refuseepilogue") != NULL &&
            work->call.product.epilogue != CUBLASLT_EPILOGUE_DEFAULT);
}

static cublasStatus_t check(const struct work *work, size_t workspace_bytes)
{
    const struct lt_call *call = &work->call;
    const struct lt_algorithm *algorithm = &work->algorithm;
    cublasStatus_t status = lt_judge(call);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (algorithm->magic != LT_MAGIC || algorithm->shape != lt_shape(call)) {
        fake_complain("cublasLtMatmul: the algorithm is for another product");
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (is_refused(work))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (algorithm->workspace > workspace_bytes || (uintptr_t)work->workspace % 16 != 0 ||
        (algorithm->workspace > 0 &&
         !lies("the workspace", work->workspace, (int64_t)workspace_bytes, 16)))
        return CUBLAS_STATUS_INVALID_VALUE;
    int64_t in = lt_element(call->a.type), out = lt_element(call->d.type);
    uint32_t element = (uint32_t)out;
    bool biased = (call->product.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    return lies("A", work->a, lt_extent(&call->a) * in, algorithm->align) &&
                   lies("B", work->b, lt_extent(&call->b) * in, algorithm->align) &&
                   lies("C", work->c, lt_extent(&call->c) * out, algorithm->align) &&
                   lies("D", work->d, lt_extent(&call->d) * out, algorithm->align) &&
                   (!biased ||
                    lies("the bias", call->product.bias, (int64_t)call->d.rows * out, element))
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    cublasStatus_t status = lt_enter(__func__);
    if (status == CUBLAS_STATUS_SUCCESS && (handle == NULL || algorithm == NULL))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    struct work work = {
        .call = lt_call_of(
            product, (const cublasLtMatrixLayout_t[]){a_layout, b_layout, c_layout, d_layout}),
        .a = a,
        .b = b,
        .c = c,
        .d = d,
        .workspace = workspace,
        .alpha = *(const float *)alpha,
        .beta = *(const float *)beta};
    memcpy(&work.algorithm, algorithm, sizeof work.algorithm);
    struct fake_task task = {run, NULL, sizeof work};
    cudaError_t error = fake_enter("cublasLtMatmul launch");
    if (error == cudaSuccess) {
        fake_lock();
        status = check(&work, workspace_bytes);
        if (status == CUBLAS_STATUS_SUCCESS)
            error = fake_put(stream, FAKE_KERNEL, &task, &work);
        fake_unlock();
    }
    fake_leave(error);
    return error != cudaSuccess ? CUBLAS_STATUS_EXECUTION_FAILED : status;
}
