/* SPDX-License-Identifier: MIT */
/* Compares the row operations of every instruction set of this processor with
 * plain float64 formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/cpu/simd.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdio.h>

static void exp_is_exact_to_a_few_ulp(void **state)
{
    (void)state;
    enum { N = 100003 };
    static float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = -87.0f + 175.0f * (float)i / (N - 1);
    for (int i = 0; dt_simd_rows()[i] != NULL; i++) {
        double worst = 0.0;
        if (!dt_simd_usable(i))
            continue;
        dt_simd_rows()[i]->exp(x, y, N);
        for (int j = 0; j < N; j++) {
            double want = exp((double)x[j]), error = fabs((double)y[j] - want) / want;
            worst = error > worst || isnan(error) ? error : worst;
        }
        print_message("%s: %.2f ulp\n", dt_simd_rows()[i]->name, worst * 0x1p24);
        assert_true(worst < 3 * 0x1p-24);
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void activations_match_float64(void **state)
{
    (void)state;
    for (int i = 0; dt_simd_rows()[i] != NULL; i++) {
        const struct dt_simd *simd = dt_simd_rows()[i];
        for (int n = 1; dt_simd_usable(i) && n < 80; n += 1) {
            float *x = seeded(n, "x", 3.0f), *b = seeded(n, "b", 0.5f);
            float *y = seeded(n, "x", 3.0f), *z = seeded(n, "x", 3.0f);
            simd->activate(y, b, n, DT_ACT_GELU);
            simd->activate(z, b, n, DT_ACT_SILU);
            for (int j = 0; j < n; j++) {
                double in = (double)(x[j] + b[j]);
                assert_true(fabs((double)y[j] - gelu(in)) < 2e-6);
                assert_true(fabs((double)z[j] - in / (1.0 + exp(-in))) < 2e-6);
            }
            free(x);
            free(b);
            free(y);
            free(z);
        }
    }
}

/* x += gate branch, and the modulated norm of it; without a branch the norm alone. */
static void check_row(const struct dt_simd *simd, int n, bool gated)
{
    enum dt_dtype dtype = simd->dtype;
    float *x = seeded(n, "x", 3.0f), *was = seeded(n, "x", 3.0f), *gate = seeded(n, "g", 0.7f);
    float *shift = seeded(n, "b", 0.5f), *scale = seeded(n, "s", 0.5f), *z = seeded(n, "z", 1.0f);
    void *branch = activations(dtype, z, n), *y = activations(dtype, z, n);
    struct dt_row row = {x, branch, gate, shift, scale, y, n};
    double mean = 0.0, variance = 0.0, rounding = dtype == DT_FLOAT32 ? 0.0 : 0x1p-8;
    if (gated)
        simd->residual(&row);
    else
        simd->modulate(&row);
    for (int j = 0; j < n; j++) {
        double more = gated ? (double)gate[j] * (double)value(dtype, branch, j) : 0.0;
        assert_true(fabs((double)x[j] - ((double)was[j] + more)) < 1e-6);
        mean += (double)x[j] / n;
    }
    for (int j = 0; j < n; j++)
        variance += pow((double)x[j] - mean, 2) / n;
    for (int j = 0; j < n; j++) {
        double unit = ((double)x[j] - mean) / sqrt(variance + 1e-6);
        double want = unit * (1.0 + (double)scale[j]) + (double)shift[j];
        assert_true(fabs((double)value(dtype, y, j) - want) < 1e-5 + rounding * fabs(want));
    }
    free(x);
    free(was);
    free(gate);
    free(shift);
    free(scale);
    free(z);
    free(branch);
    free(y);
}

static void rows_match_float64(void **state)
{
    (void)state;
    for (int i = 0; dt_simd_rows()[i] != NULL; i++)
        for (int n = 1; dt_simd_usable(i) && n < 80; n++) {
            check_row(dt_simd_rows()[i], n, false);
            check_row(dt_simd_rows()[i], n, true);
        }
}

/* To the nearest bfloat16: half of its last place at most. */
static void narrowing_rounds(void **state)
{
    (void)state;
    for (int i = 0; dt_simd_rows()[i] != NULL; i++) {
        const struct dt_simd *simd = dt_simd_rows()[i];
        for (int n = 1; simd->narrow != NULL && dt_simd_usable(i) && n < 40; n++) {
            float *x = seeded(n, "x", 3.0f);
            void *y = activations(simd->dtype, x, n);
            simd->narrow(x, y, n);
            for (int j = 0; j < n; j++)
                assert_true(fabsf(value(simd->dtype, y, j) - x[j]) <= 0x1p-8f * fabsf(x[j]));
            free(x);
            free(y);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_exact_to_a_few_ulp),
        cmocka_unit_test(activations_match_float64),
        cmocka_unit_test(rows_match_float64),
        cmocka_unit_test(narrowing_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
