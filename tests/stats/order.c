/* SPDX-License-Identifier: MIT */
/* Order statistics: table values, Pascal's triangle, laws, and coverage over
 * skewed distributions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

#include <string.h>

static void ranks_match_the_table(void **state)
{
    (void)state;
    static const struct {
        int n;
        double level;
        int lower, upper; /* 0: too few */
    } rows[] = {
        {5, 0.95, 0, 0},    {6, 0.95, 1, 6},    {7, 0.95, 1, 7},     {8, 0.95, 1, 8},
        {9, 0.95, 2, 8},    {10, 0.95, 2, 9},   {15, 0.95, 4, 12},   {20, 0.95, 6, 15},
        {30, 0.95, 10, 21}, {50, 0.95, 18, 33}, {100, 0.95, 40, 61}, {7, 0.99, 0, 0},
        {8, 0.99, 1, 8},    {20, 0.99, 4, 17},  {8, 0.992, 1, 8},    {1, 0.5, 0, 0},
        {2, 0.5, 1, 2},     {0, 0.95, 0, 0},    {-3, 0.95, 0, 0},
    };
    for (int i = 0; i < LENGTH(rows); i++) {
        int lower = 0, upper = 0;
        bool enough = dt_stats_median_ranks(rows[i].n, rows[i].level, &lower, &upper);
        assert_int_equal(enough, rows[i].lower > 0);
        assert_int_equal(lower, rows[i].lower);
        assert_int_equal(upper, rows[i].upper);
    }
}

/* Each sample is below or above the median with probability 1/2: rows of
 * Pascal's triangle over 2^n. */
static void ranks_are_the_tightest_that_cover(void **state)
{
    (void)state;
    static const double levels[] = {0.5, 0.9, 0.95, 0.98, 0.988, 0.99, 0.992, 0.999};
    double row[301] = {1};
    for (int n = 1; n <= 300; n++) {
        for (int k = n; k >= 0; k--)
            row[k] = (row[k] + (k > 0 ? row[k - 1] : 0)) / 2;
        for (int i = 0; i < LENGTH(levels); i++) {
            int tightest = 0, lower = 0, upper;
            double tail = row[0];
            for (int l = 1; l <= n + 1 - l; tail += row[l++])
                if (1 - 2 * tail >= levels[i] - 1e-12)
                    tightest = l;
            bool enough = dt_stats_median_ranks(n, levels[i], &lower, &upper);
            assert_int_equal(enough, tightest > 0);
            assert_int_equal(lower, tightest);
            if (enough)
                assert_int_equal(upper, n + 1 - lower);
        }
    }
}

static void estimates_match_closed_forms(void **state)
{
    (void)state;
    const double x[] = {4, 1, 3, 2, 10};
    double before[LENGTH(x)];
    memcpy(before, x, sizeof x);
    assert_true(dt_stats_median(x, 5) == 3);
    assert_true(dt_stats_median(x, 4) == 2.5);
    assert_true(dt_stats_mean(x, 5) == 4);
    assert_true(dt_stats_quantile(x, 5, 0) == 1);
    assert_true(dt_stats_quantile(x, 5, 1) == 10);
    assert_true(dt_stats_quantile(x, 5, 0.25) == 2);
    assert_near(dt_stats_quantile(x, 5, 0.9), 4 + 0.6 * 6, 1e-12);
    assert_true(isnan(dt_stats_quantile(x, 5, -0.1)) && isnan(dt_stats_quantile(x, 5, 1.1)));
    assert_true(isnan(dt_stats_quantile(x, 5, NAN)) && isnan(dt_stats_quantile(x, 0, 0.5)));
    assert_true(isnan(dt_stats_median(x, 0)) && isnan(dt_stats_mean(x, 0)));
    assert_true(isnan(dt_stats_median_interval(x, 5, 0.95).low));
    assert_true(isnan(dt_stats_median_interval(x, 5, 1.5).high));
    assert_memory_equal(x, before, sizeof x);
}

static void estimates_keep_symmetry_and_scale(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(1, "laws");
    for (int n = 6; n <= 60; n++) {
        double x[60], turned[60], scaled[60], mirrored[60];
        for (int i = 0; i < n; i++)
            x[i] = skewed(&rng);
        for (int i = 0; i < n; i++) {
            turned[i] = x[(i + n / 3) % n];
            scaled[i] = 8 * x[i];
            mirrored[i] = -x[i];
        }
        struct dt_interval interval = dt_stats_median_interval(x, n, 0.95),
                           wide = dt_stats_median_interval(scaled, n, 0.95),
                           mirror = dt_stats_median_interval(mirrored, n, 0.95);
        double median = dt_stats_median(x, n);
        assert_true(dt_stats_median(turned, n) == median);
        assert_true(dt_stats_median(scaled, n) == 8 * median);
        assert_true(dt_stats_median(mirrored, n) == -median);
        assert_true(wide.low == 8 * interval.low && wide.high == 8 * interval.high);
        assert_true(mirror.low == -interval.high && mirror.high == -interval.low);
        assert_true(interval.low <= median && median <= interval.high);
    }
}

static void quantiles_by_the_definition(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(2, "quantiles");
    for (int n = 1; n <= 40; n++) {
        double x[40], sorted[40];
        for (int i = 0; i < n; i++) {
            int k = i;
            x[i] = pareto(&rng);
            for (; k > 0 && sorted[k - 1] > x[i]; k--)
                sorted[k] = sorted[k - 1];
            sorted[k] = x[i];
        }
        for (int p = 0; p <= 20; p++) {
            double at = (n - 1) * (p / 20.0), below = floor(at);
            int k = (int)below, next = k + 1 < n ? k + 1 : k;
            double expected = sorted[k] + (at - below) * (sorted[next] - sorted[k]);
            assert_near(dt_stats_quantile(x, n, p / 20.0), expected, 1e-9);
        }
    }
}

/* Coverage is exact for any continuous distribution: within the band around the binomial
 * probability, both sides. */
static void coverage_is_exact(void **state)
{
    (void)state;
    enum { REPLICATES = 3000 };
    static const struct {
        int n;
        double coverage; /* of the ranks above */
    } rows[] = {{6, 0.96875}, {10, 0.978516}, {20, 0.958611}, {30, 0.957226}};
    for (int d = 0; d < LENGTH(noises); d++)
        for (int k = 0; k < LENGTH(rows); k++) {
            struct dt_rng rng = {.seed = 3, .stream = (uint64_t)(d * 10 + k)};
            int held = 0;
            for (int i = 0; i < REPLICATES; i++) {
                double x[30];
                for (int j = 0; j < rows[k].n; j++)
                    x[j] = noises[d].draw(&rng);
                struct dt_interval interval = dt_stats_median_interval(x, rows[k].n, 0.95);
                held += interval.low <= noises[d].median && noises[d].median <= interval.high;
            }
            double off = (double)held / REPLICATES - rows[k].coverage;
            assert_true(fabs(off) < margin(rows[k].coverage, REPLICATES));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_match_the_table),
        cmocka_unit_test(ranks_are_the_tightest_that_cover),
        cmocka_unit_test(estimates_match_closed_forms),
        cmocka_unit_test(estimates_keep_symmetry_and_scale),
        cmocka_unit_test(quantiles_by_the_definition),
        cmocka_unit_test(coverage_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
