/* SPDX-License-Identifier: MIT */
/* Each family keeps the limits of the common code, and each of its letters has a size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"

static void keeps_the_limits(const struct dt_family *family)
{
    struct dt_workload workload = {.network = {.family = family,
                                               .hidden = 8,
                                               .heads = 2,
                                               .depth = 2,
                                               .patch = 2,
                                               .in_channels = 4,
                                               .latent_size = 4,
                                               .mlp_ratio = 4},
                                   .height = 32,
                                   .width = 32};
    int fields = 0;
    while (family->fields[fields].name != NULL)
        fields++;
    assert_in_range(fields, 0, DT_FAMILY_FIELDS);
    assert_in_range(family->buffer_count, 0, DT_FAMILY_BUFFERS);
    for (int i = 0; i < family->whole + family->of_block; i++)
        assert_true(dt_family_product(&workload, family->tensors[i].shape) > 0);
    for (int i = 0; i < family->buffer_count; i++)
        assert_true(dt_family_product(&workload, family->buffers[i].width) > 0);
}

static void every_family_keeps_the_limits(void **state)
{
    (void)state;
#define DT_FAMILY(name) keeps_the_limits(&dt_family_##name);
#include "model/families.def"
}

/* Also of a family that has no letters of its own. */
static void test_an_unknown_letter_has_no_size(void **state)
{
    struct dt_family bare = dt_family_dit;
    struct dt_workload workload = {.network = {.family = &bare, .hidden = 8}};
    (void)state;
    assert_int_equal(dt_family_size(&workload, '?'), 0);
    bare.size = NULL;
    assert_int_equal(dt_family_size(&workload, '?'), 0);
    assert_int_equal(dt_family_size(&workload, '3'), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_keeps_the_limits),
        cmocka_unit_test(test_an_unknown_letter_has_no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
