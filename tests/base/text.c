/* SPDX-License-Identifier: MIT */
/* ctest: dose */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/lib/dose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request no machine can meet must come back as NULL under the address sanitizer too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void grows_as_needed(void **state)
{
    (void)state;
    struct dt_text text = {0};
    char expected[4096] = "";
    assert_string_equal(dt_text_at(&text), "");
    for (int i = 0; i < 300; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d,", i);
        strcat(expected, number);
        dt_text_add(&text, "%d,", i);
        assert_int_equal(text.size, strlen(expected));
        assert_string_equal(dt_text_at(&text), expected);
    }
    assert_int_equal(dt_text_status(&text), DT_OK);
    dt_text_fini(&text);
    assert_string_equal(dt_text_at(&text), "");
}

static void holds_any_bytes(void **state)
{
    (void)state;
    struct dt_text text = {0};
    dt_text_add_bytes(&text, "a\0b", 3);
    dt_text_add_bytes(&text, NULL, 0);
    dt_text_add(&text, "%s", "c");
    assert_int_equal(text.size, 4);
    assert_memory_equal(text.bytes, "a\0bc", 5);
    dt_text_clear(&text);
    assert_int_equal(text.size, 0);
    assert_string_equal(dt_text_at(&text), "");
    assert_true(text.room > 0);
    dt_text_fini(&text);
}

static void take_transfers_ownership(void **state)
{
    (void)state;
    struct dt_text text = {0};
    char *empty = dt_text_take(&text);
    assert_string_equal(empty, "");
    dt_text_add(&text, "mine");
    char *taken = dt_text_take(&text);
    assert_string_equal(taken, "mine");
    assert_null(text.bytes);
    assert_int_equal(text.size + text.room, 0);
    free(taken);
    free(empty);
}

static void an_allocation_failure_is_remembered(void **state)
{
    (void)state;
    struct dt_text text = {0};
    volatile size_t huge = SIZE_MAX / 8;
    dt_text_add(&text, "before");
    dt_text_add_bytes(&text, "", huge);
    assert_true(text.failed);
    dt_text_add(&text, "after");
    assert_int_equal(dt_text_status(&text), DT_ENOMEM);
    assert_string_equal(dt_text_at(&text), "before");
    assert_null(dt_text_take(&text));
    assert_int_equal(dt_text_status(&text), DT_OK);
}

static void mends(const char *text, const char *expected)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    dt_text_mend(copy);
    assert_string_equal(copy, expected);
}

static void mended_is_utf8(void **state)
{
    (void)state;
    static const char whole[] = "a\xc3\xa9z\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t kept[] = {0, 1, 1, 3, 4, 4, 4, 7, 7, 7, 7, 11}; /* by bytes before a cut */
    mends("", "");
    mends(whole, whole);
    for (size_t n = 0; n < sizeof kept / sizeof kept[0]; n++) {
        char cut[16], quoted[32], expected[32];
        snprintf(cut, sizeof cut, "%.*s", (int)n, whole);
        snprintf(expected, sizeof expected, "%.*s", (int)kept[n], whole);
        mends(cut, expected);
        snprintf(quoted, sizeof quoted, "'%s' no", cut);
        snprintf(expected, sizeof expected, "'%.*s' no", (int)kept[n], whole);
        mends(quoted, expected);
    }
    mends("\xa9\xff caf\xe9", "?? caf");      /* Latin-1 at the end looks like a cut */
    mends("\xc0\x80 \xed\xa0\x80", "?? ???"); /* too long; half of a surrogate pair */
    /* any bytes: Jansson takes what comes out, and a second time changes nothing */
    unsigned seed = (unsigned)dose_seed("text", 1);
    for (int i = 0; i < 200000; i++) {
        char text[9] = "", again[9];
        for (int k = 0; k < 8; k++) {
            seed = seed * 1664525 + 1013904223;
            text[k] = (char)(seed >> 24 | (seed >> 16 & 0x80));
        }
        dt_text_mend(text);
        json_t *string = json_string(text);
        assert_non_null(string);
        json_decref(string);
        memcpy(again, text, sizeof text);
        dt_text_mend(again);
        assert_string_equal(again, text);
    }
}

/* Checks how a text is shown: cleaned, and spelt out. */
static void shows(const char *text, const char *cleaned, const char *spelt)
{
    char copy[64];
    struct dt_text out = {0}, lines = {0};
    snprintf(copy, sizeof copy, "%s", text);
    dt_text_clean(copy);
    assert_string_equal(copy, cleaned);
    dt_text_show(text, &out);
    assert_string_equal(dt_text_at(&out), spelt);
    dt_text_add(&lines, "\n%s\t\n", text);
    dt_text_clean_lines(&lines);
    assert_int_equal(lines.size, strlen(dt_text_at(&lines)));
    assert_memory_equal(dt_text_at(&lines), "\n", 1);
    assert_string_equal(dt_text_at(&lines) + lines.size - 2, "\t\n");
    dt_text_fini(&out);
    dt_text_fini(&lines);
}

static void only_characters_are_shown(void **state)
{
    (void)state;
    static const char fine[] = "a\\ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 ## [";
    shows("", "", "");
    shows(fine, fine, fine);
    shows("a\x1b[2J\n\x7f", "a?[2J??", "a\\x1b[2J\\x0a\\x7f");
    shows("a\xc2\x9b"
          "31m",
          "a?31m", "a\\x9b31m"); /* C1 */
    shows("\xe2\x80\xae"
          "exe",
          "?exe", "\\u202eexe");                                            /* right to left */
    shows("\xe2\x81\xa6\xd8\x9c", "??", "\\u2066\\u061c");                  /* isolate, mark */
    shows("\xff\xc3 \xed\xa0\x80", "?? ???", "\\xff\\xc3 \\xed\\xa0\\x80"); /* no UTF-8 */
    shows("\xef\xbf\xbe", "?", "\\ufffe");
    shows("x##[stop-commands]y", "x?#[stop-commands]y", "x\\x23#[stop-commands]y");
    shows("###[", "#?#[", "#\\x23#[");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_as_needed),
        cmocka_unit_test(holds_any_bytes),
        cmocka_unit_test(take_transfers_ownership),
        cmocka_unit_test(an_allocation_failure_is_remembered),
        cmocka_unit_test(mended_is_utf8),
        cmocka_unit_test(only_characters_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
