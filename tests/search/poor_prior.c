/* SPDX-License-Identifier: MIT */
/* A prior from a machine on which everything that works here failed, and the other way round: it may cost the design, not the
 * search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

enum { PLANS = 300, BAD = 150, EVALUATIONS = 40 };

/* The second half of the line works here, and only the first there. */
static double praises_what_fails(const void *context, const struct dt_point *point)
{
    (void)context;
    return point->index[0] < BAD ? 1.0 + point->index[0] : HUGE_VAL;
}

static int successes(const struct dt_prior *prior, uint64_t seed)
{
    struct dt_space *space = make_line(PLANS);
    const struct dt_search_opts opts = {.space = space, .seed = seed, .prior = prior};
    struct dt_search *search = NULL;
    int worked = 0;
    assert_int_equal(dt_search_new("bayes", &opts, &search), DT_OK);
    for (int i = 0; i < EVALUATIONS; i++) {
        struct dt_trial trial = {.outcome = DT_TRIAL_FAILED, .value = NAN, .cost = 1};
        assert_int_equal(dt_search_ask(search, &trial.point), DT_OK);
        if (trial.point.index[0] >= BAD) {
            trial.outcome = DT_TRIAL_OK;
            trial.value = trial.low = trial.high = (double)trial.point.index[0];
            worked++;
        }
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    dt_space_free(space);
    return worked;
}

static void failures_end_the_trust(void **state)
{
    const struct dt_prior prior = {.name = "upside down", .value = praises_what_fails};
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        assert_in_range(successes(&prior, seed), EVALUATIONS / 3, EVALUATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_end_the_trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
