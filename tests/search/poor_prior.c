/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Priors as wrong as can be: from a machine on which everything that works here failed, and the
 * other way round; and one that praises the slowest plans. They cost hardly anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

enum { PLANS = 300, BAD = 150, EVALUATIONS = 40, SEEDS = 12 };
enum { SAME = 15 }; /* plans asked for before rounding, which differs with the unit, may show */

/* The second half of the line works here, and only the first there. */
static double praises_what_fails(const void *context, const struct dt_point *point)
{
    (void)context;
    return point->index[0] < BAD ? 1.0 + point->index[0] : HUGE_VAL;
}

/* The same, but for a few plans that work in both places. */
static double praises_mostly(const void *context, const struct dt_point *point)
{
    (void)context;
    return point->index[0] < BAD + 30 ? 1.0 + point->index[0] : HUGE_VAL;
}

/* The plans that are asked for, `ahead` of them before the first is answered; returns how many
 * work. unit: of the values. */
static int ask_and_tell(const struct dt_prior *prior, uint64_t seed, double unit, int ahead,
                        int order[EVALUATIONS])
{
    struct dt_space *space = make_line(PLANS);
    const struct dt_search_opts opts = {.space = space, .seed = seed, .prior = prior};
    struct dt_search *search = NULL;
    struct dt_point points[EVALUATIONS];
    int asked = 0, worked = 0;
    assert_int_equal(dt_search_new("bayes", &opts, &search), DT_OK);
    for (int i = 0; i < EVALUATIONS; i++) {
        while (asked < EVALUATIONS && asked <= i + ahead - 1 &&
               dt_search_ask(search, &points[asked]) == DT_OK) /* it may want an answer first */
            order[asked] = points[asked].index[0], asked++;
        assert_true(asked > i);
        struct dt_trial trial = {
            .point = points[i], .outcome = DT_TRIAL_FAILED, .value = NAN, .cost = 1};
        if (order[i] >= BAD) {
            trial.outcome = DT_TRIAL_OK;
            trial.value = trial.low = trial.high = unit * order[i];
            worked++;
        }
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    dt_space_free(space);
    return worked;
}

static void failures_end_the_trust_in_a_prior(void **state)
{
    const struct dt_prior prior = {.name = "upside down", .value = praises_what_fails};
    (void)state;
    int order[EVALUATIONS];
    for (uint64_t seed = 0; seed < 8; seed++)
        assert_in_range(ask_and_tell(&prior, seed, 1, 1, order), EVALUATIONS / 3, EVALUATIONS);
}

/* Seconds or nanoseconds: the search asks for the same plans, also while nothing that the prior
 * knows has an answer, or only plans that are not answered yet. */
static void the_unit_of_a_prior_does_not_matter(void **state)
{
    const struct dt_prior priors[] = {{.name = "upside down", .value = praises_what_fails},
                                      {.name = "mostly", .value = praises_mostly}};
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        for (int p = 0; p < 2; p++)
            for (int ahead = 1; ahead < 4; ahead++) {
                int seconds[EVALUATIONS] = {0}, nanoseconds[EVALUATIONS] = {0};
                ask_and_tell(&priors[p], seed, 1, ahead, seconds);
                ask_and_tell(&priors[p], seed, 1e9, ahead, nanoseconds);
                assert_memory_equal(seconds, nanoseconds, SAME * sizeof seconds[0]);
            }
}

/* Fastest at a quarter of the line, seven times as slow at its end. */
static double seconds(int k)
{
    return 1 + fabs(k - PLANS / 4.0) / (PLANS / 8.0);
}

static double upside_down(const void *context, const struct dt_point *point)
{
    (void)context;
    return 7 / seconds(point->index[0]);
}

/* Mean over the evaluations of how far the best so far is above the fastest, as
 * a share of the range. */
static double regret(const struct dt_prior *prior, uint64_t seed)
{
    struct dt_space *space = make_line(PLANS);
    const struct dt_search_opts opts = {.space = space, .seed = seed, .prior = prior};
    struct dt_search *search = NULL;
    double best = seconds(PLANS - 1), sum = 0;
    assert_int_equal(dt_search_new("bayes", &opts, &search), DT_OK);
    for (int i = 0; i < EVALUATIONS; i++) {
        struct dt_trial trial = {.outcome = DT_TRIAL_OK, .cost = 1};
        assert_int_equal(dt_search_ask(search, &trial.point), DT_OK);
        trial.value = trial.low = trial.high = trial.seconds = seconds(trial.point.index[0]);
        dt_search_tell(search, &trial);
        best = fmin(best, trial.value);
        sum += (best - 1) / (seconds(PLANS - 1) - 1) / EVALUATIONS;
    }
    dt_search_free(search);
    dt_space_free(space);
    return sum;
}

static void a_reversed_prior_costs_little(void **state)
{
    const struct dt_prior prior = {.name = "upside down", .value = upside_down};
    double cold = 0, misled = 0;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cold += regret(NULL, seed) / SEEDS;
        misled += regret(&prior, seed) / SEEDS;
    }
    if (misled > cold + 0.05)
        fail_msg("regret %.3f with the prior, %.3f without", misled, cold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_end_the_trust_in_a_prior),
        cmocka_unit_test(the_unit_of_a_prior_does_not_matter),
        cmocka_unit_test(a_reversed_prior_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
