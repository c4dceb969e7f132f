/* SPDX-License-Identifier: MIT */
/* The OpenMP flavour, which shares the threads of our own loops. Bias and activation
 * are a separate pass. */
#include "kernels/cpu/gemm_int.h"
#include "kernels/cpu/simd.h"

#include <cblas.h>
#include <string.h>

static bool openblas_usable(enum dt_dtype dtype)
{
    return dtype == DT_FLOAT32;
}

static const char *openblas_version(void)
{
    return openblas_get_config();
}

static dt_status openblas_pack(enum dt_dtype dtype, const float *weight, int in, int out,
                               void *packed)
{
    (void)dtype;
    memcpy(packed, weight, (size_t)in * (size_t)out * sizeof *weight);
    return DT_OK;
}

static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    (void)dtype;
    return (int64_t)row * in * (int64_t)sizeof(float);
}

static void openblas_run(void *own, const struct dt_linear_shape *shape,
                         const struct dt_linear_call *call)
{
    (void)own;
    const struct dt_simd *simd = dt_simd(DT_FLOAT32);
    float *y = call->y;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, shape->rows, shape->out, shape->in, 1.0f,
                call->x, shape->in, call->weight, shape->in, 0.0f, y, shape->out);
#pragma omp parallel for schedule(static)
    for (int row = 0; row < shape->rows; row++)
        simd->activate(y + (int64_t)row * shape->out, call->bias, shape->out, shape->act);
}

const struct dt_gemm dt_gemm_openblas = {
    .name = "openblas",
    .usable = openblas_usable,
    .version = openblas_version,
    .pack = openblas_pack,
    .weight_row = weight_row,
    .run = openblas_run,
};
