/* SPDX-License-Identifier: MIT */
/* ctest: */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/columns.h"

#include <stdlib.h>
#include <string.h>

static void counts_columns(void **state)
{
    (void)state;
    assert_int_equal(dt_columns_of("", 0), 0);
    assert_int_equal(dt_columns_of("abc", 3), 3);
    assert_int_equal(dt_columns_of("\xc3\xa4x", 3), 2);        /* a umlaut */
    assert_int_equal(dt_columns_of("\xe6\xbc\xa2x", 4), 3);    /* a Chinese character */
    assert_int_equal(dt_columns_of("\xf0\x9f\x98\x80", 4), 2); /* a face */
    assert_int_equal(dt_columns_of("\xff\xff", 2), 2);         /* no characters */
}

static void cuts_between_characters(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa4\xe6\xbc\xa2z"; /* widths 1, 1, 2, 1 */
    static const size_t bytes[] = {0, 1, 3, 3, 6, 7, 7};
    for (int columns = 0; columns < 7; columns++)
        assert_int_equal(dt_columns_cut(text, strlen(text), columns), bytes[columns]);
}

static void wraps_at_blanks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns, indent;
        const char *expected;
    } cases[] = {
        {"", 10, 2, ""},
        {"one two\n", 10, 2, "one two\n"},
        {"one two three\n", 10, 2, "one two\n  three\n"},
        {"one two three four five", 10, 2, "one two\n  three\n  four\n  five"},
        {"exactly 10", 10, 0, "exactly 10"},
        {"label     word and more\n", 14, 10, "label     word\n          and\n          more\n"},
        {"a verylongwordthatdoesnotfit b\n", 8, 2, "a\n  verylongwordthatdoesnotfit\n  b\n"},
        {"  averylongwordthatdoesnotfit b\n", 8, 2, "  averylongwordthatdoesnotfit\n  b\n"},
        {"one\ntwo three\n\n", 5, 1, "one\ntwo\n three\n\n"},
        {"trailing   \n", 8, 0, "trailing   \n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_text out = {0};
        dt_columns_wrap(cases[i].text, cases[i].columns, cases[i].indent, &out);
        assert_string_equal(dt_text_at(&out), cases[i].expected);
        dt_text_fini(&out);
    }
}

static void takes_the_width_from_COLUMNS_first(void **state)
{
    (void)state;
    setenv("COLUMNS", "57", 1);
    assert_int_equal(dt_columns_terminal(-1), 57);
    setenv("COLUMNS", "wide", 1);
    assert_int_equal(dt_columns_terminal(-1), 80);
    unsetenv("COLUMNS");
    assert_int_equal(dt_columns_terminal(-1), 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_columns),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(wraps_at_blanks),
        cmocka_unit_test(takes_the_width_from_COLUMNS_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
