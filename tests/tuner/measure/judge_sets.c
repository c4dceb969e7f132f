/* SPDX-License-Identifier: MIT */
/* End and verdict of a comparison in sets of fresh processes. Each set has two rounds, whose ratios
 * are the set's, so that intervals can be computed by hand: t(.997; 3) = 6.993, t(.996; 5) = 4.219,
 * t(.993; 15) = 2.767. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tuner/measure/compare/entrant.h"

enum { ENTRANTS = 3, ROUNDS = 2 };

static double values[ENTRANTS][DT_ROUNDS_MOST];
static struct dt_judged judged[ENTRANTS];

/* Entrant 0 takes 1 in every round; the others what plant() says. */
static void fresh(int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = 1;
        judged[i] = (struct dt_judged){.values = values[i], .decisive = i > 0};
    }
}

/* Set s takes exp(log + spread) times as long, the next exp(log - spread). */
static void plant(int i, double log, double spread)
{
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        values[i][k] = exp(log + (k / ROUNDS % 2 == 0 ? spread : -spread));
}

static int compare(int n, int sets)
{
    struct dt_sets made = {.count = sets};
    for (int s = 0; s < sets; s++)
        made.rounds[s] = ROUNDS;
    return dt_judge_sets(judged, n, &made);
}

static void stops_at_the_look_that_decides(void **state)
{
    (void)state;
    fresh(2);
    plant(1, -0.05, 0.01); /* deviation .01155, half of the interval at 4 sets .0404 */
    assert_int_equal(compare(2, 16), 4);
    assert_true(dt_judge_faster(&judged[1].ratio) && judged[1].ratio.sets == 4);
    assert_true(fabs(log(judged[1].ratio.ratio) + 0.05) < 1e-12);
    assert_true(fabs(log(judged[1].ratio.interval.high) - (-0.05 + 6.993 * 0.011547 / 2)) < 1e-4);
    plant(1, 0.03, 0.01); /* at 6 sets .0189 */
    assert_int_equal(compare(2, 16), 6);
    assert_true(dt_judge_slower(&judged[1].ratio));
    plant(1, 0, 0.03);
    assert_int_equal(compare(2, 16), 16);
    assert_string_equal(dt_judge_text(&judged[1].ratio), "undecided");
    plant(1, 0, 0.001);
    assert_int_equal(compare(2, 16), 4);
    assert_string_equal(dt_judge_text(&judged[1].ratio), "tie");
}

/* However clear: two places may fall the same way three times. */
static void three_sets_decide_nothing(void **state)
{
    (void)state;
    fresh(2);
    plant(1, -0.5, 0.0001);
    assert_int_equal(compare(2, 3), 3);
    assert_true(judged[1].ratio.sets == 3 && judged[1].ratio.ratio < 0.7 &&
                isnan(judged[1].ratio.interval.high));
    assert_false(dt_judge_faster(&judged[1].ratio));
    assert_true(isnan(dt_judge_margin(&judged[1].ratio)));
    assert_int_equal(compare(2, 1), 1);
    assert_true(isnan(judged[1].ratio.interval.high));
}

/* The rounds of a set agree, the sets do not. */
static void what_holds_in_one_start_is_not_enough(void **state)
{
    (void)state;
    fresh(2);
    plant(1, -0.01, 0.03);
    assert_int_equal(compare(2, 16), 16);
    assert_false(dt_judge_faster(&judged[1].ratio));
}

/* A set in which an entrant was visited once or not at all does not count for it. */
static void failed_visits_cost_their_set(void **state)
{
    (void)state;
    fresh(3);
    plant(1, -0.05, 0.01);
    plant(2, -0.05, 0.01);
    values[1][2] = NAN;
    assert_int_equal(compare(3, 16), 6);
    assert_int_equal(judged[1].ratio.sets, 5);
    assert_int_equal(judged[2].ratio.sets, 6);
    judged[1].out = true; /* nothing waits for it */
    assert_int_equal(compare(3, 16), 4);
}

/* The twin's interval at 4 sets reaches 8.4 %, at 6 sets 4.0 %: a gain of 5 % is decided then. */
static void a_gain_within_the_margin_is_not_decided(void **state)
{
    (void)state;
    fresh(3);
    judged[2].decisive = false;
    judged[2].twin = true;
    plant(1, -0.05, 0.001);
    plant(2, 0, 0.02);
    assert_int_equal(compare(3, 16), 6);
    assert_true(dt_judge_beats(&judged[1].ratio, dt_judge_margin(&judged[2].ratio)));
    judged[2].out = true; /* without a visit: no margin is waited for */
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        values[2][k] = NAN;
    assert_int_equal(compare(3, 16), 4);
}

/* Two copies in three sets of two rounds. Visits are off by +-.01 about each copy's level: variance
 * within 2e-4. Levels of the copies differ by .04, .00, .02; sets lie at 0, .1, .2. */
/* Rounds 0, 1 of each set with entrants 0 and 1, 2 and 3 with 0 and 2; the machine slows down
 * from round to round. */
static void two_are_compared_through_a_third(void **state)
{
    enum { SETS = 5 };
    struct dt_sets made = {.count = SETS};
    double a[DT_ROUNDS_MOST], b[DT_ROUNDS_MOST], common[DT_ROUNDS_MOST];
    (void)state;
    for (int k = 0; k < DT_ROUNDS_MOST; k++) {
        made.rounds[k / 4 % SETS] = 4;
        double slow = exp(0.1 * k), own = k / 4 % 2 == 0 ? 1.02 : 0.98;
        common[k] = slow;
        a[k] = k % 4 < 2 ? 1.25 * slow : NAN;
        b[k] = k % 4 < 2 ? NAN : 0.8 * own * slow;
    }
    struct dt_ratio none = dt_judge_ratio(a, b, &made, 0.99);
    assert_int_equal(none.pairs, 0);
    struct dt_ratio ratio = dt_judge_ratio_through(common, a, b, &made, 0.99);
    assert_int_equal(ratio.pairs, 2 * SETS);
    assert_int_equal(ratio.sets, SETS);
    double mean = (3 * log(1.02) + 2 * log(0.98)) / SETS; /* of the sets' own factors */
    assert_true(fabs(log(ratio.ratio) - log(0.8 / 1.25) - mean) < 1e-12);
    struct dt_ratio there = dt_judge_ratio(common, b, &made, 0.99);
    assert_true(fabs(there.spread - ratio.spread) < 1e-12); /* a has no noise of its own */
    b[0] = b[1] =
        3 * a[0]; /* visited beside a: those rounds count, and the others of the set do not */
    ratio = dt_judge_ratio_through(common, a, b, &made, 0.99);
    assert_int_equal(ratio.pairs, 2 * SETS);
    assert_true(ratio.ratio > 0.8);
}

static void levels_by_hand(void **state)
{
    (void)state;
    static const double apart[] = {.04, 0, .02}, at[] = {0, .1, .2};
    struct dt_sets sets = {.count = 3, .rounds = {2, 2, 2}};
    struct dt_entrant *copies = calloc(2, sizeof *copies);
    assert_non_null(copies);
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 6; k++)
            copies[c].visits[k] =
                exp(at[k / 2] + (c == 0 ? -.5 : .5) * apart[k / 2] + (k % 2 == 0 ? .01 : -.01));
    struct dt_levels levels = dt_levels(copies, &sets);
    double copy = (.04 * .04 + .02 * .02) / 2 / 3;
    assert_int_equal(levels.sets, 3);
    assert_true(fabs(levels.visit - sqrt(2e-4)) < 1e-9);
    assert_true(fabs(levels.residency - sqrt(copy - 1e-4)) < 1e-9);
    assert_true(fabs(levels.start - sqrt(.01 - copy / 2)) < 1e-9);
    sets.count = 1;
    assert_true(isnan(dt_levels(copies, &sets).start));
    free(copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_at_the_look_that_decides),
        cmocka_unit_test(three_sets_decide_nothing),
        cmocka_unit_test(what_holds_in_one_start_is_not_enough),
        cmocka_unit_test(failed_visits_cost_their_set),
        cmocka_unit_test(a_gain_within_the_margin_is_not_decided),
        cmocka_unit_test(two_are_compared_through_a_third),
        cmocka_unit_test(levels_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
