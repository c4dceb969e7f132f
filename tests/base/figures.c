/* SPDX-License-Identifier: MIT */
/* ctest: */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/figures.h"

#include <math.h>

static void is(struct dt_text *text, const char *expected)
{
    assert_string_equal(dt_text_at(text), expected);
    dt_text_fini(text);
}

static void formats_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *expected;
    } cases[] = {{0, "0"},
                 {141.04, "141"},
                 {23730, "23730"},
                 {1e9, "1000000000"},
                 {0.00321, "0.00321"},
                 {9.5e-7, "0.0000010"},
                 {-12.345, "-12.35"},
                 {999.96, "1000"},
                 {NAN, "-"},
                 {INFINITY, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text text = {0};
        dt_figure_add(cases[i].value, &text);
        is(&text, cases[i].expected);
    }
}

static void formats_times(void **state)
{
    (void)state;
    static const struct {
        double seconds, low, high;
        const char *expected;
    } cases[] = {{0.0831, 0.0829, 0.332, "83.1 ms"},
                 {0.0831, 0.0829, 0.331, "83.1 ms [82.9, 331]"},
                 {1.25, NAN, NAN, "1.25 s"},
                 {640e-6, 639e-6, 641e-6, "640 us [639, 641]"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text text = {0};
        dt_figure_estimate(cases[i].seconds, cases[i].low, cases[i].high, &text);
        is(&text, cases[i].expected);
    }
}

/* An interval of a factor of four is told; of a wider one the end that bounds it on
 * one side, or nothing. */
static void formats_ratios(void **state)
{
    (void)state;
    static const struct {
        double ratio, low, high;
        const char *behind, *range;
    } cases[] = {{1.196, 1.061, 1.348, "1.196 [1.061, 1.348]", "1.061 to 1.348"},
                 {1.0, 0.5, 2.0, "1.000 [0.500, 2.000]", "0.500 to 2.000"},
                 {2.8, 0.2, 40, "2.800 [not decided]", "not decided"},
                 {6, 1.1, 33, "6.000 [at least 1.100]", "at least 1.100"},
                 {0.1, 0.01, 0.9, "0.100 [at most 0.900]", "at most 0.900"},
                 {1.2, NAN, NAN, "1.200 [-, -]", "not known"},
                 {1.2, 0, INFINITY, "1.200 [-, -]", "not known"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text text = {0}, range = {0};
        dt_figure_ratio(cases[i].ratio, cases[i].low, cases[i].high, &text);
        dt_figure_range(cases[i].low, cases[i].high, &range);
        is(&text, cases[i].behind);
        is(&range, cases[i].range);
    }
}

static void formats_shares(void **state)
{
    (void)state;
    static const struct {
        double share;
        const char *expected;
    } cases[] = {{0.00234, "0.23 %"}, {0.0996, "10 %"}, {0.994, "99 %"},
                 {0.996, "100 %"},    {2.343, "234 %"}, {-1.5, "-150 %"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(dt_figure_percent(cases[i].share).text, cases[i].expected);
}

static void formats_memory(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *expected;
    } cases[] = {{0, "0 bytes"},
                 {1, "1 bytes"},
                 {1023, "1023 bytes"},
                 {1024, "1 KiB"},
                 {1000 * 1024, "1000 KiB"},
                 {136628608, "130 MiB"},
                 {1395864371, "1.3 GiB"},
                 {INT64_C(150) << 30, "150 GiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text text = {0};
        dt_figure_bytes(cases[i].bytes, &text);
        is(&text, cases[i].expected);
    }
}

static void formats_time_spans(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *expected;
    } cases[] = {{-1, "0 s"}, {44.2, "45 s"}, {119, "119 s"}, {240, "4 min"}, {7500, "2 h 05 min"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text text = {0};
        dt_figure_span(cases[i].seconds, &text);
        is(&text, cases[i].expected);
    }
}

static void keeps_all_digits_for_options(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *expected;
    } cases[] = {{28000000, "28ms"}, {1500000, "1500us"}, {60000000000, "60s"},
                 {1250, "1.250us"},  {10, "0.010us"},     {0, "0s"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(dt_figure_exact(cases[i].ns).text, cases[i].expected);
}

static void chooses_the_unit_by_size(void **state)
{
    (void)state;
    assert_string_equal(dt_figure_of(-0.0025).text, "-2.5 ms");
    assert_string_equal(dt_figure_of(600).text, "600 s");
}

static void formats_wall_times_in_utc(void **state)
{
    (void)state;
    int64_t ns = 1793628238 * INT64_C(1000000000);
    assert_string_equal(dt_figure_day(ns).text, "2026-11-02");
    assert_string_equal(dt_figure_minute(ns).text, "2026-11-02 14:03");
    assert_string_equal(dt_figure_stamp(ns).text, "20261102T140358Z");
    assert_string_equal(dt_figure_day(INT64_MAX).text, "2262-04-11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_numbers),
        cmocka_unit_test(formats_times),
        cmocka_unit_test(keeps_all_digits_for_options),
        cmocka_unit_test(chooses_the_unit_by_size),
        cmocka_unit_test(formats_ratios),
        cmocka_unit_test(formats_shares),
        cmocka_unit_test(formats_memory),
        cmocka_unit_test(formats_time_spans),
        cmocka_unit_test(formats_wall_times_in_utc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
