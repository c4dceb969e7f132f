/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Comparisons in sets of fresh processes: an effect of the start, planted beside the noise within,
 * is part of the interval, which holds the truth however often it is looked at. The sign test over
 * the rounds of one start is the failing control. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/lib/dose.h"
#include "tests/stats/noise.h"

enum { ROUNDS = 4 };

/* Log ratios of the rounds of one set: `start` is the deviation between starts,
 * `within` between rounds. */
static void set(struct dt_rng *rng, double start, double within, double logs[ROUNDS])
{
    double effect = start * dt_rng_normal(rng);
    for (int k = 0; k < ROUNDS; k++)
        logs[k] = effect + within * dt_rng_normal(rng);
}

static void fill(struct dt_rng *rng, double start, double logs[], int pairs[])
{
    for (int s = 0; s < DT_SETS_MOST; s++) {
        set(rng, start, 0.01, logs + s * ROUNDS);
        pairs[s] = ROUNDS;
    }
}

static bool holds(struct dt_interval interval, double truth)
{
    return interval.low <= truth && truth <= interval.high;
}

/* By hand: medians 0, .02, .04, .06 of four sets; mean .03, deviation .0258199, t(.975; 3) =
 * 3.182446. A set without pairs does not count. */
static void matches_a_calculation_by_hand(void **state)
{
    (void)state;
    const double logs[] = {-.01, .01, 0, .02, .04, .05, .03, .06};
    const int pairs[] = {3, 1, 0, 3, 1};
    struct dt_ratio ratio = dt_stats_set_ratio(logs, pairs, 5, 0.95);
    double deviation = sqrt((.03 * .03 + .01 * .01) * 2 / 3);
    double half = 3.182446305 * deviation / 2;
    assert_int_equal(ratio.sets, 4);
    assert_int_equal(ratio.pairs, 8);
    assert_near(log(ratio.ratio), .03, 1e-12);
    assert_near(ratio.spread, deviation, 1e-12);
    assert_near(log(ratio.interval.low), .03 - half, 1e-8);
    assert_near(log(ratio.interval.high), .03 + half, 1e-8);
    ratio = dt_stats_set_ratio(logs, pairs, 1, 0.95);
    assert_true(ratio.ratio == 1 && isnan(ratio.interval.low) && isnan(ratio.spread));
    assert_int_equal(dt_stats_set_ratio(logs, pairs + 2, 1, 0.95).sets, 0);
}

static void looks_spend_six_percent(void **state)
{
    (void)state;
    double alpha = 0;
    for (int i = 0; i < DT_SET_LOOKS; i++) {
        alpha += dt_set_alpha[i];
        if (dt_set_looks[i] == DT_SETS_USUAL)
            assert_near(alpha, 0.05, 1e-12);
        assert_int_equal(dt_stats_set_look(dt_set_looks[i]), i);
        assert_int_equal(dt_stats_set_look(dt_set_looks[i] - 1), i - 1);
        assert_near(dt_stats_set_level(dt_set_looks[i]), 1 - dt_set_alpha[i], 1e-12);
    }
    assert_near(alpha, 0.06, 1e-12);
    assert_near(dt_stats_set_level(2), 1 - dt_set_alpha[0], 1e-12); /* the next look's */
    assert_near(dt_stats_set_level(9), 1 - dt_set_alpha[3], 1e-12);
    assert_int_equal(dt_set_looks[0], DT_SETS_LEAST);
    assert_int_equal(dt_set_looks[DT_SET_LOOKS - 1], DT_SETS_MOST);
}

/* Whatever the spread between starts, all intervals of all looks hold the truth in 95 %
 * of the comparisons; those of the rounds of one start do where starts are alike, and
 * not where they differ. */
static void intervals_hold_for_the_next_start(void **state)
{
    (void)state;
    static const double starts[] = {0, 0.005, 0.01, 0.02};
    int replicates = dose_full() ? 40000 : 4000;
    for (int row = 0; row < 4; row++) {
        struct dt_rng rng = {.seed = dose_seed("starts", 11), .stream = (uint64_t)row};
        int all = 0, one = 0;
        for (int r = 0; r < replicates; r++) {
            double logs[DT_SETS_MOST * ROUNDS], start[8 * ROUNDS];
            int pairs[DT_SETS_MOST];
            bool every = true;
            fill(&rng, starts[row], logs, pairs);
            for (int i = 0; i < DT_SET_LOOKS; i++)
                every = every && holds(dt_stats_set_ratio(logs, pairs, dt_set_looks[i],
                                                          dt_stats_set_level(dt_set_looks[i]))
                                           .interval,
                                       1);
            all += every;
            double effect = starts[row] * dt_rng_normal(&rng);
            for (int k = 0; k < 8 * ROUNDS; k++)
                start[k] = effect + 0.01 * dt_rng_normal(&rng);
            one += holds(dt_stats_median_interval(start, 8 * ROUNDS, 0.95), 0);
        }
        print_message("%.1f %% between starts: %.4f hold, of one start %.4f\n", 100 * starts[row],
                      (double)all / replicates, (double)one / replicates);
        assert_true(all >= 0.95 * replicates && all <= 0.99 * replicates);
        assert_true(row == 0 ? one >= 0.95 * replicates : one < 0.75 * replicates);
    }
}

/* t(.997; 3) = 7.0: four sets show a difference of 3.5 deviations, sixteen (t(.993;
 * 15) = 2.8) one of .7. */
static void estimates_the_sets_needed(void **state)
{
    (void)state;
    assert_int_equal(dt_stats_sets_needed(-0.04, 0.01), 4);
    assert_int_equal(dt_stats_sets_needed(0.03, 0.01), 6);
    assert_int_equal(dt_stats_sets_needed(0.008, 0.01), 16);
    assert_int_equal(dt_stats_sets_needed(0.006, 0.01), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_a_calculation_by_hand),
        cmocka_unit_test(looks_spend_six_percent),
        cmocka_unit_test(intervals_hold_for_the_next_start),
        cmocka_unit_test(estimates_the_sets_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
