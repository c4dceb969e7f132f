/* SPDX-License-Identifier: MIT */
/* Comparisons: the maximum over ranks against the plain definition, ratios of pairs, Holm against his words. */
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
    assert_near(dt_stats_over_ranks(ns, 3, 3, out, last), 20e-9, 1e-15);
    assert_near(out[0], 30e-9, 1e-15);
    assert_near(out[1], 60e-9, 1e-15);
    assert_near(out[2], 70e-9, 1e-15);
    assert_int_equal(last[0], 1); /* the first of equals */
    assert_int_equal(last[1], 1);
    assert_int_equal(last[2], 1);
    assert_near(dt_stats_over_ranks(ns, 9, 1, (double[9]){0}, NULL), 0, 1e-15);
    assert_true(isnan(dt_stats_over_ranks(ns, 0, 3, out, NULL)));
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
            skew = dt_stats_over_ranks(ns, steps, ranks, out, last);
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

static void ratios(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(62, "pairs");
    for (int n = 6; n <= 64; n += 7) {
        double forth[64], back[64];
        for (int i = 0; i < n; i++) {
            forth[i] = log(0.9) + 0.02 * dt_rng_normal(&rng);
            back[i] = -forth[i];
        }
        struct dt_ratio a = dt_stats_ratio(forth, n, 0.95), b = dt_stats_ratio(back, n, 0.95);
        assert_int_equal(a.pairs, n);
        assert_near(a.ratio * b.ratio, 1, 1e-12);
        assert_near(a.interval.low * b.interval.high, 1, 1e-12);
        assert_true(a.interval.low <= a.ratio && a.ratio <= a.interval.high);
        assert_true(a.interval.high < 1 && b.interval.low > 1);
    }
    struct dt_ratio none = dt_stats_ratio(NULL, 0, 0.95);
    assert_true(none.pairs == 0 && isnan(none.ratio) && isnan(none.interval.low));
    const double few[] = {0, 0, 0};
    assert_true(dt_stats_ratio(few, 3, 0.95).ratio == 1);
    assert_true(isnan(dt_stats_ratio(few, 3, 0.95).interval.high));
}

/* Two plans that are the same: drift that hits both sides of a pair does not make one of them faster. */
static void the_same_twice(void **state)
{
    (void)state;
    enum { REPLICATES = 3000 };
    struct dt_rng rng = dt_rng_at(63, "same");
    int wrong = 0;
    for (int i = 0; i < REPLICATES; i++) {
        double logs[32], drift = 0;
        for (int k = 0; k < 32; k++) {
            drift += 0.01 * dt_rng_normal(&rng);
            double a = machine(&rng) * exp(drift), b = machine(&rng) * exp(drift);
            logs[k] = log(b / a);
        }
        struct dt_ratio ratio = dt_stats_ratio(logs, 32, 0.95);
        wrong += ratio.interval.low > 1 || ratio.interval.high < 1;
    }
    assert_true((double)wrong / REPLICATES <= 0.05 + margin(0.05, REPLICATES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_by_hand),
        cmocka_unit_test(maxima_by_the_definition),
        cmocka_unit_test(ratios),
        cmocka_unit_test(the_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
