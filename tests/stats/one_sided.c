/* SPDX-License-Identifier: MIT */
/* Signed ranks against all sign patterns, counted; Welch against Student's table and the closed form at two degrees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stats/stats.h"

#include <math.h>

/* The rank of |x[i]| among the non-zero sizes, twice, by counting. */
static int twice_rank(const double x[], int n, int i)
{
    int below = 0, equal = 0;
    for (int j = 0; j < n; j++) {
        below += x[j] != 0 && fabs(x[j]) < fabs(x[i]);
        equal += fabs(x[j]) == fabs(x[i]);
    }
    return 2 * below + equal + 1;
}

/* Share of all 2^n sign patterns whose positive ranks sum up to what was seen or more. */
static double counted(const double x[], int n)
{
    int rank[16], m = 0, seen = 0, as_much = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] == 0)
            continue;
        rank[m] = twice_rank(x, n, i);
        seen += x[i] > 0 ? rank[m] : 0;
        m++;
    }
    for (int signs = 0; signs < 1 << m; signs++) {
        int sum = 0;
        for (int i = 0; i < m; i++)
            sum += (signs >> i & 1) != 0 ? rank[i] : 0;
        as_much += sum >= seen;
    }
    return (double)as_much / (1 << m);
}

static void signed_rank_is_exact(void **state)
{
    struct dt_rng rng = dt_rng_at(4, "signs");
    (void)state;
    for (int n = 0; n <= 12; n++) {
        for (int k = 0; k < 20; k++) {
            double x[16];
            for (int i = 0; i < n; i++) /* half of the rounds with ties and zeros */
                x[i] = k % 2 == 0 ? dt_rng_normal(&rng) : (double)dt_rng_below(&rng, 9) - 3;
            assert_true(fabs(dt_stats_signed_rank(x, n) - counted(x, n)) < 1e-12);
        }
    }
    double ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1 + i;
    assert_true(fabs(dt_stats_signed_rank(ones, 64) / pow(0.5, 64) - 1) < 1e-9);
}

/* Two samples of two with one variance: two degrees of freedom, where Student's tail is (1 - t / sqrt(t^2 + 2)) / 2. */
static void welch_of_two_and_two(void **state)
{
    (void)state;
    for (int k = -20; k <= 20; k++) {
        double a[] = {k - 1.0, k + 1.0}, b[] = {-1, 1};
        double t = k / sqrt(2);
        assert_true(fabs(dt_stats_welch(a, 2, b, 2) - (1 - t / sqrt(t * t + 2)) / 2) < 1e-12);
    }
}

/* Student's table: 2.228 is the two-sided 5 % point at 10 degrees of freedom, 1.812 the one-sided. */
static void welch_by_the_table(void **state)
{
    (void)state;
    static const double shape[] = {-2, -1, 0, 0, 1, 2}; /* variance 2, of the mean 1/3 */
    static const double table[][2] = {{2.228139, 0.025}, {1.812461, 0.05}, {-1.812461, 0.95}};
    for (int k = 0; k < 3; k++) {
        double a[6];
        for (int i = 0; i < 6; i++)
            a[i] = shape[i] + table[k][0] * sqrt(2.0 / 3);
        assert_true(fabs(dt_stats_welch(a, 6, shape, 6) - table[k][1]) < 1e-6);
    }
    assert_true(isnan(dt_stats_welch(shape, 1, shape, 6)));
    static const double same[] = {3, 3, 3};
    assert_true(dt_stats_welch(same, 3, same, 3) == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_rank_is_exact),
        cmocka_unit_test(welch_of_two_and_two),
        cmocka_unit_test(welch_by_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
