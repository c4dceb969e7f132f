/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Importance against planted functions, whose shares follow from the definition of variance: of
 * independent terms, each term's variance over their sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "search/bayes/importance.h"
#include "tests/lib/close.h"

#include <math.h>
#include <stdlib.h>

enum { AXES = 4, VALUES = 6 };

static struct dt_space *make_box(int values)
{
    struct dt_space *space = NULL;
    int64_t numbers[64];
    for (int i = 0; i < values; i++)
        numbers[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < AXES; i++) {
        const struct dt_axis axis = {
            .name = (const char *[]){"a", "b", "c", "d"}[i], .count = values, .values = numbers};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* log(value) = 3 a + 2 b + c, in units of VALUES: shares 9, 4 and 1 of 14; d does nothing. */
static double planted(const struct dt_point *point)
{
    return exp((3 * point->index[0] + 2 * point->index[1] + point->index[2]) / (double)VALUES);
}

static struct dt_trial trial_of(const struct dt_point *point, double value)
{
    return (struct dt_trial){.point = *point, .value = value, .outcome = DT_TRIAL_OK};
}

static void check_shares(const double share[], double tolerance)
{
    assert_close(share[0], 9 / 14.0, tolerance);
    assert_close(share[1], 4 / 14.0, tolerance);
    assert_close(share[2], 1 / 14.0, tolerance);
    assert_close(share[3], 0, tolerance);
}

static void shares_are_those_of_the_planted_terms(void **state)
{
    struct dt_space *space = make_box(VALUES);
    struct dt_rng rng = dt_rng_at(1, "planted");
    struct dt_trial trials[60];
    double share[DT_AXES_MAX];
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        trials[i] = trial_of(&point, planted(&point) * exp(0.01 * dt_rng_normal(&rng)));
    }
    assert_true(dt_importance(space, trials, 60, 0, share));
    check_shares(share, 0.05);
    dt_space_free(space);
}

/* The trials of a good search are crowded where a is small: among them a explains
 * little, of the space most. */
static void crowded_trials_do_not_hide_the_space(void **state)
{
    struct dt_space *space = make_box(VALUES);
    struct dt_rng rng = dt_rng_at(2, "planted");
    struct dt_trial trials[80];
    double share[DT_AXES_MAX];
    (void)state;
    for (int i = 0; i < 80; i++) {
        struct dt_point point;
        do
            dt_space_draw(space, &rng, &point);
        while (i >= 12 && point.index[0] > 1);
        trials[i] = trial_of(&point, planted(&point));
    }
    assert_true(dt_importance(space, trials, 80, 0, share));
    check_shares(share, 0.08);
    dt_space_free(space);
}

/* a xor b: together they explain everything, each alone nothing. */
static void a_pure_interaction_has_no_share_alone(void **state)
{
    struct dt_space *space = make_box(2);
    struct dt_trial trials[16];
    double share[DT_AXES_MAX];
    (void)state;
    for (int i = 0; i < 16; i++) {
        struct dt_point point;
        dt_space_at(space, i, &point);
        trials[i] = trial_of(&point, exp(point.index[0] != point.index[1]));
    }
    assert_true(dt_importance(space, trials, 16, 0, share));
    for (int a = 0; a < AXES; a++)
        assert_close(share[a], 0, 0.02);
    dt_space_free(space);
}

/* A space of 16 million plans, of which some are drawn; more trials than the model takes. */
static void a_large_space_is_drawn_from(void **state)
{
    struct dt_space *space = make_box(64);
    struct dt_rng rng = dt_rng_at(3, "planted");
    struct dt_trial *trials = calloc(1000, sizeof *trials);
    double share[DT_AXES_MAX], again[DT_AXES_MAX];
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        trials[i] = trial_of(
            &point, exp((3 * point.index[0] + 2 * point.index[1] + point.index[2]) / 64.0));
    }
    assert_true(dt_importance(space, trials, 1000, 0, share));
    assert_true(dt_importance(space, trials, 1000, 0, again));
    check_shares(share, 0.05);
    for (int a = 0; a < AXES; a++)
        assert_true(share[a] == again[a]);
    free(trials);
    dt_space_free(space);
}

static void nothing_to_learn_from_is_said(void **state)
{
    struct dt_space *space = make_box(2);
    struct dt_trial trials[8];
    double share[DT_AXES_MAX];
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct dt_point point;
        dt_space_at(space, i, &point);
        trials[i] = trial_of(&point, 1 + i);
    }
    assert_true(dt_importance(space, trials, 8, 0, share));
    assert_false(dt_importance(space, trials, 7, 0, share));
    trials[2].value = NAN;
    assert_false(dt_importance(space, trials, 8, 0, share));
    for (int i = 0; i < 8; i++)
        trials[i].value = 1;
    assert_false(dt_importance(space, trials, 8, 0, share));
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_of_the_planted_terms),
        cmocka_unit_test(crowded_trials_do_not_hide_the_space),
        cmocka_unit_test(a_pure_interaction_has_no_share_alone),
        cmocka_unit_test(a_large_space_is_drawn_from),
        cmocka_unit_test(nothing_to_learn_from_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
