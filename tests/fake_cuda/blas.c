/* SPDX-License-Identifier: MIT */
/* The fake cuBLASLt against sums in double: orders, transposes, leading dimensions, batches,
 * epilogues, types; and what it refuses. */
#include "tests/fake_cuda/fake_cuda.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (int)(call);                                                                   \
        if (code_ != 0)                                                                            \
            fail_msg("%s: %d, %s", #call, code_, dt_fake_cuda_complaint());                        \
    } while (0)

enum { M = 24, N = 10, K = 40, BATCH = 3, ROOM = 8192 };

struct matrix {
    int rows, cols, ld, order;
    int64_t stride;
    cudaDataType_t type;
    float *host; /* what is in it, exact in its type */
    void *device;
    cublasLtMatrixLayout_t layout;
};

struct world {
    cublasLtHandle_t lt;
    cudaStream_t stream;
    char *memory;
    cublasLtMatmulDesc_t product;
    cublasLtMatmulPreference_t preference;
    void *workspace;
    cublasLtMatmulAlgo_t algorithm[8];
    int found;
};

enum { WORKSPACE = 8 << 20 };

/* Small multiples of 1/8: exact in bfloat16 and in tf32. */
static float value_of(unsigned seed)
{
    seed = seed * 2654435761u + 12345u;
    return (float)((int)(seed >> 20) % 17 - 8) / 8.0f;
}

static uint16_t narrowed(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += 0x7fffu + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

static float widened(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static int64_t at(const struct matrix *m, int batch, int row, int col)
{
    return batch * m->stride + (m->order == CUBLASLT_ORDER_ROW ? (int64_t)row * m->ld + col
                                                               : (int64_t)col * m->ld + row);
}

static void send(const struct world *w, const struct matrix *m)
{
    if (m->type == CUDA_R_32F) {
        OK(cudaMemcpyAsync(m->device, m->host, ROOM * 4, cudaMemcpyHostToDevice, w->stream));
        return;
    }
    uint16_t narrow[ROOM];
    for (int i = 0; i < ROOM; i++)
        narrow[i] = narrowed(m->host[i]);
    OK(cudaMemcpyAsync(m->device, narrow, ROOM * 2, cudaMemcpyHostToDevice, w->stream));
}

static void receive(const struct world *w, const struct matrix *m)
{
    uint16_t narrow[ROOM];
    if (m->type == CUDA_R_32F)
        OK(cudaMemcpyAsync(m->host, m->device, ROOM * 4, cudaMemcpyDeviceToHost, w->stream));
    else
        OK(cudaMemcpyAsync(narrow, m->device, ROOM * 2, cudaMemcpyDeviceToHost, w->stream));
    for (int i = 0; i < ROOM && m->type != CUDA_R_32F; i++)
        m->host[i] = widened(narrow[i]);
}

static void make(const struct world *w, struct matrix *m, int place, int batch)
{
    int lines = m->order == CUBLASLT_ORDER_ROW ? m->rows : m->cols;
    m->stride = (int64_t)m->ld * lines;
    m->host = malloc(ROOM * sizeof *m->host);
    m->device = w->memory + (size_t)place * ROOM * 4;
    assert_true(m->stride * batch <= ROOM);
    for (int i = 0; i < ROOM; i++)
        m->host[i] = value_of((unsigned)(i + place * 7919));
    OK(cublasLtMatrixLayoutCreate(&m->layout, m->type, (uint64_t)m->rows, (uint64_t)m->cols,
                                  m->ld));
    int32_t order = m->order, count = batch;
    OK(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                        sizeof order));
    OK(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                        sizeof count));
    OK(cublasLtMatrixLayoutSetAttribute(m->layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                        &m->stride, sizeof m->stride));
    send(w, m);
}

static void unmake(struct matrix *m)
{
    OK(cublasLtMatrixLayoutDestroy(m->layout));
    free(m->host);
}

static void open_world(struct world *w)
{
    const uint64_t most = WORKSPACE;
    dt_fake_cuda_set("devices=1:memory=128m");
    memset(w, 0, sizeof *w);
    OK(cublasLtCreate(&w->lt));
    OK(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&w->memory, (size_t)4 * ROOM * 4));
    OK(cudaMalloc(&w->workspace, WORKSPACE));
    OK(cublasLtMatmulPreferenceCreate(&w->preference));
    OK(cublasLtMatmulPreferenceSetAttribute(w->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &most, sizeof most));
}

static void close_world(struct world *w)
{
    OK(cublasLtMatmulPreferenceDestroy(w->preference));
    OK(cudaFree(w->workspace));
    OK(cudaFree(w->memory));
    OK(cudaStreamDestroy(w->stream));
    OK(cublasLtDestroy(w->lt));
    assert_string_equal(dt_fake_cuda_complaint(), "");
}

struct example {
    cublasComputeType_t compute;
    cudaDataType_t in, out;
    int ta, tb, epilogue, order[3], pad, batch;
};

static const struct example examples[] = {
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, 0, 0, 1, {0, 0, 0}, 0, 1},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, 1, 0, 4, {0, 0, 0}, 0, BATCH},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, 0, 1, 1, {1, 0, 1}, 3, 1},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, 1, 1, 36, {1, 1, 0}, 8, 1},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, 1, 0, 36, {0, 0, 0}, 0, BATCH},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F, 0, 0, 4, {0, 1, 0}, 8, 1},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF, 0, 0, 32, {0, 0, 0}, 1, 1},
};

static double wanted(const struct example *e, struct matrix m[3], const float *bias, const int i[3])
{
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)m[0].host[e->ta ? at(&m[0], i[0], k, i[1]) : at(&m[0], i[0], i[1], k)] *
               (double)m[1].host[e->tb ? at(&m[1], i[0], i[2], k) : at(&m[1], i[0], k, i[2])];
    if ((e->epilogue & 4) != 0)
        sum += (double)bias[i[0] * M + i[1]];
    if ((e->epilogue & 32) != 0)
        sum = 0.5 * sum * (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
    return sum;
}

static void describe(struct world *w, const struct example *e, const void *bias)
{
    const int64_t apart = M;
    OK(cublasLtMatmulDescCreate(&w->product, e->compute, CUDA_R_32F));
    const cublasOperation_t ops[] = {e->ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                                     e->tb ? CUBLAS_OP_T : CUBLAS_OP_N};
    const cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)e->epilogue;
    OK(cublasLtMatmulDescSetAttribute(w->product, CUBLASLT_MATMUL_DESC_TRANSA, &ops[0], 4));
    OK(cublasLtMatmulDescSetAttribute(w->product, CUBLASLT_MATMUL_DESC_TRANSB, &ops[1], 4));
    OK(cublasLtMatmulDescSetAttribute(w->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    OK(cublasLtMatmulDescSetAttribute(w->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8));
    OK(cublasLtMatmulDescSetAttribute(w->product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &apart,
                                      8));
}

static cublasStatus_t search(struct world *w, const struct matrix m[3])
{
    cublasLtMatmulHeuristicResult_t results[8];
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(w->lt, w->product, m[0].layout, m[1].layout, m[2].layout,
                                       m[2].layout, w->preference, 8, results, &w->found);
    for (int i = 0; i < w->found; i++)
        w->algorithm[i] = results[i].algo;
    return status;
}

static cublasStatus_t matmul(struct world *w, const struct matrix m[3], int rank)
{
    const float one = 1.0f, none = 0.0f;
    return cublasLtMatmul(w->lt, w->product, &one, m[0].device, m[0].layout, m[1].device,
                          m[1].layout, &none, m[2].device, m[2].layout, m[2].device, m[2].layout,
                          &w->algorithm[rank], w->workspace, WORKSPACE, w->stream);
}

static void make_all(struct world *w, const struct example *e, struct matrix m[3])
{
    const int shape[3][2] = {
        {e->ta ? K : M, e->ta ? M : K}, {e->tb ? N : K, e->tb ? K : N}, {M, N}};
    for (int i = 0; i < 3; i++) {
        int length = shape[i][e->order[i]];
        m[i] = (struct matrix){.rows = shape[i][0],
                               .cols = shape[i][1],
                               .ld = length + e->pad,
                               .order = e->order[i] ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL,
                               .type = i == 2 ? e->out : e->in};
        make(w, &m[i], i, e->batch);
    }
}

/* Inputs are exact; K products below 1 each in float32, then a rounding to 8 bits
 * where D is bfloat16. */
static void products_are_exact(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof examples / sizeof examples[0]; n++) {
        const struct example *e = &examples[n];
        struct world w;
        struct matrix m[3];
        open_world(&w);
        make_all(&w, e, m);
        struct matrix bias = {
            .rows = M, .cols = BATCH, .ld = M, .order = CUBLASLT_ORDER_COL, .type = e->out};
        make(&w, &bias, 3, 1);
        describe(&w, e, bias.device);
        OK(search(&w, m));
        assert_true(w.found >= (e->pad == 0 ? 3 : 1));
        for (int rank = 0; rank < w.found; rank++) {
            OK(matmul(&w, m, rank));
            receive(&w, &m[2]);
            for (int i = 0; i < e->batch * M * N; i++) {
                const int place[3] = {i / (M * N), i / N % M, i % N};
                double want = wanted(e, m, bias.host, place);
                double got = (double)m[2].host[at(&m[2], place[0], place[1], place[2])];
                double room = e->out == CUDA_R_16BF ? fabs(want) / 256 + 1e-5 : 1e-4;
                if ((e->epilogue & CUBLASLT_EPILOGUE_GELU) !=
                    0) /* 2^-12 of its argument, which is below 8 */
                    room += 8.0 / 4096;
                if (fabs(got - want) > room)
                    fail_msg("example %zu, rank %d, [%d %d %d]: %g, not %g", n, rank, place[0],
                             place[1], place[2], got, want);
            }
        }
        OK(cublasLtMatmulDescDestroy(w.product));
        unmake(&bias);
        for (int i = 0; i < 3; i++)
            unmake(&m[i]);
        close_world(&w);
    }
}

static void refuses_what_cublaslt_refuses(void **state)
{
    (void)state;
    const struct example *e = &examples[0];
    struct world w;
    struct matrix m[3];
    open_world(&w);
    make_all(&w, e, m);
    describe(&w, e, NULL);
    const uint64_t none = 0;
    OK(search(&w, m));
    int all = w.found;
    cublasLtMatmulAlgo_t first = w.algorithm[0];
    OK(cublasLtMatmulPreferenceSetAttribute(w.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &none, sizeof none));
    OK(search(&w, m));
    assert_true(w.found > 0 && w.found < all); /* those that need a workspace are gone */
    w.algorithm[0] = first;
    void *memory = m[0].device, *d = m[2].device;
    m[0].device = (char *)memory + 4;
    assert_int_equal(matmul(&w, m, 0), CUBLAS_STATUS_INVALID_VALUE);
    assert_non_null(strstr(dt_fake_cuda_complaint(), "multiples of 16"));
    m[0].device = memory;
    m[2].device = w.memory + (size_t)4 * ROOM * 4 - 64;
    assert_int_equal(matmul(&w, m, 0), CUBLAS_STATUS_INVALID_VALUE);
    m[2].device = m[2].host;
    assert_int_equal(matmul(&w, m, 0), CUBLAS_STATUS_INVALID_VALUE);
    m[2].device = d;
    OK(matmul(&w, m, 0));
    const int64_t ld = M - 1;
    OK(cublasLtMatrixLayoutSetAttribute(m[2].layout, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld));
    assert_int_equal(search(&w, m), CUBLAS_STATUS_INVALID_VALUE);
    const int64_t wide = M + 1;
    OK(cublasLtMatrixLayoutSetAttribute(m[2].layout, CUBLASLT_MATRIX_LAYOUT_LD, &wide,
                                        sizeof wide));
    assert_int_equal(matmul(&w, m, 0), CUBLAS_STATUS_NOT_SUPPORTED); /* found for another */
    OK(cublasLtMatmulDescDestroy(w.product));
    for (int i = 0; i < 3; i++)
        unmake(&m[i]);
    dt_fake_cuda_set("devices=0");
    cublasLtHandle_t lt;
    assert_int_equal(cublasLtCreate(&lt), CUBLAS_STATUS_NOT_INITIALIZED);
    OK(cublasLtMatmulPreferenceDestroy(w.preference));
    OK(cublasLtDestroy(w.lt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(refuses_what_cublaslt_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
