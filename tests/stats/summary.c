/* SPDX-License-Identifier: MIT */
/* Summaries: fields by their definitions, and intervals of samples that depend on each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

static void fields_match_a_calculation_by_hand(void **state)
{
    (void)state;
    const double x[] = {7, 1, 2, 9, 4, 4, 3, 100};
    struct dt_summary summary = dt_stats_summary(x, 8, 0.992);
    assert_int_equal(summary.n, 8);
    assert_true(summary.median == 4 && summary.min == 1 && summary.max == 100);
    assert_true(summary.mean == 130 / 8.0 && summary.level == 0.992);
    assert_near(summary.mad, 2.5 * 1.482602218505602, 1e-9); /* deviations 0 0 1 2 3 3 5 96 */
    assert_true(summary.interval.low == 1 && summary.interval.high == 100);
    assert_false(summary.unreliable);
    assert_int_equal(summary.series.outliers_severe, 1);
    summary = dt_stats_summary(x, 5, 0.95);
    assert_true(summary.median == 4 && isnan(summary.interval.low) && isnan(summary.interval.high));
    summary = dt_stats_summary(x, 0, 0.95);
    assert_true(summary.n == 0 && isnan(summary.median) && isnan(summary.mad) &&
                isnan(summary.min));
    summary = dt_stats_summary(x, 1, 0.95);
    assert_true(summary.median == 7 && summary.mad == 0 && summary.mean == 7);
}

static void independent_samples_keep_the_plain_interval(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(51, "plain");
    int plain = 0;
    for (int i = 0; i < 500; i++) {
        double x[64];
        for (int j = 0; j < 64; j++)
            x[j] = machine(&rng);
        struct dt_summary summary = dt_stats_summary(x, 64, 0.95);
        struct dt_interval interval = dt_stats_median_interval(x, 64, 0.95);
        if (!summary.series.autocorrelated) {
            assert_true(summary.interval.low == interval.low);
            assert_true(summary.interval.high == interval.high);
            assert_false(summary.unreliable);
            plain++;
        }
    }
    assert_true(plain >= 480);
}

struct held {
    double plain, batched,
        unreliable; /* coverage of the plain interval; of those not called unreliable; their share */
};

static struct held follow(double rho, int n, int replicates)
{
    struct dt_rng rng = {.seed = 52, .stream = (uint64_t)n};
    int plain = 0, batched = 0, unreliable = 0;
    for (int i = 0; i < replicates; i++) {
        double x[128], z = dt_rng_normal(&rng);
        for (int j = 0; j < n; j++) {
            x[j] = exp(0.02 * z);
            z = rho * z + sqrt(1 - rho * rho) * dt_rng_normal(&rng);
        }
        struct dt_interval interval = dt_stats_median_interval(x, n, 0.95);
        struct dt_summary summary = dt_stats_summary(x, n, 0.95);
        plain += interval.low <= 1 && 1 <= interval.high;
        unreliable += summary.unreliable;
        batched += !summary.unreliable && summary.interval.low <= 1 && 1 <= summary.interval.high;
    }
    return (struct held){(double)plain / replicates, (double)batched / (replicates - unreliable),
                         (double)unreliable / replicates};
}

static void batches_restore_the_coverage(void **state)
{
    (void)state;
    struct held some = follow(0.6, 64, 1500), more = follow(0.6, 128, 700);
    assert_true(some.plain < 0.85 && more.plain < 0.85); /* the fault is there */
    assert_true(some.batched >= 0.90 && more.batched >= 0.90);
    assert_true(some.unreliable < 0.15);
}

/* No batch is long enough for a random walk, so the interval is flagged as unreliable. */
static void unreliable_intervals_are_flagged(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(53, "walk");
    int unreliable = 0;
    for (int i = 0; i < 300; i++) {
        double x[64], z = 0;
        for (int j = 0; j < 64; j++)
            x[j] = exp(0.01 * (z += dt_rng_normal(&rng)));
        unreliable += dt_stats_summary(x, 64, 0.98).unreliable;
    }
    assert_true(unreliable >= 180);
    double wave[16];
    for (int i = 0; i < 16; i++)
        wave[i] = i < 4 || i >= 12 ? 1 + 0.001 * i : 2 + 0.001 * i;
    struct dt_summary few =
        dt_stats_summary(wave, 16, 0.99); /* three batches cannot reach the level */
    assert_true(few.series.autocorrelated && few.unreliable);
    assert_true(isfinite(few.interval.low) && isfinite(few.interval.high));
}

/* The 97.5 % quantile of a normal is 1.959964: an interval of the median of e^-0.0392 ..
 * e^0.0392 is one of 0.02. */
static void variance_of_the_log_median(void **state)
{
    (void)state;
    struct dt_summary summary = {.interval = {3 * exp(-0.03919928), 3 * exp(0.03919928)},
                                 .level = 0.95};
    assert_true(fabs(dt_stats_log_variance(&summary) - 4e-4) < 1e-9);
    summary.interval = (struct dt_interval){NAN, NAN};
    assert_true(isnan(dt_stats_log_variance(&summary)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variance_of_the_log_median),
        cmocka_unit_test(fields_match_a_calculation_by_hand),
        cmocka_unit_test(independent_samples_keep_the_plain_interval),
        cmocka_unit_test(batches_restore_the_coverage),
        cmocka_unit_test(unreliable_intervals_are_flagged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
