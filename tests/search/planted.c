/* SPDX-License-Identifier: MIT */
/* An optimum planted in a smooth space of thousands of plans. Draws without replacement find
 * one of n after (n + 1) / 2 on average, exactly; a search that learns anything from its
 * answers needs far fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/dose.h"
#include "tests/search/line.h"

#include <string.h>

enum { AXES = 4, VALUES = 10 };

static int seeds_of_a_strategy(void)
{
    return dose_thin() ? 3 : 8;
}

static struct dt_space *make_box(void)
{
    struct dt_space *space = open_box(AXES, VALUES);
    assert_int_equal(dt_space_add_rule(space, "a + b != 9", ""), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_int_equal(dt_space_count(space), 9000);
    return space;
}

/* A bowl with its lowest point at 3 7 1 5, where plans with c = 9 fail. */
static struct dt_trial bowl(const struct dt_point *point)
{
    static const int lowest[AXES] = {3, 7, 1, 5};
    struct dt_trial trial = {.point = *point, .outcome = DT_TRIAL_OK, .value = 1, .cost = 1};
    for (int i = 0; i < AXES; i++)
        trial.value += 0.05 * (1 + i) * pow(point->index[i] - lowest[i], 2);
    if (point->index[2] == 9) {
        trial.value = NAN;
        trial.outcome = DT_TRIAL_MEMORY;
    }
    trial.low = trial.high = trial.value;
    return trial;
}

/* Evaluations until the lowest point was asked for, at most so many. */
static int evaluations(const char *name, const struct dt_space *space, uint64_t seed, int most)
{
    struct dt_search *search = start(name, space, seed);
    struct dt_point point;
    int n = 0;
    for (bool found = false; !found; n++) {
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        assert_true(n < most);
        struct dt_trial trial = bowl(&point);
        found = trial.value == 1;
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    return n;
}

static double mean_evaluations(const char *name, int seeds, int most)
{
    struct dt_space *space = make_box();
    double sum = 0;
    for (int seed = 0; seed < seeds; seed++)
        sum += evaluations(name, space, (uint64_t)seed, most);
    dt_space_free(space);
    return sum / seeds;
}

/* A tenth of what draws need is asked for; measured are 40 to 130. */
static void learning_strategies_beat_random_draws(void **state)
{
    static const char *const names[] = {"tpe", "bayes"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double mean = mean_evaluations(names[i], seeds_of_a_strategy(), 1000);
        print_message("%s: %.1f evaluations\n", names[i], mean);
        assert_true(mean < 4500.5 / 10);
    }
}

/* 4500.5 with a deviation of 9000 / sqrt(12) over the seeds: 184 of the mean of 200. */
static void random_draws_need_half_of_the_space(void **state)
{
    (void)state;
    const int seeds = dose_thin() ? 50 : 200;
    double mean = mean_evaluations("random", seeds, 9000);
    assert_true(fabs(mean - 4500.5) < 3 * 9000 / sqrt(12.0 * seeds));
}

/* Without an order of the values a search by neighbours still beats draws. */
static void learning_strategies_beat_draws_on_labels(void **state)
{
    static const char *const labels[] = {"p", "q", "r", "s", "t", "u", "v", "w"};
    static const char *const names[] = {"tpe", "bayes"};
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < AXES; i++) {
        const struct dt_axis axis = {
            .name = (const char *[]){"a", "b", "c", "d"}[i], .count = 8, .labels = labels};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const int seeds = seeds_of_a_strategy();
        double sum = 0;
        for (int seed = 0; seed < seeds; seed++) {
            struct dt_search *search = start(names[k], space, (uint64_t)seed);
            int wrong = AXES;
            for (; wrong > 0; sum++) { /* one more per label that is wrong */
                struct dt_trial trial = {.outcome = DT_TRIAL_OK};
                assert_int_equal(dt_search_ask(search, &trial.point), DT_OK);
                wrong = 0;
                for (int i = 0; i < AXES; i++)
                    wrong += trial.point.index[i] != (3 * i + 2) % 8;
                trial.value = trial.low = trial.high = 1 + wrong;
                dt_search_tell(search, &trial);
            }
            dt_search_free(search);
        }
        print_message("%s: %.1f evaluations\n", names[k], sum / seeds);
        assert_true(sum / seeds < 2048.5 / 5);
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learning_strategies_beat_random_draws),
        cmocka_unit_test(random_draws_need_half_of_the_space),
        cmocka_unit_test(learning_strategies_beat_draws_on_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
