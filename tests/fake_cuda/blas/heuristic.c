/* SPDX-License-Identifier: MIT */
/* Which products there are algorithms for, and which: five ranks that differ in workspace,
 * alignment and the order of their sums, as real ones do. DITTUNE_FAKE_CUDA lt=... leaves out what
 * a version of the library may not have: nobatch (strided batches), noepilogue, nothing; one: all
 * ranks but the first. Words may be joined by +, also with those of matmul.c. */
#include "tests/fake_cuda/blas/lt_int.h"

#include <string.h>

static const struct {
    uint64_t workspace;
    uint32_t align, parts;
} ranks[] = {
    {(uint64_t)256 << 10, 16, 1}, {0, 16, 1}, {(uint64_t)1 << 20, 16, 2}, {0, 2, 1},
    {(uint64_t)4 << 20, 16, 3},
};

struct lt_call lt_call_of(cublasLtMatmulDesc_t product, const cublasLtMatrixLayout_t layouts[4])
{
    return (struct lt_call){.product = *(struct lt_product *)product,
                            .a = *(struct lt_layout *)layouts[0],
                            .b = *(struct lt_layout *)layouts[1],
                            .c = *(struct lt_layout *)layouts[2],
                            .d = *(struct lt_layout *)layouts[3]};
}

int64_t lt_element(uint32_t type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

int64_t lt_extent(const struct lt_layout *layout)
{
    bool by_rows = layout->order == CUBLASLT_ORDER_ROW;
    int64_t lines = (int64_t)(by_rows ? layout->rows : layout->cols);
    int64_t length = (int64_t)(by_rows ? layout->cols : layout->rows);
    return (layout->batch - 1) * layout->stride + (lines - 1) * layout->ld + length;
}

static cublasStatus_t refuse(cublasStatus_t status, const char *why)
{
    fake_complain("cuBLASLt: %s", why);
    return status;
}

static bool layout_ok(const struct lt_layout *layout)
{
    uint64_t length = layout->order == CUBLASLT_ORDER_ROW ? layout->cols : layout->rows;
    return layout->rows > 0 && layout->cols > 0 && layout->batch > 0 &&
           layout->ld >= (int64_t)length &&
           (layout->order == CUBLASLT_ORDER_ROW || layout->order == CUBLASLT_ORDER_COL);
}

static cublasStatus_t judge_types(const struct lt_call *call)
{
    uint32_t in = call->a.type, out = call->d.type;
    bool known = (in == CUDA_R_16BF && (out == CUDA_R_16BF || out == CUDA_R_32F)) ||
                 (in == CUDA_R_32F && out == CUDA_R_32F);
    if (!known || call->b.type != in || call->c.type != out || call->product.scale != CUDA_R_32F)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "no product of these types");
    if (call->product.compute != CUBLAS_COMPUTE_32F &&
        (call->product.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || in != CUDA_R_32F))
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "no such compute type for these types");
    if (call->product.bias_type != -1 && call->product.bias_type != (int32_t)out)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "a bias is of D's type");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_judge(const struct lt_call *call)
{
    const struct lt_product *product = &call->product;
    if (!layout_ok(&call->a) || !layout_ok(&call->b) || !layout_ok(&call->c) ||
        !layout_ok(&call->d))
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "a leading dimension is below the length");
    bool ta = product->transposed[0] != CUBLAS_OP_N, tb = product->transposed[1] != CUBLAS_OP_N;
    uint64_t m = ta ? call->a.cols : call->a.rows, k = ta ? call->a.rows : call->a.cols;
    uint64_t kb = tb ? call->b.cols : call->b.rows, n = tb ? call->b.rows : call->b.cols;
    if (k != kb || m != call->d.rows || n != call->d.cols || m != call->c.rows ||
        n != call->c.cols || product->transposed[2] != CUBLAS_OP_N)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "the shapes of A, B, C and D do not fit");
    if (call->a.batch != call->d.batch || call->b.batch != call->d.batch ||
        call->c.batch != call->d.batch)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "batches differ");
    int64_t one = lt_extent(&call->d) - (call->d.batch - 1) * call->d.stride;
    if (call->d.batch > 1 && call->d.stride < one && call->d.stride < call->d.ld)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "the matrices of D overlap");
    int epilogue = product->epilogue;
    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS &&
        epilogue != CUBLASLT_EPILOGUE_GELU && epilogue != CUBLASLT_EPILOGUE_GELU_BIAS)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this epilogue is not in the fake");
    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && call->d.order == CUBLASLT_ORDER_ROW)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "no epilogue on rows");
    if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && product->bias == NULL)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "an epilogue with bias, and no bias");
    return judge_types(call);
}

/* FNV-1a (Fowler, Noll, Vo) of what an algorithm is for: all but addresses. */
uint64_t lt_shape(const struct lt_call *call)
{
    const struct lt_layout *all[] = {&call->a, &call->b, &call->c, &call->d};
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < 4; i++) {
        uint64_t words[] = {all[i]->type,
                            (uint64_t)all[i]->order,
                            all[i]->rows,
                            all[i]->cols,
                            (uint64_t)all[i]->ld,
                            (uint64_t)all[i]->batch,
                            (uint64_t)all[i]->stride};
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            hash = (hash ^ words[k]) * 1099511628211u;
    }
    uint64_t more[] = {(uint64_t)call->product.compute, (uint64_t)call->product.epilogue,
                       (uint64_t)call->product.transposed[0],
                       (uint64_t)call->product.transposed[1]};
    for (int k = 0; k < 4; k++)
        hash = (hash ^ more[k]) * 1099511628211u;
    return hash;
}

static bool divides(const struct lt_layout *layout, uint32_t align)
{
    int64_t element = lt_element(layout->type);
    return layout->ld * element % align == 0 && layout->stride * element % align == 0;
}

static bool fits(const struct lt_call *call, const struct lt_preference *preference, size_t rank)
{
    uint32_t align = ranks[rank].align;
    for (int i = 0; i < 4; i++)
        if (preference->align[i] < align)
            return false;
    return ranks[rank].workspace <= preference->workspace && divides(&call->a, align) &&
           divides(&call->b, align) && divides(&call->c, align) && divides(&call->d, align);
}

static bool left_out(const struct lt_call *call)
{
    const char *lt = fake_settings.lt;
    return (strstr(lt, "nobatch") != NULL && call->d.batch > 1) ||
           (strstr(lt, "noepilogue") != NULL &&
            call->product.epilogue != CUBLASLT_EPILOGUE_DEFAULT) ||
           strstr(lt, "nothing") != NULL;
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned)
{
    cublasStatus_t status = lt_enter(__func__);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (handle == NULL || product == NULL || preference == NULL || requested <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct lt_call call = lt_call_of(product, (const cublasLtMatrixLayout_t[]){a, b, c, d});
    *returned = 0;
    status = lt_judge(&call);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0] && *returned < requested; i++) {
        if (!fits(&call, (struct lt_preference *)preference, i) || left_out(&call) ||
            (*returned > 0 && strstr(fake_settings.lt, "one") != NULL))
            continue;
        struct lt_algorithm own = {LT_MAGIC,        (uint32_t)i,    ranks[i].workspace,
                                   lt_shape(&call), ranks[i].align, ranks[i].parts};
        cublasLtMatmulHeuristicResult_t *to = &results[(*returned)++];
        memset(to, 0, sizeof *to);
        memcpy(&to->algo, &own, sizeof own);
        to->workspaceSize = ranks[i].workspace;
        to->state = CUBLAS_STATUS_SUCCESS;
        to->wavesCount = 1.0f;
    }
    return *returned > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
