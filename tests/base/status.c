/* SPDX-License-Identifier: MIT */
/* ctest: threads */
/* The sentence of a failure, and the documented exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

#include <pthread.h>
#include <string.h>

static void sentence_is_kept(void **state)
{
    (void)state;
    assert_int_equal(dt_fail(DT_EUSAGE, "ulysses=%d does not divide %s", 3, "it"), DT_EUSAGE);
    assert_string_equal(dt_message(), "ulysses=3 does not divide it");
    assert_int_equal(dt_fail(DT_ECORRUPT, "%s, again", dt_message()), DT_ECORRUPT);
    assert_string_equal(dt_message(), "ulysses=3 does not divide it, again");
}

static void control_bytes_are_replaced(void **state)
{
    (void)state;
    assert_int_equal(dt_fail(DT_FAILED, "a\x1b[31m\n\x7f"
                                        "b \xc3\xa9"),
                     DT_FAILED);
    assert_string_equal(dt_message(), "a?[31m??b \xc3\xa9");
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(dt_fail(DT_FAILED, "%s", text), DT_FAILED);
    assert_int_equal(strlen(dt_message()), 1023);
}

static void *other_thread(void *before)
{
    *(size_t *)before = strlen(dt_message());
    return dt_fail(DT_FAILED, "theirs") == DT_FAILED ? NULL : before;
}

static void one_sentence_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    size_t before = 99;
    void *result = &before;
    assert_int_equal(dt_fail(DT_FAILED, "mine"), DT_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &before), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    assert_int_equal(before, 0);
    assert_string_equal(dt_message(), "mine");
}

/* The table of exit codes that programs document, written out a second time. */
static void exit_codes(void **state)
{
    (void)state;
    static const int codes[][2] = {
        {DT_OK, 0},
        {DT_DONE, 0},
        {DT_FAILED, 1},
        {DT_EUSAGE, 2},
        {DT_EINFEASIBLE, 3},
        {DT_EWINNER, 4},
        {DT_EINCONCLUSIVE, 5},
        {DT_EPROVISIONAL, 6},
        {DT_ECORRUPT, 7},
        {DT_ELOCK, 8},
        {DT_EALLFAILED, 9},
        {DT_EWEAK, 10},
        {DT_EDIRTY, 11},
        {DT_EIO, 74},
        {DT_EINTR, 130},
        {DT_ETERM, 143},
        {DT_EHUP, 129},
        {DT_ENOMEM, 1},
        {-9999, 1},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        assert_int_equal(dt_status_exit(codes[i][0]), codes[i][1]);
    assert_string_equal(dt_status_text(DT_OK), "ok");
    assert_string_equal(dt_status_text(-9999), "unknown status");
}

static void codes_are_distinct(void **state)
{
    (void)state;
    static const int all[] = {
#define DT_STATUS(name, value, exit_code, text) value,
#include "base/status.def"
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(all[i] != all[j]);
}

static void first_error_is_kept(void **state)
{
    (void)state;
    struct dt_error error = {DT_OK, ""};
    assert_int_equal(dt_error_raise(&error), DT_OK);
    assert_int_equal(dt_error_keep(&error, DT_OK), DT_OK);
    assert_int_equal(dt_error_keep(&error, DT_DONE), DT_DONE);
    assert_int_equal(error.status, DT_OK);
    assert_int_equal(dt_error_keep(&error, dt_fail(DT_EIO, "no file %d", 1)), DT_EIO);
    assert_int_equal(dt_error_keep(&error, dt_fail(DT_ENOMEM, "no memory")), DT_ENOMEM);
    assert_string_equal(dt_message(), "no memory");
    assert_int_equal(dt_error_raise(&error), DT_EIO);
    assert_string_equal(dt_message(), "no file 1");
    assert_int_equal(dt_fail(DT_EUSAGE, "it: %s", dt_message()), DT_EUSAGE);
    assert_string_equal(dt_message(), "it: no file 1");
}

static dt_status tries(dt_status inner)
{
    DT_TRY(inner);
    return 77;
}

static void try_passes_errors_only(void **state)
{
    (void)state;
    assert_int_equal(tries(DT_EIO), DT_EIO);
    assert_int_equal(tries(DT_OK), 77);
    assert_int_equal(tries(DT_WAIT), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentence_is_kept),
        cmocka_unit_test(control_bytes_are_replaced),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(one_sentence_a_thread),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(codes_are_distinct),
        cmocka_unit_test(first_error_is_kept),
        cmocka_unit_test(try_passes_errors_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
