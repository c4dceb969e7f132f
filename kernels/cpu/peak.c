/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "kernels/cpu/simd.h"
#include "kernels/forward.h"

#include <cblas.h>
#include <omp.h>
#include <stdlib.h>

/* The best of several products of 1024^3: a peak is what the machine can do, not what it does on average. */
double dt_gemm_peak(int threads)
{
    enum { N = 1024 };
    const size_t size = (size_t)N * N;
    float *a = aligned_alloc(64, 3 * size * sizeof *a);
    double best = 0.0;
    if (a == NULL)
        return 0.0;
    for (size_t i = 0; i < 3 * size; i++)
        a[i] = (float)(i % 7) - 3.0f;
    omp_set_num_threads(threads);
    int64_t end = dt_clock_ns() + 300000000;
    for (int64_t start = 0; start < end;) {
        start = dt_clock_ns();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1.0f, a, N, a + size, N, 0.0f,
                    a + 2 * size, N);
        double rate = 2.0 * N * N * N * 1e9 / (double)(dt_clock_ns() - start);
        best = rate > best ? rate : best;
    }
    free(a);
    return best;
}

const struct dt_version *dt_kernel_versions(void)
{
    static struct dt_version versions[3] = {{"openblas", NULL}, {"simd", NULL}, {NULL, NULL}};
    versions[0].version = openblas_get_config();
    versions[1].version = dt_simd()->name;
    return versions;
}
