/* SPDX-License-Identifier: MIT */
/* Looking four times: the intervals looked at hold together but for less than the alpha spent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

static void counts_map_to_looks(void **state)
{
    (void)state;
    static const int expected[][2] = {{0, -1}, {7, -1}, {8, 0},  {15, 0}, {16, 1},
                                      {31, 1}, {32, 2}, {63, 2}, {64, 3}, {5000, 3}};
    double spent = 0;
    for (int i = 0; i < LENGTH(expected); i++)
        assert_int_equal(dt_stats_look(expected[i][0]), expected[i][1]);
    for (int i = 0; i < DT_LOOKS; i++) {
        assert_int_equal(dt_stats_look(dt_look_samples[i]), i);
        spent += dt_look_alpha[i];
    }
    assert_near(spent, 0.05, 1e-12);
}

/* The first look's level is one that its eight samples can reach. */
static void every_look_has_an_interval(void **state)
{
    (void)state;
    for (int i = 0; i < DT_LOOKS; i++) {
        int lower, upper;
        assert_true(
            dt_stats_median_ranks(dt_look_samples[i], 1 - dt_look_alpha[i], &lower, &upper));
    }
}

static void any_look_misses_less_than_was_spent(void **state)
{
    (void)state;
    enum { REPLICATES = 4000 };
    for (int d = 0; d < LENGTH(noises); d++) {
        struct dt_rng rng = {.seed = 11, .stream = (uint64_t)d};
        int any = 0, each[DT_LOOKS] = {0};
        for (int i = 0; i < REPLICATES; i++) {
            double x[64];
            bool missed = false;
            for (int j = 0; j < 64; j++)
                x[j] = noises[d].draw(&rng);
            for (int k = 0; k < DT_LOOKS; k++) {
                struct dt_interval interval =
                    dt_stats_median_interval(x, dt_look_samples[k], 1 - dt_look_alpha[k]);
                bool miss = noises[d].median < interval.low || noises[d].median > interval.high;
                each[k] += miss;
                missed |= miss;
            }
            any += missed;
        }
        assert_true(any <= 0.05 * REPLICATES);
        for (int k = 0; k < DT_LOOKS; k++) {
            double alpha = dt_look_alpha[k];
            assert_true((double)each[k] / REPLICATES <= alpha + margin(alpha, REPLICATES));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_map_to_looks),
        cmocka_unit_test(every_look_has_an_interval),
        cmocka_unit_test(any_look_misses_less_than_was_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
