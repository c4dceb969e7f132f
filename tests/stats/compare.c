/* SPDX-License-Identifier: MIT */
/* Comparisons: the maximum over ranks against the plain definition, ratios of pairs,
 * Holm against his words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

static void a_matrix_by_hand(void **state)
{
    (void)state;
    const long long ns[] = {10, 30, 20, /**/ 50, 40, 60, /**/ 70, 70, 70};
    double out[3];
    int last[3] = {9, 9, 9};
    assert_near(dt_stats_over_ranks(ns, 3, 3, 1, out, last), 20e-9, 1e-15);
    assert_near(out[0], 30e-9, 1e-15);
    assert_near(out[1], 60e-9, 1e-15);
    assert_near(out[2], 70e-9, 1e-15);
    assert_int_equal(last[0], 1); /* the first of equals */
    assert_int_equal(last[1], 1);
    assert_int_equal(last[2], 1);
    assert_near(dt_stats_over_ranks(ns, 9, 1, 1, (double[9]){0}, NULL), 0, 1e-15);
    assert_true(isnan(dt_stats_over_ranks(ns, 0, 3, 1, out, NULL)));
}

/* Two replicas of two ranks: steps of 30 and 20, 50 and 100; as many steps a second as
 * both together, by half. */
static void replicas_have_a_harmonic_mean(void **state)
{
    (void)state;
    const long long ns[] = {10, 30, 20, 15, /**/ 50, 40, 60, 100};
    double out[2];
    int last[4];
    assert_near(dt_stats_over_ranks(ns, 2, 4, 2, out, last), 40e-9, 1e-15);
    assert_near(out[0], 24e-9, 1e-15);
    assert_near(out[1], 2 / (1 / 50e-9 + 1 / 100e-9), 1e-15);
    assert_int_equal(last[1], 1);
    assert_int_equal(last[3], 1);
    dt_stats_over_ranks(ns, 2, 4, 4, out, NULL);
    assert_near(out[0], 4 / (1 / 10e-9 + 1 / 30e-9 + 1 / 20e-9 + 1 / 15e-9), 1e-15);
}

static void maxima_by_the_definition(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(61, "ranks");
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int steps = 1; steps <= 40; steps += 3) {
            long long ns[9 * 40];
            double out[40], skews[40], skew;
            int last[9], counted[9] = {0};
            for (int i = 0; i < ranks * steps; i++)
                ns[i] = 1000000 + (long long)dt_rng_below(&rng, 1000000000);
            skew = dt_stats_over_ranks(ns, steps, ranks, 1, out, last);
            for (int i = 0; i < steps; i++) {
                long long most = 0, least = INT64_MAX;
                int who = -1;
                for (int r = 0; r < ranks; r++) {
                    long long t = ns[i * ranks + r];
                    least = t < least ? t : least;
                    if (t > most)
                        most = t, who = r;
                }
                counted[who]++;
                skews[i] = (double)(most - least) * 1e-9;
                assert_near(out[i], (double)most * 1e-9, 1e-12);
            }
            assert_memory_equal(last, counted, (size_t)ranks * sizeof last[0]);
            assert_near(skew, dt_stats_median(skews, steps), 1e-12);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_by_hand),
        cmocka_unit_test(maxima_by_the_definition),
        cmocka_unit_test(replicas_have_a_harmonic_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
