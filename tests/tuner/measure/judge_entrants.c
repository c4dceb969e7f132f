/* SPDX-License-Identifier: MIT */
/* End and verdict of a comparison, on rounds whose order statistics are known: at the looks 8, 16, 32, 64 the interval
 * of the median runs from the 1st, 3rd, 9th, 23rd smallest ratio to the mirror of that. (Tail sums of the binomial: 2 *
 * 1/2^8 = .0078 <= .008; 2 * 137/2^16 = .0042 <= .010 < 2 * 697/2^16; .0070 <= .012 < .0201; .0169 <= .020 < .0328.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/compare/judge_entrants.h"

#define MOST_ENTRANTS 24

static bool near(double got, double want)
{
    return fabs(got - want) < 1e-12;
}

static double values[MOST_ENTRANTS][DT_ROUNDS_MOST];
static struct dt_judged judged[MOST_ENTRANTS];

/* Entrant 0 takes 1 in every round; the others take what is then written to their values. */
static void fresh(int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = 1;
        judged[i] = (struct dt_judged){.values = values[i], .decisive = i > 0};
    }
}

static void test_stops_at_the_first_look_when_clear(void **state)
{
    (void)state;
    fresh(2);
    for (int k = 0; k < 64; k++)
        values[1][k] = 0.9 + 0.001 * k;
    assert_int_equal(dt_judge_rounds(judged, 2, 64, DT_LOOKS), 8);
    assert_int_equal(judged[1].ratio.pairs, 8);
    assert_true(dt_judge_faster(&judged[1].ratio));
    assert_false(dt_judge_slower(&judged[1].ratio));
    assert_true(near(judged[1].ratio.interval.low, 0.900));
    assert_true(near(judged[1].ratio.interval.high, 0.907));
    assert_true(near(judged[1].ratio.ratio, sqrt(0.903 * 0.904)));
}

/* One round of eight on the other side: no verdict at 8, but one at 16, where the interval leaves out two. */
static void test_goes_on_until_the_look_that_decides(void **state)
{
    (void)state;
    fresh(2);
    for (int k = 0; k < 64; k++)
        values[1][k] = 1.10 + 0.001 * k;
    values[1][3] = 0.95;
    assert_int_equal(dt_judge_rounds(judged, 2, 64, DT_LOOKS), 16);
    assert_true(dt_judge_slower(&judged[1].ratio));
    assert_true(near(judged[1].ratio.interval.low, 1.101)); /* third of .95 1.100 1.101 */
    assert_true(near(judged[1].ratio.interval.high, 1.113));
    assert_int_equal(dt_judge_rounds(judged, 2, 64, 1), 8); /* no more looks were allowed */
    assert_false(dt_judge_slower(&judged[1].ratio));
}

/* Alternating 0.9 and 1.1 never decides; 0.999 and 1.001 is a tie at once, and says neither. */
static void test_ties_are_narrow(void **state)
{
    (void)state;
    fresh(2);
    for (int k = 0; k < 64; k++)
        values[1][k] = k % 2 == 0 ? 0.9 : 1.1;
    assert_int_equal(dt_judge_rounds(judged, 2, 64, DT_LOOKS), 64);
    assert_false(dt_judge_narrow(&judged[1].ratio));
    for (int k = 0; k < 64; k++)
        values[1][k] = k % 2 == 0 ? 0.999 : 1.001;
    assert_int_equal(dt_judge_rounds(judged, 2, 64, DT_LOOKS), 8);
    assert_true(dt_judge_narrow(&judged[1].ratio));
    assert_false(dt_judge_faster(&judged[1].ratio) || dt_judge_slower(&judged[1].ratio));
}

/* Rounds that end between looks are judged at the alpha of the next one; fewer than 8 say nothing. */
static void test_ends_between_looks(void **state)
{
    (void)state;
    fresh(2);
    for (int k = 0; k < 64; k++)
        values[1][k] = k % 2 == 0 ? 0.9 + 0.001 * k : 1.1;
    assert_int_equal(dt_judge_rounds(judged, 2, 12, DT_LOOKS), 12);
    assert_int_equal(judged[1].ratio.pairs, 12);
    assert_true(near(judged[1].ratio.interval.low, 0.902)); /* second: .0063 <= .010 */
    assert_true(near(dt_judge_level(12), 0.990));
    assert_true(near(dt_judge_level(8), 0.992));
    assert_true(near(dt_judge_level(64), 0.980));
    assert_int_equal(dt_judge_rounds(judged, 2, 7, DT_LOOKS), 7);
    assert_int_equal(judged[1].ratio.pairs, 0);
    assert_true(isnan(judged[1].ratio.ratio));
}

/* A failed visit costs its round for that entrant only; no decision waits for an excluded entrant. */
static void test_failed_visits(void **state)
{
    (void)state;
    fresh(3);
    for (int k = 0; k < 64; k++)
        values[1][k] = values[2][k] = 0.9 + 0.001 * k;
    values[1][2] = NAN;
    assert_int_equal(dt_judge_rounds(judged, 3, 64, DT_LOOKS), 16);
    assert_int_equal(judged[1].ratio.pairs, 15);
    assert_int_equal(judged[2].ratio.pairs, 16);
    judged[1].out = true;
    assert_int_equal(dt_judge_rounds(judged, 3, 64, DT_LOOKS), 8);
    assert_int_equal(judged[1].ratio.pairs, 0);
    assert_int_equal(judged[2].ratio.pairs, 8);
}

static void test_many_entrants(void **state)
{
    (void)state;
    fresh(MOST_ENTRANTS);
    for (int i = 0; i < MOST_ENTRANTS; i++)
        for (int k = 0; k < 64; k++)
            values[i][k] = (1 + 0.01 * (double)i) * (1 + 0.5 * k); /* a drift that all share */
    assert_int_equal(dt_judge_rounds(judged, MOST_ENTRANTS, 64, DT_LOOKS), 8);
    for (int i = 0; i < MOST_ENTRANTS; i++)
        assert_true(near(judged[i].ratio.ratio, 1 + 0.01 * (double)i));
}

/* Faster, but not by more than the twin: another look. At 8, 16, 32 rounds the twin's 1st, 3rd, 9th value from either end
 * count, and eight of its rounds are off by 3 %: only at 32 is the margin below the gain of 2 %. */
static void test_a_gain_within_the_margin_is_not_decided(void **state)
{
    (void)state;
    fresh(3);
    judged[2].decisive = false;
    judged[2].twin = true;
    for (int k = 0; k < 64; k++)
        values[1][k] = 0.98 + 0.0001 * (k % 2);
    for (int k = 0; k < 8; k++)
        values[2][k] = k % 2 == 0 ? 0.97 : 1.03;
    assert_int_equal(dt_judge_rounds(judged, 3, 64, DT_LOOKS), 32);
    assert_true(dt_judge_beats(&judged[1].ratio, dt_judge_margin(&judged[2].ratio)));
    assert_int_equal(dt_judge_rounds(judged, 3, 64, 2), 16);
    assert_true(near(dt_judge_margin(&judged[2].ratio), 0.03 / 0.97));
    assert_true(dt_judge_faster(&judged[1].ratio));
    assert_false(dt_judge_beats(&judged[1].ratio, dt_judge_margin(&judged[2].ratio)));
    for (int k = 0; k < 64; k++)
        values[1][k] = 1.02; /* slower is decided without the margin */
    assert_int_equal(dt_judge_rounds(judged, 3, 64, DT_LOOKS), 8);
}

/* The margin is the far end of the twin's interval, on either side; a twin that is out sets none. */
static void test_margin(void **state)
{
    (void)state;
    struct dt_ratio below = {.pairs = 8, .ratio = 0.97, .interval = {0.96, 1.01}};
    struct dt_ratio above = {.pairs = 8, .ratio = 1.02, .interval = {0.99, 1.05}};
    struct dt_ratio none = {.pairs = 0, .interval = {NAN, NAN}};
    struct dt_ratio gain = {.pairs = 8, .ratio = 0.955, .interval = {0.95, 0.96}};
    assert_true(near(dt_judge_margin(&below), 0.04 / 0.96));
    assert_true(near(dt_judge_margin(&above), 0.05));
    assert_true(isnan(dt_judge_margin(&none)));
    assert_true(dt_judge_beats(&gain, 0.04) && dt_judge_beats(&gain, NAN));
    assert_false(dt_judge_beats(&gain, 0.05) || dt_judge_beats(&above, 0));
    /* A floor above 100 % does not forbid a plan 120 times as fast. */
    struct dt_ratio huge = {.pairs = 8, .ratio = 1.0 / 120, .interval = {1.0 / 150, 1.0 / 100}};
    assert_true(dt_judge_beats(&huge, 1.5));
    assert_false(dt_judge_beats(&huge, 119.5));
    fresh(3);
    judged[2] = (struct dt_judged){.values = values[2], .twin = true, .out = true};
    for (int k = 0; k < 64; k++)
        values[1][k] = 0.98;
    assert_int_equal(dt_judge_rounds(judged, 3, 64, DT_LOOKS), 8);
}

/* Sets beside other programs, in which the plan is half as fast: they are no sets, wherever they stand. One whose load is not known
 * counts. */
static void disturbed_sets_do_not_count(void **state)
{
    (void)state;
    struct dt_sets sets = {
        .count = 6, .rounds = {2, 2, 2, 2, 2, 2}, .others = {1.5, 0.1, NAN, 0.3, 0, 0.2}};
    fresh(2);
    for (int k = 0; k < 12; k++)
        values[1][k] = k / 2 == 0 || k / 2 == 3 ? 2 : 0.8 + 0.0001 * k;
    assert_int_equal(dt_sets_quiet(&sets), 4);
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_true(judged[1].ratio.sets == 4 && judged[1].ratio.pairs == 8);
    assert_true(dt_judge_faster(&judged[1].ratio) && judged[1].ratio.ratio > 0.8 &&
                judged[1].ratio.ratio < 0.802);
    sets.others[4] = 1; /* three are left: nothing is said */
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_false(dt_judge_faster(&judged[1].ratio) || dt_judge_slower(&judged[1].ratio));
}

/* A clear gain does not end the comparison while its interval is wide, nor while the first entrant's level differs between the last four
 * sets (1.5 is load that nobody sees); where others are not known, levels say nothing. */
static void test_goes_on_while_wide_or_the_load_changes(void **state)
{
    static const double wide[] = {0.22, 0.25, 0.28, 0.22}, level[] = {1, 1.5, 1, 1};
    struct dt_sets sets = {.count = 8, .rounds = {2, 2, 2, 2, 2, 2, 2, 2}};
    (void)state;
    fresh(2);
    for (int k = 0; k < 16; k++)
        values[1][k] = k < 8 ? wide[k / 2] : 0.25 + 0.0001 * k;
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6); /* at four, 1.6 between the ends */
    fresh(2);
    for (int k = 0; k < 16; k++) {
        values[0][k] = k < 8 ? level[k / 2] : 1;
        values[1][k] = values[0][k] * (0.5 + 0.0001 * k);
    }
    assert_true(dt_sets_levels(values[0], &sets, 8) == 1.5 &&
                dt_sets_levels(values[0], &sets, 4) == 1);
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_true(dt_sets_agree(values[0], values[1], 0.6, &sets));
    assert_false(dt_sets_agree(values[0], values[1], 0.5, &sets));
    for (int s = 0; s < 4; s++)
        sets.others[s] = NAN;
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 4);
    sets.others[2] = 1; /* five quiet ones when there are six, so the look is at six of them */
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops_at_the_first_look_when_clear),
        cmocka_unit_test(disturbed_sets_do_not_count),
        cmocka_unit_test(test_goes_on_while_wide_or_the_load_changes),
        cmocka_unit_test(test_goes_on_until_the_look_that_decides),
        cmocka_unit_test(test_ties_are_narrow),
        cmocka_unit_test(test_ends_between_looks),
        cmocka_unit_test(test_failed_visits),
        cmocka_unit_test(test_many_entrants),
        cmocka_unit_test(test_a_gain_within_the_margin_is_not_decided),
        cmocka_unit_test(test_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
