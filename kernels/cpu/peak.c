/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/gemm_int.h"
#include "kernels/cpu/simd.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1024 }; /* rows, inputs and outputs of the product */

/* The best of several products: a peak is the machine's maximum, not its average. */
static double best_rate(struct dt_linear *linear, const struct dt_linear_call *call)
{
    double best = 0.0;
    int64_t end = dt_clock_ns() + 300000000;
    for (int64_t start = 0; start < end;) {
        start = dt_clock_ns();
        dt_linear_run(linear, call);
        double rate = 2.0 * N * N * N * 1e9 / (double)(dt_clock_ns() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

/* The same bytes serve as input, plain weight and bias; any values but zeros, which some processors multiply faster. In
 * bfloat16 the input's bytes are read as twice as many numbers, all finite. */
dt_status dt_cpu_peak(struct dt_device *device, enum dt_dtype dtype, double *flop_rate)
{
    const size_t size = (size_t)N * N;
    const struct dt_linear_shape shape = {.rows = N, .in = N, .out = N};
    struct dt_linear *linear = NULL;
    (void)device;
    float *x = aligned_alloc(64, 3 * size * sizeof *x);
    if (x == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a product of %d x %d", N, N);
    for (size_t i = 0; i < 3 * size; i++)
        x[i] = (float)(i % 7) - 3.0f;
    const struct dt_linear_call call = {x, x + size, x, x + 2 * size};
    dt_status status = dt_gemm(dtype)->pack(dtype, x, N, N, x + size);
    if (status == DT_OK)
        status = dt_linear_new(dtype, &shape, &linear);
    if (status == DT_OK)
        *flop_rate = best_rate(linear, &call);
    dt_linear_free(linear);
    free(x);
    return status;
}

const struct dt_version *dt_cpu_versions(void)
{
    enum { ROOM = 8 };
    static struct dt_version versions[ROOM];
    int n = 0;
    for (int i = 0; dt_gemm_rows()[i] != NULL && n < ROOM - 2; i++)
        versions[n++] = (struct dt_version){dt_gemm_rows()[i]->name, dt_gemm_rows()[i]->version()};
    versions[n] = (struct dt_version){"simd", dt_simd(DT_FLOAT32)->name};
    return versions;
}
