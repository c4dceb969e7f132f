/* SPDX-License-Identifier: MIT */
/* An effect of the process's start, planted beside the noise within: the interval over process
 * medians holds the truth, that of the pooled samples does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

#define PROCESS 0.01
#define WITHIN  0.01

/* steps samples of one process, around 1. */
static void start(struct dt_rng *rng, int steps, double x[])
{
    double effect = exp(PROCESS * dt_rng_normal(rng));
    for (int i = 0; i < steps; i++)
        x[i] = effect * exp(WITHIN * dt_rng_normal(rng));
}

static bool holds(struct dt_interval interval, double truth)
{
    return interval.low <= truth && truth <= interval.high;
}

static void covers_the_next_process(void **state)
{
    (void)state;
    enum { REPLICATES = 4000, PROCESSES = 5, STEPS = 6 };
    struct dt_rng rng = {.seed = 5, .stream = 1};
    int over = 0, pooled = 0, one = 0, two = 0;
    double width = 0;
    for (int r = 0; r < REPLICATES; r++) {
        double x[PROCESSES * STEPS], medians[PROCESSES], alone[PROCESSES * STEPS];
        for (int p = 0; p < PROCESSES; p++) {
            start(&rng, STEPS, x + p * STEPS);
            medians[p] = dt_stats_median(x + p * STEPS, STEPS);
        }
        start(&rng, PROCESSES * STEPS, alone);
        struct dt_processes processes = dt_stats_processes(medians, PROCESSES, 0.95);
        over += holds(processes.interval, 1);
        width += (processes.interval.high - processes.interval.low) / 2 / REPLICATES;
        two += holds(dt_stats_processes(medians, 2, 0.95).interval, 1);
        pooled += holds(dt_stats_median_interval(x, PROCESSES * STEPS, 0.95), 1);
        one += holds(dt_stats_median_interval(alone, PROCESSES * STEPS, 0.95), 1);
    }
    /* width: t(.975; 4) s / sqrt(5) with s^2 = 1 %^2 + the variance of a median of 6, 0.215 x 1
     * %^2, and E s = 0.94 sigma */
    assert_true(over >= 0.94 * REPLICATES && over <= 0.965 * REPLICATES);
    assert_true(two >= 0.94 * REPLICATES && two <= 0.965 * REPLICATES);
    assert_near(width, 2.776445 * 0.01 * sqrt(1.215 / 5) * 0.94, 0.0004);
    assert_true(pooled < 0.85 * REPLICATES);
    assert_true(one < 0.5 * REPLICATES);
}

/* By hand: logs -.01, 0, .04; mean .01, deviation sqrt(.0007), t(.975; 2) = 4.302653. */
static void matches_a_calculation_by_hand(void **state)
{
    (void)state;
    const double medians[] = {exp(0.04), exp(-0.01), 1};
    struct dt_processes processes = dt_stats_processes(medians, 3, 0.95);
    double half = 4.302652730 * sqrt(0.0007) / sqrt(3);
    assert_int_equal(processes.n, 3);
    assert_near(processes.median, 1, 1e-15);
    assert_near(log(processes.interval.low), 0.01 - half, 1e-9);
    assert_near(log(processes.interval.high), 0.01 + half, 1e-9);
}

static void one_process_has_no_interval(void **state)
{
    (void)state;
    const double median = 0.25;
    struct dt_processes processes = dt_stats_processes(&median, 1, 0.95);
    assert_true(processes.median == 0.25);
    assert_true(isnan(processes.interval.low) && isnan(processes.interval.high));
    assert_true(isnan(dt_stats_processes(&median, 0, 0.95).median));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_the_next_process),
        cmocka_unit_test(matches_a_calculation_by_hand),
        cmocka_unit_test(one_process_has_no_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
