/* SPDX-License-Identifier: MIT */
/* Spread at any time: m steps of the golden section leave no gap above (1 + 2/sqrt(5)) / m of the
 * circle (the three-gap theorem: the gaps are powers of the section), and rounding to whole
 * points adds less than one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

/* The largest gap around the circle of n places that the first m points leave, for every m: points
 * are taken away from the last to the first, and a gap only grows. */
static void largest_gaps(const int order[], int n, int gaps[])
{
    static int before[LINE_MOST], after[LINE_MOST];
    int largest = 1;
    for (int k = 0; k < n; k++) {
        before[k] = (k + n - 1) % n;
        after[k] = (k + 1) % n;
    }
    for (int m = n; m >= 1; m--) {
        gaps[m] = m > 1 ? largest : n;
        int gone = order[m - 1], low = before[gone], high = after[gone];
        after[low] = high;
        before[high] = low;
        int gap = (high - low + n) % n;
        largest = gap > largest ? gap : largest;
    }
}

static void check_spread(int n, uint64_t seed)
{
    static int order[LINE_MOST], gaps[LINE_MOST + 1];
    const double bound = 1 + 2 / sqrt(5);
    struct dt_space *space = make_line(n);
    struct dt_search *search = start("exhaustive", space, seed);
    assert_int_equal(walk(search, space, order, n), n);
    largest_gaps(order, n, gaps);
    for (int m = 1; m <= n; m++)
        if (gaps[m] >= bound * n / m + 1)
            fail_msg("of %d points, seed %d, the first %d leave a gap of %d", n, (int)seed, m,
                     gaps[m]);
    dt_search_free(search);
    dt_space_free(space);
}

static void points_are_evenly_spread_at_any_time(void **state)
{
    (void)state;
    for (int n = 1; n <= 400; n++)
        check_spread(n, (uint64_t)n);
    for (uint64_t seed = 0; seed < 10; seed++) {
        check_spread(6, seed);
        check_spread(30, seed);
        check_spread(210, seed);
        check_spread(2310, seed);
        check_spread(3001, seed);
        check_spread(4096, seed);
    }
}

/* Where it starts is uniform: chi-square over 20 places, 19 degrees of freedom, P(> 51) is 1e-4. */
static void the_start_is_uniform(void **state)
{
    enum { PLACES = 20, SEEDS = 10000 };
    int counts[PLACES] = {0};
    double chi2 = 0;
    struct dt_space *space = make_line(PLACES);
    const double even = (double)SEEDS / PLACES;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct dt_search *search = start("exhaustive", space, seed);
        struct dt_point point;
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        counts[dt_space_index(space, &point)]++;
        dt_search_free(search);
    }
    for (int i = 0; i < PLACES; i++)
        chi2 += pow(counts[i] - even, 2) / even;
    assert_true(chi2 < 51);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_evenly_spread_at_any_time),
        cmocka_unit_test(the_start_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
