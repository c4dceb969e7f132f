/* SPDX-License-Identifier: MIT */
/* The margin of a twin, sets beside other programs, and when a comparison goes on
 * although it looks decided. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/compare/judge_entrants.h"

#define MOST_ENTRANTS 3

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

static void on_cores(struct dt_sets *sets)
{
    for (int s = 0; s < DT_SETS_MOST; s++)
        sets->gpus[s] = NAN;
}

/* The margin is the far end of the twin's interval, on either side; a twin
 * that is out sets none. */
static void test_margin(void **state)
{
    (void)state;
    struct dt_ratio below = {.pairs = 8, .sets = 4, .ratio = 0.97, .interval = {0.96, 1.01}};
    struct dt_ratio above = {.pairs = 8, .sets = 4, .ratio = 1.02, .interval = {0.99, 1.05}};
    struct dt_ratio none = {.pairs = 0, .interval = {NAN, NAN}};
    struct dt_ratio gain = {.pairs = 8, .sets = 4, .ratio = 0.955, .interval = {0.95, 0.96}};
    assert_true(near(dt_judge_margin(&below), 0.04 / 0.96));
    assert_true(near(dt_judge_margin(&above), 0.05));
    assert_true(isnan(dt_judge_margin(&none)));
    assert_true(dt_judge_beats(&gain, 0.04) && dt_judge_beats(&gain, NAN));
    assert_false(dt_judge_beats(&gain, 0.05) || dt_judge_beats(&above, 0));
    /* A floor above 100 % does not forbid a plan 120 times as fast. */
    struct dt_ratio huge = {
        .pairs = 8, .sets = 4, .ratio = 1.0 / 120, .interval = {1.0 / 150, 1.0 / 100}};
    assert_true(dt_judge_beats(&huge, 1.5));
    assert_false(dt_judge_beats(&huge, 119.5));
}

/* Sets beside other programs, in which the plan is half as fast: they are no sets, wherever they
 * stand. One whose load is not known counts. */
static void disturbed_sets_do_not_count(void **state)
{
    (void)state;
    struct dt_sets sets = {
        .count = 6, .rounds = {2, 2, 2, 2, 2, 2}, .others = {1.5, 0.1, NAN, 0.3, 0, 0.2}};
    on_cores(&sets);
    fresh(2);
    for (int k = 0; k < 12; k++)
        values[1][k] = k / 2 == 0 || k / 2 == 3 ? 2 : 0.8 + 0.0001 * k;
    assert_int_equal(dt_sets_quiet(&sets), 4);
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_true(judged[1].ratio.sets == 4 && judged[1].ratio.pairs == 8);
    assert_true(dt_judge_faster(&judged[1].ratio) && judged[1].ratio.ratio > 0.8 &&
                judged[1].ratio.ratio < 0.802);
    sets.gpus[4] = 1; /* three are left: nothing is said */
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_false(dt_judge_faster(&judged[1].ratio) || dt_judge_slower(&judged[1].ratio));
    sets.gpus[4] = NAN;
    sets.others[4] = 1;
    assert_int_equal(dt_judge_sets(judged, 2, &sets), 6);
    assert_false(dt_judge_faster(&judged[1].ratio) || dt_judge_slower(&judged[1].ratio));
    for (int s = 0; s < 6; s++)
        sets.gpus[s] = s == 4;
    assert_int_equal(dt_sets_quiet(&sets), 5); /* on GPUs busy cores disturb no set */
}

/* A clear gain does not end the comparison while its interval is wide, nor while the first
 * entrant's level differs between the last four sets (1.5 is load that nobody sees); where others
 * are not known, levels say nothing. */
static void test_goes_on_while_wide_or_the_load_changes(void **state)
{
    static const double wide[] = {0.22, 0.25, 0.28, 0.22}, level[] = {1, 1.5, 1, 1};
    struct dt_sets sets = {.count = 8, .rounds = {2, 2, 2, 2, 2, 2, 2, 2}};
    (void)state;
    on_cores(&sets);
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
        cmocka_unit_test(disturbed_sets_do_not_count),
        cmocka_unit_test(test_goes_on_while_wide_or_the_load_changes),
        cmocka_unit_test(test_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
