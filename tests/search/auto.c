/* SPDX-License-Identifier: MIT */
/* The choice of auto by the number of plans, and by the number of trials that
 * fit, given or computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

#include <string.h>

struct budget {
    int plans;
    int64_t evaluations;
    double seconds, trial_seconds;
    const char *takes, *says;
};

static const struct budget budgets[] = {
    {100, 100, 0, 1, "exhaustive:", "100 plans, room for about 100 trials"},
    {100, 99, 0, 1, "bayes:", "100 plans, room for about 99 trials"},
    {100, 0, 250, 2, "exhaustive:", "room for about 125 trials"},
    {100, 0, 250, 5, "bayes:", "room for about 50 trials"},
    {100, 0, 0, 5, "bayes:", "a budget of unknown length"},
    {4000, 3000, 0, 1, "tpe:", "room for about 3000 trials"},
    {4000, 0, 60, 0.02, "tpe:", "room for about 3000 trials"},
};

static void check_budget(const struct budget *budget)
{
    struct dt_space *space = make_line(budget->plans);
    struct dt_point first, point;
    struct dt_search *search = NULL;
    struct dt_text reason = {0};
    dt_space_at(space, 7, &first);
    const struct dt_search_opts opts = {.space = space,
                                        .start = &first,
                                        .evaluations = budget->evaluations,
                                        .seconds = budget->seconds};
    assert_int_equal(dt_search_new("auto", &opts, &search), DT_OK);
    assert_int_equal(dt_search_ask(search, &point), DT_OK);
    assert_int_equal(dt_space_index(space, &point), 7);
    dt_search_reason(search, &reason);
    assert_int_equal(reason.size, 0); /* the default comes first; nothing is chosen yet */
    const struct dt_trial trial = {.point = point,
                                   .outcome = DT_TRIAL_OK,
                                   .value = 3,
                                   .low = 3,
                                   .high = 3,
                                   .cost = budget->trial_seconds};
    dt_search_tell(search, &trial);
    assert_int_equal(dt_search_ask(search, &point), DT_OK);
    dt_search_reason(search, &reason);
    if (strncmp(dt_text_at(&reason), budget->takes, strlen(budget->takes)) != 0 ||
        strstr(dt_text_at(&reason), budget->says) == NULL)
        fail_msg("'%s' is not '%s' and '%s'", dt_text_at(&reason), budget->takes, budget->says);
    dt_text_fini(&reason);
    dt_search_free(search);
    dt_space_free(space);
}

static void chooses_by_the_budget(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++)
        check_budget(&budgets[i]);
}

static void says_the_same(const struct dt_search *chosen, const struct dt_search *itself)
{
    struct dt_text a = {0}, b = {0};
    dt_search_note(chosen, &a);
    dt_search_note(itself, &b);
    const char *seconds = strstr(dt_text_at(&b), " took "); /* processor time of fits */
    assert_int_equal(strncmp(dt_text_at(&a), dt_text_at(&b),
                             seconds != NULL ? (size_t)(seconds - dt_text_at(&b)) : b.size + 1),
                     0);
    assert_true(b.size < 2 || strcmp(dt_text_at(&b) + b.size - 2, "; ") != 0);
    dt_text_clear(&b);
    dt_search_reason(itself, &b);
    assert_int_equal(b.size, 0); /* it chose nothing */
    dt_text_fini(&a);
    dt_text_fini(&b);
}

/* It asks what the strategy it takes would have asked by itself, from the same answers, those
 * before the first question included, and says the same of it. */
static void check_same(const char *name, int64_t evaluations)
{
    struct dt_space *space = make_line(60);
    const struct dt_search_opts opts = {.space = space, .seed = 3, .evaluations = evaluations};
    struct dt_search *chosen = NULL, *itself = NULL;
    assert_int_equal(dt_search_new("auto", &opts, &chosen), DT_OK);
    assert_int_equal(dt_search_new(name, &opts, &itself), DT_OK);
    for (int k = 0; k < 60; k += 11) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        answer(chosen, &point, k);
        answer(itself, &point, k);
    }
    for (int i = 0; i < 20; i++) {
        struct dt_point a, b;
        dt_status status = dt_search_ask(itself, &b);
        assert_int_equal(dt_search_ask(chosen, &a), status);
        if (status != DT_OK)
            break;
        assert_true(dt_point_equal(space, &a, &b));
        answer(chosen, &a, i);
        answer(itself, &b, i);
        says_the_same(chosen, itself);
    }
    dt_search_free(chosen);
    dt_search_free(itself);
    dt_space_free(space);
}

static void asks_what_the_chosen_strategy_asks(void **state)
{
    (void)state;
    check_same("exhaustive", 60);
    check_same("bayes", 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_by_the_budget),
        cmocka_unit_test(asks_what_the_chosen_strategy_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
