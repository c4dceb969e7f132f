/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Layouts first, then the settings of the best, then the environments of the best plan; and at
 * equal budget a planted best plan is found as often as without stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

#include <string.h>

enum { LAYOUTS = 10, TILES = 30, FLAGS = 8, VARIABLES = 5, SEEDS = 20 };

/* 10 layouts, 240 settings of each; with variables: 5 environments of each plan. */
static struct dt_space *make_plans(bool variables)
{
    struct dt_space *space = NULL;
    int64_t values[TILES];
    for (int i = 0; i < TILES; i++)
        values[i] = i;
    const struct dt_axis axes[] = {
        {.name = "ranks", .role = DT_ROLE_RANKS, .count = 2, .values = values},
        {.name = "ulysses", .role = DT_ROLE_LAYOUT, .count = LAYOUTS / 2, .values = values},
        {.name = "tile", .count = TILES, .values = values},
        {.name = "flag", .count = FLAGS, .values = values},
        {.name = "NCCL", .role = DT_ROLE_ENVIRONMENT, .count = VARIABLES, .values = values}};
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < (variables ? 5 : 4); i++)
        assert_int_equal(dt_space_add_axis(space, &axes[i]), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

static int layout_of(const struct dt_point *point)
{
    return point->index[0] * (LAYOUTS / 2) + point->index[1];
}

/* Layouts differ by a tenth each in an order of the seed; settings by up to a quarter, which
 * depends on the layout a little. */
static struct dt_trial measure(const struct dt_point *point, uint64_t seed)
{
    int layout = layout_of(point);
    double rank = (double)((uint64_t)layout * 3 + seed) / 1.0;
    double place = (double)((uint64_t)rank % LAYOUTS);
    double tile = point->index[2] - (double)((seed * 7 + (uint64_t)layout) % TILES);
    double value = (1 + 0.1 * place) * (1 + 0.15 * fabs(tile) / TILES) *
                   (1 + 0.02 * abs(point->index[3] - (int)(seed % FLAGS))) *
                   (1 - 0.01 * (point->index[4] == 3));
    return (struct dt_trial){
        .point = *point, .value = value, .low = value, .high = value, .cost = 1};
}

static uint64_t group_of(const void *context, const struct dt_point *point)
{
    (void)context;
    return (uint64_t)point->index[4] * 10 + (uint64_t)point->index[0] + 1;
}

static struct dt_search *begin(const char *name, const struct dt_space *space, uint64_t seed,
                               int evaluations)
{
    static const struct dt_groups groups = {.of = group_of, .in_a_row = 1, .stay = 4};
    const struct dt_search_opts opts = {
        .space = space, .seed = seed, .evaluations = evaluations, .groups = &groups};
    struct dt_search *search = NULL;
    assert_int_equal(dt_search_new(name, &opts, &search), DT_OK);
    return search;
}

static void layouts_come_first_then_settings_of_the_best(void **state)
{
    struct dt_space *space = make_plans(true);
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        enum { EVALUATIONS = 60 };
        struct dt_search *search = begin("stages", space, seed, EVALUATIONS);
        double values[LAYOUTS] = {0}, best = INFINITY;
        bool allowed[LAYOUTS], changed[VARIABLES] = {false};
        int environments = 0;
        for (int i = 0; i < EVALUATIONS; i++) {
            struct dt_point point;
            assert_int_equal(dt_search_ask(search, &point), DT_OK);
            struct dt_trial trial = measure(&point, seed);
            int layout = layout_of(&point);
            if (i < LAYOUTS) {
                assert_true(values[layout] == 0); /* each once, at its default settings */
                assert_int_equal(point.index[2] + point.index[3] + point.index[4], 0);
                values[layout] = trial.value;
            } else if (point.index[4] == 0) {
                assert_int_equal(environments, 0); /* these are last */
                assert_true(allowed[layout]);
            } else {
                changed[point.index[4]] = true;
                environments++;
            }
            for (int k = 0; i == LAYOUTS - 1 && k < LAYOUTS; k++) {
                int better = 0;
                for (int m = 0; m < LAYOUTS; m++)
                    better += values[m] < values[k];
                allowed[k] = better < 3;
            }
            best = fmin(best, trial.value);
            dt_search_tell(search, &trial);
        }
        assert_int_equal(environments, 3); /* as many as can stay loaded beside the best plan's */
        assert_false(changed[0]);
        dt_search_free(search);
    }
    dt_space_free(space);
}

/* Every layout in turn when the settings of the best are exhausted: nothing is out of reach. */
static void ends_with_every_plan(void **state)
{
    struct dt_space *space = make_plans(false);
    struct dt_search *search = begin("stages", space, 1, 0);
    struct dt_point point;
    int n = 0;
    (void)state;
    for (dt_status status; (status = dt_search_ask(search, &point)) != DT_DONE; n++) {
        assert_int_equal(status, DT_OK);
        struct dt_trial trial = measure(&point, 1);
        dt_search_tell(search, &trial);
        if (n == 300)
            break; /* a model's linear algebra grows */
    }
    assert_true(n == 300);
    dt_search_free(search);
    search = begin("stages", space, 1, LAYOUTS * TILES * FLAGS); /* room for all: no model */
    for (n = 0; dt_search_ask(search, &point) == DT_OK; n++) {
        struct dt_trial trial = measure(&point, 1);
        dt_search_tell(search, &trial);
    }
    assert_int_equal(n, LAYOUTS * TILES * FLAGS);
    dt_search_free(search);
    dt_space_free(space);
}

static double best_of(const char *name, const struct dt_space *space, uint64_t seed,
                      int evaluations)
{
    struct dt_search *search = begin(name, space, seed, evaluations);
    struct dt_point point;
    double best = INFINITY;
    for (int i = 0; i < evaluations && dt_search_ask(search, &point) == DT_OK; i++) {
        struct dt_trial trial = measure(&point, seed);
        best = fmin(best, trial.value);
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    return best;
}

/* The mean of the best values, fixed seeds. */
static void nothing_is_lost_at_equal_budget(void **state)
{
    struct dt_space *space = make_plans(false);
    (void)state;
    for (int evaluations = 20; evaluations <= 40; evaluations += 20) {
        double stages = 0, bayes = 0, random = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            stages += best_of("stages", space, seed, evaluations) / SEEDS;
            bayes += best_of("bayes", space, seed, evaluations) / SEEDS;
            random += best_of("random", space, seed, evaluations) / SEEDS;
        }
        print_message("%d trials: stages %.4f bayes %.4f random %.4f\n", evaluations, stages, bayes,
                      random);
        assert_true(stages <= bayes * 1.005);
        assert_true(stages < random);
    }
    dt_space_free(space);
}

/* A budget that has not room for all layouts: half of it looks at layouts,
 * those of the prior first. */
static double prior_value(const void *context, const struct dt_point *point)
{
    (void)context;
    return layout_of(point) == 7 ? (double)NAN : 1.0 + (layout_of(point) + 4) % LAYOUTS;
}

static void short_budgets_follow_the_prior(void **state)
{
    const struct dt_prior prior = {.name = "planted", .value = prior_value};
    struct dt_space *space = make_plans(false);
    const struct dt_search_opts opts = {.space = space, .evaluations = 8, .prior = &prior};
    static const int order[] = {6, 8, 9, 0};
    struct dt_search *search = NULL;
    (void)state;
    assert_int_equal(dt_search_new("stages", &opts, &search), DT_OK);
    for (int i = 0; i < 8; i++) {
        struct dt_point point;
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        if (i < 4)
            assert_int_equal(layout_of(&point), order[i]);
        struct dt_trial trial = measure(&point, 3);
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_come_first_then_settings_of_the_best),
        cmocka_unit_test(ends_with_every_plan),
        cmocka_unit_test(nothing_is_lost_at_equal_budget),
        cmocka_unit_test(short_budgets_follow_the_prior),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
