/* SPDX-License-Identifier: MIT */
/* For any sequence of counts the elements are kept and there is room for all (checked by
 * the address sanitizer). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void keeps_what_was_written(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    int count = 0;
    for (int round = 0; round < 500; round++) {
        const int more = round * 37 % 97;
        assert_int_equal(DT_GROW(items, count, more), DT_OK);
        assert_true(malloc_usable_size(items) >= (size_t)(count + more) * sizeof *items);
        for (int end = count + more; count < end; count++)
            items[count] = (uint64_t)count * 0x9E3779B97F4A7C15u;
        count = round % 50 == 49 ? count / 3 : count;
        for (int i = 0; i < count; i++)
            assert_int_equal(items[i], (uint64_t)i * 0x9E3779B97F4A7C15u);
    }
    free(items);
}

static void moves_a_logarithmic_number_of_times(void **state)
{
    (void)state;
    char *items = NULL;
    int moves = 0;
    for (size_t count = 0; count < 1 << 20; count++) {
        char *before = items;
        size_t room = malloc_usable_size(before);
        assert_int_equal(DT_GROW(items, count, 1), DT_OK);
        items[count] = 1;
        moves += items != before || malloc_usable_size(items) != room;
    }
    assert_true(moves <= 20);
    free(items);
}

static void resizes_to_any_length(void **state)
{
    (void)state;
    int *items = NULL;
    for (int count = 0; count < 100; count++) {
        assert_int_equal(DT_RESIZE(items, count), DT_OK);
        assert_non_null(items);
        for (int i = 0; i < count - 1; i++)
            assert_int_equal(items[i], i);
        if (count > 0)
            items[count - 1] = count - 1;
    }
    assert_int_equal(DT_RESIZE(items, 0), DT_OK);
    assert_non_null(items);
    free(items);
}

static void too_much_changes_nothing(void **state)
{
    (void)state;
    int *items = NULL;
    assert_int_equal(DT_GROW(items, 0, 3), DT_OK);
    items[2] = 5;
    int *before = items;
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX / 2, SIZE_MAX / sizeof *items,
                            SIZE_MAX / sizeof *items + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(DT_GROW(items, 3, sizes[i]), DT_ENOMEM);
        assert_int_equal(DT_RESIZE(items, sizes[i]), DT_ENOMEM);
        assert_ptr_equal(items, before);
        assert_int_equal(items[2], 5);
    }
    assert_non_null(strstr(dt_message(), "out of memory for"));
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_was_written),
        cmocka_unit_test(moves_a_logarithmic_number_of_times),
        cmocka_unit_test(resizes_to_any_length),
        cmocka_unit_test(too_much_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
