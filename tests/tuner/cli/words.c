/* SPDX-License-Identifier: MIT */
/* What a reader should do, in words: what is said where there is a documented plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/cli/words.h"

#include <math.h>
#include <string.h>

static const struct dt_words_verdict enough = {
    .verdict = DT_VERDICT_DOCUMENTED, .plan = "p=1", .is_documented = true, .level = NAN};

static void assert_words(const struct dt_words_verdict *what, const char *words, bool are)
{
    dt_auto_text text = {0};
    dt_words_verdict(what, &text);
    assert_int_equal(strstr(dt_text_at(&text), words) != NULL, are);
}

static struct dt_gain gain_of(double low, double high)
{
    return (struct dt_gain){.known = true, .ratio = sqrt(low * high), .interval = {low, high}};
}

static void a_documented_plan_is_enough(void **state)
{
    (void)state;
    struct dt_words_verdict what = enough;
    assert_words(&what,
                 "It is used since the default plan cannot be, and no other plan was shown to be "
                 "faster.",
                 true);
    what.gain = gain_of(1.1, 1.3);
    assert_words(&what,
                 "is enough here. It is 1.196 times as fast as the default plan (interval 1.100 to "
                 "1.300), and no other plan was shown to be faster.",
                 true);
}

/* Another plan was, and the documented one takes its place. */
static void a_documented_plan_that_was_not_shown_faster_is_not_called_faster(void **state)
{
    (void)state;
    struct dt_words_verdict what = enough;
    what.gain = gain_of(0.9, 1.3);
    assert_words(
        &what,
        "was not itself shown to be faster than the default: it ran 1.082 times as fast as "
        "the default plan (interval 0.900 to 1.300). The best other plan was shown to be "
        "faster than the default, and not to be faster than the documented plan.",
        true);
    assert_words(&what, "no other plan was shown to be faster", false);
}

static void a_gain_that_leaves_out_the_documented_plan_says_so(void **state)
{
    (void)state;
    struct dt_words_verdict what = {.verdict = DT_VERDICT_FASTER,
                                    .plan = "p=2",
                                    .lacks_documented = true,
                                    .gain = gain_of(1.1, 1.3),
                                    .level = NAN};
    const char *words = "times as fast as the default plan (interval 1.100 to 1.300). That is no "
                        "gain over the documented plan, which failed or was not measured here.";
    assert_words(&what, words, true);
    what.lacks_documented = false;
    assert_words(&what, "documented", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_documented_plan_is_enough),
        cmocka_unit_test(a_documented_plan_that_was_not_shown_faster_is_not_called_faster),
        cmocka_unit_test(a_gain_that_leaves_out_the_documented_plan_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
