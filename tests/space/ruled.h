/* SPDX-License-Identifier: MIT */
/* ruled - a small space with rules, of which tests draw points */
#ifndef DT_TESTS_SPACE_RULED_H
#define DT_TESTS_SPACE_RULED_H

#include "space/space.h"

/* Two groups that no rule links, one of them lopsided. */
static inline struct dt_space *ruled_space(void)
{
    static const int64_t values[] = {1, 2, 3, 4, 6, 8, 12};
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    static const int counts[] = {7, 6, 1, 5, 4};
    struct dt_space *space = NULL;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 5; i++) {
        const struct dt_axis axis = {.name = names[i], .count = counts[i], .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "a % b == 0", NULL), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "d + e != 5 && d * e < 20", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

#endif
