/* SPDX-License-Identifier: MIT */
/* The names and settings that --search takes, whichever rows strategies.def has, and
 * the words of outcomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

#include <stdio.h>
#include <string.h>

static void refused(const char *name, const char *why)
{
    struct dt_space *space = make_line(3);
    const struct dt_search_opts opts = {.space = space};
    struct dt_search *search = NULL;
    assert_int_equal(dt_search_check(name), DT_EUSAGE);
    assert_int_equal(dt_search_new(name, &opts, &search), DT_EUSAGE);
    assert_null(search);
    if (strstr(dt_message(), why) == NULL)
        fail_msg("'%s' is answered by '%s', which does not say '%s'", name, dt_message(), why);
    dt_space_free(space);
}

static void refuses_unknown_names(void **state)
{
    const char *name;
    (void)state;
    refused("exhaustiv", "'exhaustiv'");
    refused("", "''");
    EACH_STRATEGY(name)
    refused("exhaustiv", name);
    dt_search_free(NULL);
}

/* Every setting at its limits, beyond them, misspelt, and not a number. */
static void checks_the_range_of_each_setting(void **state)
{
    struct dt_space *space = make_line(3);
    const struct dt_search_opts opts = {.space = space};
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        const struct dt_strategy *row = dt_strategies[s];
        char text[256];
        assert_true(row->doc[0] != '\0' && row->paper[0] != '\0');
        snprintf(text, sizeof text, "%s:nonsense=1", row->name);
        refused(text, row->knobs != NULL ? row->knobs[0].name : "no settings");
        for (const struct dt_knob *knob = row->knobs; knob != NULL && knob->name != NULL; knob++) {
            assert_true(knob->doc[0] != '\0');
            assert_true(knob->low <= knob->fallback && knob->fallback <= knob->high);
            for (int high = 0; high < 2; high++) {
                struct dt_search *search = NULL;
                double limit = high ? knob->high : knob->low;
                snprintf(text, sizeof text, "%s:%s=%.17g", row->name, knob->name, limit);
                assert_int_equal(dt_search_new(text, &opts, &search), DT_OK);
                dt_search_free(search);
                snprintf(text, sizeof text, "%s:%s=%.17g", row->name, knob->name,
                         high ? limit * 2 + 1 : limit - 1);
                refused(text, knob->name);
            }
            snprintf(text, sizeof text, "%s:%s", row->name, knob->name);
            refused(text, "must be a number");
            snprintf(text, sizeof text, "%s:%s=nan", row->name, knob->name);
            refused(text, "must be a number");
            snprintf(text, sizeof text, "%s:%s=1,", row->name, knob->name);
            refused(text, row->name);
        }
    }
    dt_space_free(space);
}

static void outcome_texts_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < DT_TRIAL_OUTCOMES; i++) {
        enum dt_outcome outcome = DT_TRIAL_OUTCOMES;
        assert_int_equal(dt_outcome_parse(dt_outcome_text((enum dt_outcome)i), &outcome), DT_OK);
        assert_int_equal(outcome, i);
    }
    enum dt_outcome outcome = DT_TRIAL_HUNG;
    assert_string_equal(dt_outcome_text(DT_TRIAL_OK), "ok");
    assert_string_equal(dt_outcome_text(DT_TRIAL_OUTCOMES), "unknown outcome");
    assert_int_equal(dt_outcome_parse("OK", &outcome), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "'OK'"));
    assert_int_equal(dt_outcome_parse("", &outcome), DT_EUSAGE);
    assert_int_equal(outcome, DT_TRIAL_HUNG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_unknown_names),
        cmocka_unit_test(checks_the_range_of_each_setting),
        cmocka_unit_test(outcome_texts_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
