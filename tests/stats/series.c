/* SPDX-License-Identifier: MIT */
/* Diagnostics of a series: exact values, variances by all permutations, the rate of false
 * alarms, planted faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "stats/stats_int.h"
#include "tests/stats/noise.h"

static void a_straight_rise_is_flagged(void **state)
{
    (void)state;
    double x[10], rank[10];
    for (int i = 0; i < 10; i++)
        rank[i] = i + 1, x[i] = exp(i);
    struct dt_series series = dt_stats_series(x, 10);
    assert_near(series.trend_z, 44 / sqrt(125.0), 1e-12); /* S = 45, variance 10 * 9 * 25 / 18 */
    assert_near(series.split, 12.5 / sqrt(25 * 11 / 12.0), 1e-12);
    assert_near(series.lag1, 0.7, 1e-12); /* of 1..n: 1 - 3 / n */
    assert_true(series.drifting && series.stepped && !series.bimodal);
    for (int i = 0; i < 10; i++)
        x[i] = -x[i];
    assert_near(dt_stats_series(x, 10).trend_z, -44 / sqrt(125.0), 1e-12);
    assert_near(dt_split_z(rank, 10), series.split, 1e-12);
}

/* Visits every order of x[at..n-1] and adds up the squares of both numerators of the rank tests. */
static void permute(double x[], int n, int at, double *trend, double *split)
{
    if (at == n) {
        double s = 0, sum = 0;
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                s += (x[j] > x[i]) - (x[j] < x[i]);
        for (int i = 0; i < 2; i++)
            sum += x[i];
        *trend += s * s;
        *split += sum * sum;
        return;
    }
    for (int i = at; i < n; i++) {
        double keep = x[at];
        x[at] = x[i], x[i] = keep;
        permute(x, n, at + 1, trend, split);
        keep = x[at], x[at] = x[i], x[i] = keep;
    }
}

/* Ties shrink the variances: those of the statistics must be those over all 720 orders. */
static void ties_by_all_permutations(void **state)
{
    (void)state;
    double x[] = {1, 1, 2, 3, 3, 3}, sorted[] = {1, 1, 2, 3, 3, 3}, rank[6];
    double trend = 0, split = 0;
    double s = 11; /* of the sorted order: 15 pairs less 1 + 3 that tie */
    permute(x, 6, 0, &trend, &split);
    assert_near(dt_trend_z(sorted, 6), (s - 1) / sqrt(trend / 720), 1e-12);
    dt_midranks(sorted, 6, sorted, rank);
    static const double expected[] = {1.5, 1.5, 3, 5, 5, 5};
    for (int i = 0; i < 6; i++)
        assert_true(rank[i] == expected[i]);
    double centred[6];
    for (int i = 0; i < 6; i++)
        centred[i] = rank[i] - 3.5;
    trend = split = 0;
    permute(centred, 6, 0, &trend, &split);
    /* the rest of the ties stand together: the best cut is before or after the 3 */
    double two = 4 / sqrt(split / 720), three = 4.5 / sqrt(split / 720 * (3 * 3) / (2.0 * 4));
    assert_near(dt_split_z(rank, 6), fmax(two, three), 1e-12);
}

static void equal_and_few_samples(void **state)
{
    (void)state;
    const double x[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    struct dt_series series = dt_stats_series(x, LENGTH(x));
    assert_true(series.lag1 == 0 && series.trend_z == 0 && series.split == 0);
    assert_false(series.drifting || series.stepped || series.autocorrelated || series.bimodal);
    assert_int_equal(series.outliers_mild + series.outliers_severe, 0);
    series = dt_stats_series(x, 2);
    assert_true(isnan(series.lag1) && isnan(series.trend_z) && isnan(series.split));
    series = dt_stats_series(NULL, 0);
    assert_false(series.drifting || series.stepped || series.autocorrelated || series.bimodal);
}

static void outliers_are_beyond_the_fences(void **state)
{
    (void)state;
    /* quartiles 3 and 7: fences at -3 and 13, -9 and 19 */
    const double x[] = {3, 5, 7, 3, 5, 7, 3, 5, 7, 13, 13.1, 19, 19.1, -3.1, -9, -9.1, 5};
    double low = dt_stats_quantile(x, LENGTH(x), 0.25),
           high = dt_stats_quantile(x, LENGTH(x), 0.75);
    assert_true(low == 3 && high == 7);
    struct dt_series series = dt_stats_series(x, LENGTH(x));
    assert_int_equal(series.outliers_mild, 4);
    assert_int_equal(series.outliers_severe, 2);
}

enum { REPLICATES = 2000 };

struct alarms {
    double drifting, stepped, autocorrelated, bimodal;
};

static struct alarms rates(void (*fill)(double x[], int n, struct dt_rng *rng), int n,
                           int replicates)
{
    struct dt_rng rng = {.seed = 21, .stream = (uint64_t)n};
    struct alarms alarms = {0};
    for (int i = 0; i < replicates; i++) {
        double x[64];
        fill(x, n, &rng);
        struct dt_series series = dt_stats_series(x, n);
        alarms.drifting += (double)series.drifting / replicates;
        alarms.stepped += (double)series.stepped / replicates;
        alarms.autocorrelated += (double)series.autocorrelated / replicates;
        alarms.bimodal += (double)series.bimodal / replicates;
    }
    return alarms;
}

static void quiet(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = machine(rng);
}

static void uniform(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = 1 + dt_rng_uniform(rng);
}

static void heavy(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = pareto(rng);
}

static void one_false_alarm_in_a_hundred(void **state)
{
    (void)state;
    static const int lengths[] = {8, 10, 11, 13, 16, 21, 40, 64};
    static void (*const fills[])(double[], int, struct dt_rng *) = {quiet, uniform, heavy};
    double most = 0.01 + margin(0.01, REPLICATES), least = 0.01 - margin(0.01, REPLICATES);
    for (int f = 0; f < LENGTH(fills); f++)
        for (int k = 0; k < LENGTH(lengths); k++) {
            struct alarms alarms = rates(fills[f], lengths[k], REPLICATES);
            assert_true(alarms.drifting <= most && alarms.stepped <= most);
            assert_true(alarms.autocorrelated <= most && alarms.bimodal <= most);
            if (lengths[k] >= 32) { /* and not by being deaf: below, the statistics are coarse */
                assert_true(alarms.drifting >= least && alarms.stepped >= least);
                assert_true(alarms.autocorrelated >= least);
                assert_true(fills[f] != uniform || alarms.bimodal >= least);
            }
        }
}

static void drift(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = machine(rng) * (1 + 0.02 * i / (n - 1));
}

static void step(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = machine(rng) * (i < n / 2 ? 1 : 1.02);
}

static void modes(double x[], int n, struct dt_rng *rng)
{
    for (int i = 0; i < n; i++)
        x[i] = (dt_rng_uniform(rng) < 0.6 ? 1 : 1.08) * exp(0.01 * dt_rng_normal(rng));
}

static void dependent(double x[], int n, struct dt_rng *rng)
{
    double z = dt_rng_normal(rng);
    for (int i = 0; i < n; i++) {
        x[i] = exp(0.02 * z);
        z = 0.6 * z + 0.8 * dt_rng_normal(rng);
    }
}

static void planted_faults_are_seen(void **state)
{
    (void)state;
    assert_true(rates(drift, 40, 600).drifting >= 0.70);
    assert_true(rates(drift, 64, 600).drifting >= 0.90);
    assert_true(rates(step, 20, 600).stepped >= 0.65);
    assert_true(rates(step, 40, 600).stepped >= 0.95);
    assert_true(rates(modes, 64, 600).bimodal >= 0.95);
    assert_true(rates(dependent, 64, 600).autocorrelated >= 0.95);
}

/* Every statistic but the dip is one of ranks, and the dip does not see where and how wide. */
static void the_scale_does_not_matter(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(5, "scale");
    for (int n = 8; n <= 64; n += 7) {
        double x[64], far[64];
        dependent(x, n, &rng);
        for (int i = 0; i < n; i++)
            far[i] = 1024 * x[i];
        struct dt_series a = dt_stats_series(x, n), b = dt_stats_series(far, n);
        assert_true(a.lag1 == b.lag1 && a.trend_z == b.trend_z && a.split == b.split);
        assert_true(a.bimodal == b.bimodal && a.outliers_mild == b.outliers_mild);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_straight_rise_is_flagged),
        cmocka_unit_test(ties_by_all_permutations),
        cmocka_unit_test(equal_and_few_samples),
        cmocka_unit_test(outliers_are_beyond_the_fences),
        cmocka_unit_test(one_false_alarm_in_a_hundred),
        cmocka_unit_test(planted_faults_are_seen),
        cmocka_unit_test(the_scale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
