/* SPDX-License-Identifier: MIT */
/* cuBLASLt's descriptions: created, set and destroyed. An attribute that is not in the fake is a
 * complaint, not a guess. */
#include "tests/fake_cuda/blas/lt_int.h"

#include <stdlib.h>
#include <string.h>

/* Every call needs a device, as the real library does; faults name the
 * function and give its code. */
cublasStatus_t lt_enter(const char *name)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    fake_lock();
    const struct fake_fault *fault = fake_fault(name, fake_current());
    fake_unlock();
    return fault != NULL ? (cublasStatus_t)fault->code : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    cublasStatus_t status = lt_enter(__func__);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    void *made = calloc(1, 16);
    if (fake_enter("cublasLtCreate context") != cudaSuccess || made == NULL) {
        free(made);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
    return CUDART_VERSION;
}

#define STATUS(name)                                                                               \
    case name:                                                                                     \
        return #name

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
        STATUS(CUBLAS_STATUS_SUCCESS);
        STATUS(CUBLAS_STATUS_NOT_INITIALIZED);
        STATUS(CUBLAS_STATUS_ALLOC_FAILED);
        STATUS(CUBLAS_STATUS_INVALID_VALUE);
        STATUS(CUBLAS_STATUS_ARCH_MISMATCH);
        STATUS(CUBLAS_STATUS_EXECUTION_FAILED);
        STATUS(CUBLAS_STATUS_INTERNAL_ERROR);
        STATUS(CUBLAS_STATUS_NOT_SUPPORTED);
    default:
        return "CUBLAS_STATUS unknown";
    }
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return cublasLtGetStatusName(status);
}

static cublasStatus_t made(void **out, const void *value, size_t size)
{
    void *copy = malloc(size);
    if (copy == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(copy, value, size);
    *out = copy;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    struct lt_product product = {.compute = (int32_t)compute,
                                 .scale = (int32_t)scale,
                                 .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                                 .bias_type = -1};
    cublasStatus_t status = lt_enter(__func__);
    return status != CUBLAS_STATUS_SUCCESS ? status : made((void **)out, &product, sizeof product);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    free(product);
    return CUBLAS_STATUS_SUCCESS;
}

/* An attribute's place and size. */
struct place {
    int attribute;
    void *at;
    size_t size;
};

static cublasStatus_t put(const struct place *places, size_t count, int attribute,
                          const void *value, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (places[i].attribute == attribute) {
            if (value == NULL || size != places[i].size) {
                fake_complain("cuBLASLt: attribute %d has %zu bytes, not %zu", attribute,
                              places[i].size, size);
                return CUBLAS_STATUS_INVALID_VALUE;
            }
            memcpy(places[i].at, value, size);
            return CUBLAS_STATUS_SUCCESS;
        }
    fake_complain("cuBLASLt: attribute %d is not in the fake", attribute);
    return CUBLAS_STATUS_INVALID_VALUE;
}

#define PUT(places, attribute, value, size)                                                        \
    put(places, sizeof(places) / sizeof((places)[0]), (int)(attribute), value, size)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    struct lt_product *to = (struct lt_product *)desc;
    int32_t ignored;
    const struct place places[] = {
        {CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &to->compute, 4},
        {CUBLASLT_MATMUL_DESC_SCALE_TYPE, &to->scale, 4},
        {CUBLASLT_MATMUL_DESC_TRANSA, &to->transposed[0], 4},
        {CUBLASLT_MATMUL_DESC_TRANSB, &to->transposed[1], 4},
        {CUBLASLT_MATMUL_DESC_TRANSC, &to->transposed[2], 4},
        {CUBLASLT_MATMUL_DESC_EPILOGUE, &to->epilogue, 4},
        {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &to->bias, sizeof to->bias},
        {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &to->bias_stride, 8},
        {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &to->bias_type, 4},
        {CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &ignored, 4},
    };
    return PUT(places, attribute, value, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    struct lt_layout layout = {.type = (uint32_t)type,
                               .order = CUBLASLT_ORDER_COL,
                               .rows = rows,
                               .cols = cols,
                               .ld = ld,
                               .batch = 1};
    cublasStatus_t status = lt_enter(__func__);
    return status != CUBLAS_STATUS_SUCCESS ? status : made((void **)out, &layout, sizeof layout);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t size)
{
    struct lt_layout *to = (struct lt_layout *)layout;
    const struct place places[] = {
        {CUBLASLT_MATRIX_LAYOUT_TYPE, &to->type, 4},
        {CUBLASLT_MATRIX_LAYOUT_ORDER, &to->order, 4},
        {CUBLASLT_MATRIX_LAYOUT_ROWS, &to->rows, 8},
        {CUBLASLT_MATRIX_LAYOUT_COLS, &to->cols, 8},
        {CUBLASLT_MATRIX_LAYOUT_LD, &to->ld, 8},
        {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &to->batch, 4},
        {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &to->stride, 8},
    };
    return PUT(places, attribute, value, size);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    struct lt_preference preference = {.align = {256, 256, 256, 256}};
    cublasStatus_t status = lt_enter(__func__);
    return status != CUBLAS_STATUS_SUCCESS ? status
                                           : made((void **)out, &preference, sizeof preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    struct lt_preference *to = (struct lt_preference *)preference;
    const struct place places[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &to->workspace, 8},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &to->align[0], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &to->align[1], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &to->align[2], 4},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &to->align[3], 4},
    };
    return PUT(places, attribute, value, size);
}
