/* SPDX-License-Identifier: MIT */
/* The noise floor from two copies of a plan with planted ratios. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/compare/entrant.h"

#include <math.h>
#include <string.h>

/* A twin with that interval; the visits of either copy spread by spread
 * (robust: 1.4826 MAD of 1). */
static struct dt_noise noise_of(double low, double ratio, double high, double spread)
{
    static struct dt_entrant first, twin;
    first.result.samples.n = twin.result.samples.n = 64;
    first.result.summary = (struct dt_summary){.median = 2, .mad = 0.01};
    twin.result.summary = (struct dt_summary){.median = 2, .mad = 2 * spread};
    twin.ratio =
        (struct dt_ratio){.pairs = 64, .sets = 16, .ratio = ratio, .interval = {low, high}};
    return dt_noise_of(&first, &twin);
}

static void test_margin_is_the_far_end(void **state)
{
    (void)state;
    struct dt_noise a = noise_of(0.99, 1.001, 1.02, 0.01), b = noise_of(0.97, 0.99, 1.005, 0.01);
    assert_true(fabs(a.margin - 0.02) < 1e-12 && !a.noisy && !a.differs && a.pairs == 64);
    assert_true(fabs(b.margin - 0.03 / 0.97) < 1e-12 && !b.noisy && !b.differs);
    assert_true(fabs(a.cv - 0.01) < 1e-12);
}

static void flags_noise_beyond_the_limits(void **state)
{
    (void)state;
    assert_true(noise_of(0.94, 1, 1.01, 0.01).noisy);
    assert_true(noise_of(0.999, 1, 1.001, 0.051).noisy);
    assert_false(noise_of(0.953, 1, 1.049, 0.049).noisy);
    struct dt_noise slower = noise_of(1.002, 1.004, 1.006, 0.01);
    assert_true(slower.differs && !slower.noisy && fabs(slower.margin - 0.006) < 1e-12);
    assert_true(noise_of(0.97, 0.98, 0.99, 0.01).differs);
}

static void notes_describe_the_noise(void **state)
{
    (void)state;
    struct dt_text text = {0};
    struct dt_noise quiet = noise_of(0.99, 1, 1.01, 0.01), loud = noise_of(0.93, 1, 1.08, 0.06);
    dt_noise_note(&quiet, &text);
    assert_string_equal(dt_text_at(&text), "");
    dt_noise_note(&loud, &text);
    assert_non_null(strstr(dt_text_at(&text), "the machine is not quiet: differences below 8.0 %"));
    dt_text_fini(&text);
    struct dt_noise shifted = noise_of(1.002, 1.004, 1.006, 0.01);
    dt_noise_note(&shifted, &text);
    assert_non_null(strstr(dt_text_at(&text), "differed from itself"));
    assert_null(strstr(dt_text_at(&text), "too noisy"));
    dt_text_fini(&text);
}

static void noise_is_unknown_without_a_comparison(void **state)
{
    (void)state;
    struct dt_entrant none = {.ratio = {.ratio = NAN, .interval = {NAN, NAN}}};
    struct dt_noise noise = dt_noise_of(&none, &none);
    assert_true(noise.pairs == 0 && isnan(noise.margin) && !noise.noisy && !noise.differs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin_is_the_far_end),
        cmocka_unit_test(flags_noise_beyond_the_limits),
        cmocka_unit_test(notes_describe_the_noise),
        cmocka_unit_test(noise_is_unknown_without_a_comparison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
