/* SPDX-License-Identifier: MIT */
/* The loops over rows against their definitions, for sizes below, at and above
 * what they take at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "search/bayes/process.h"

#include <math.h>

enum { MOST = 37, STRIDE = 41 };

static const int sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, MOST};
#define SIZES (sizeof sizes / sizeof sizes[0])

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* A positive definite matrix: its own product, and 1 on the diagonal. The part above the
 * diagonal must not be read. */
static void fill(double matrix[MOST * STRIDE], int n)
{
    double root[MOST][MOST];
    struct dt_rng rng = dt_rng_at(7, "rows");
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            root[i][j] = dt_rng_normal(&rng);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = i == j;
            for (int k = 0; k < n; k++)
                sum += root[i][k] * root[j][k];
            matrix[i * STRIDE + j] = j <= i ? sum : NAN;
        }
}

static double at(const double matrix[], int i, int j)
{
    return matrix[(i > j ? i : j) * STRIDE + (i > j ? j : i)];
}

static void subtracts_weighted_rows(void **state)
{
    (void)state;
    float rows[MOST * STRIDE], weights[MOST], out[STRIDE];
    struct dt_rng rng = dt_rng_at(8, "rows");
    for (int i = 0; i < MOST * STRIDE; i++)
        rows[i] = (float)dt_rng_normal(&rng);
    for (int k = 0; k < MOST; k++)
        weights[k] = (float)dt_rng_normal(&rng);
    for (size_t s = 0; s < SIZES; s++) {
        for (int i = 0; i < STRIDE; i++)
            out[i] = (float)i;
        dt_rows_subtract(weights, rows, STRIDE, sizes[s], out, STRIDE - 1);
        for (int i = 0; i < STRIDE - 1; i++) {
            double want = i;
            for (int k = 0; k < sizes[s]; k++)
                want -= (double)weights[k] * (double)rows[k * STRIDE + i];
            assert_near((double)out[i], want, 1e-4);
        }
        assert_true(out[STRIDE - 1] == STRIDE - 1);
    }
}

static void factors_solves_and_inverts(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        static double matrix[MOST * STRIDE], factor[MOST * STRIDE];
        const int n = sizes[s];
        double x[MOST];
        fill(matrix, n);
        fill(factor, n);
        assert_true(dt_rows_factor(factor, STRIDE, n));
        for (int i = 0; i < n; i++)
            x[i] = i + 1;
        dt_rows_solve(factor, STRIDE, n, x);
        dt_rows_solve_transposed(factor, STRIDE, n, x);
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int j = 0; j < n; j++)
                sum += at(matrix, i, j) * x[j];
            assert_near(sum, i + 1, 1e-9);
        }
        dt_rows_invert(factor, STRIDE, n);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int k = 0; k < n; k++)
                    sum += at(matrix, i, k) * at(factor, k, j);
                assert_near(sum, i == j, 1e-9);
            }
    }
}

static void refuses_indefinite_matrices(void **state)
{
    (void)state;
    double zero[1] = {0}, none[1] = {NAN}, saddle[4] = {1, 0, 2, 1};
    assert_false(dt_rows_factor(zero, 1, 1));
    assert_false(dt_rows_factor(none, 1, 1));
    assert_false(dt_rows_factor(saddle, 2, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subtracts_weighted_rows),
        cmocka_unit_test(factors_solves_and_inverts),
        cmocka_unit_test(refuses_indefinite_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
