/* SPDX-License-Identifier: MIT */
/* Truncation of planted transients: what is left is the level that was planted,
 * or "no steady state". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

static void known_series_start_where_expected(void **state)
{
    (void)state;
    int start = -1;
    const double slow[] = {9, 5, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_true(dt_stats_steady(slow, LENGTH(slow), &start));
    assert_int_equal(start, 3);
    const double level[] = {1, 1, 1, 1, 1, 1, 1, 1};
    assert_true(dt_stats_steady(level, LENGTH(level), &start));
    assert_int_equal(start, 0);
    double ramp[16], late[16];
    for (int i = 0; i < 16; i++) {
        ramp[i] = 10 - 0.1 * i;
        late[i] = i < 10 ? 5 - 0.2 * i : 1 + 0.001 * (i % 2);
    }
    assert_false(dt_stats_steady(ramp, 16, &start));
    assert_int_equal(start, 0);
    assert_false(dt_stats_steady(late, 16, &start));
    for (int n = 0; n < 4; n++) { /* too few to tell */
        assert_true(dt_stats_steady(slow, n, &start));
        assert_int_equal(start, 0);
    }
}

struct transient {
    double (*at)(int i);
    int n;
    double refused_least, refused_most; /* rate of "no steady state" */
    double bias;                        /* of the median of what is kept, when it is */
    double kept_least;                  /* mean number of samples kept */
};

static double none(int i)
{
    return 0 * i;
}

static double first_call(int i)
{
    return i == 0 ? 1.5 : 0;
}

static double three_calls(int i)
{
    return i < 3 ? 0.2 : 0;
}

static double quick(int i)
{
    return 0.3 * exp(-i / 4.0);
}

static double slow(int i)
{
    return 0.1 * exp(-i / 15.0);
}

static double twenty_calls(int i)
{
    return i < 20 ? 0.05 : 0;
}

static double endless(int i)
{
    return -0.002 * i;
}

static void planted_transients_are_cut(void **state)
{
    (void)state;
    enum { REPLICATES = 800 };
    static const struct transient rows[] = {
        {none, 8, 0, 0.02, 0.001, 7.5},       {none, 64, 0, 0.02, 0.001, 63},
        {first_call, 8, 0, 0.03, 0.003, 5},   {first_call, 64, 0, 0.03, 0.001, 60},
        {three_calls, 12, 0, 0.15, 0.003, 7}, {three_calls, 20, 0, 0.15, 0.001, 14},
        {quick, 64, 0, 0.32, 0.002, 40},      {slow, 64, 0.8, 1, 0.01, 30},
        {twenty_calls, 32, 0.95, 1, 1, 0},    {twenty_calls, 64, 0, 0.18, 0.001, 38},
        {endless, 32, 0.9, 1, 1, 0},
    };
    for (int k = 0; k < LENGTH(rows); k++) {
        struct dt_rng rng = {.seed = 41, .stream = (uint64_t)k};
        int refused = 0, kept = 0, n = rows[k].n;
        double bias = 0;
        for (int i = 0; i < REPLICATES; i++) {
            double x[64];
            int start;
            for (int j = 0; j < n; j++)
                x[j] = machine(&rng) * (1 + rows[k].at(j));
            if (!dt_stats_steady(x, n, &start)) {
                refused++;
                assert_int_equal(start, 0);
                continue;
            }
            assert_true(start >= 0 && start <= n / 2);
            bias += dt_stats_median(x + start, n - start) - 1;
            kept += n - start;
        }
        double rate = (double)refused / REPLICATES;
        assert_true(rate >= rows[k].refused_least && rate <= rows[k].refused_most);
        int steady = REPLICATES - refused > 0 ? REPLICATES - refused : 1;
        assert_true(fabs(bias / steady) <= rows[k].bias);
        assert_true((double)kept / steady >= rows[k].kept_least);
    }
}

/* A spike is an outlier, not the end of a slow start. */
static void a_spike_cuts_nothing_off(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(42, "spike");
    for (int at = 12; at < 40; at++) {
        double x[40];
        int start;
        for (int i = 0; i < 40; i++)
            x[i] = (i == at ? 3 : 1) + 0.01 * dt_rng_uniform(&rng);
        assert_true(dt_stats_steady(x, 40, &start));
        assert_true(start < 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_series_start_where_expected),
        cmocka_unit_test(planted_transients_are_cut),
        cmocka_unit_test(a_spike_cuts_nothing_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
