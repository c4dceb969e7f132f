/* SPDX-License-Identifier: MIT */
/* The order of visits: every round visits every plan once, two rounds mirror each other so that a
 * linear drift cancels, and over many pairs each plan comes at each place equally often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/compare/compare.h"

static void test_rounds_are_permutations_and_mirrors(void **state)
{
    (void)state;
    for (int n = 1; n <= DT_ENTRANTS; n++)
        for (int round = 0; round < 64; round += 2) {
            int there[DT_ENTRANTS], back[DT_ENTRANTS], seen[DT_ENTRANTS] = {0};
            dt_compare_order(there, n, round, 7);
            dt_compare_order(back, n, round + 1, 7);
            for (int i = 0; i < n; i++) {
                assert_in_range(there[i], 0, n - 1);
                assert_int_equal(seen[there[i]]++, 0);
                assert_int_equal(back[i], there[n - 1 - i]);
            }
        }
}

/* A drift that adds t to the t-th visit adds the same to every plan over two rounds. */
static void test_drift_cancels(void **state)
{
    (void)state;
    const int n = 5;
    int sum[5] = {0}, order[DT_ENTRANTS];
    for (int round = 0; round < 2; round++) {
        dt_compare_order(order, n, round, 3);
        for (int i = 0; i < n; i++)
            sum[order[i]] += round * n + i;
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(sum[i], sum[0]);
}

/* 4,000 pairs of 4 plans: a place falls to a plan 1,000 times, give or take five standard
 * deviations (27.4 each). */
static void test_places_are_shared(void **state)
{
    (void)state;
    int count[4][4] = {{0}}, order[DT_ENTRANTS];
    for (int pair = 0; pair < 4000; pair++) {
        dt_compare_order(order, 4, 2 * (pair % 32), (uint64_t)pair);
        for (int i = 0; i < 4; i++)
            count[i][order[i]]++;
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            assert_in_range(count[i][k], 863, 1137);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_are_permutations_and_mirrors),
        cmocka_unit_test(test_drift_cancels),
        cmocka_unit_test(test_places_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
