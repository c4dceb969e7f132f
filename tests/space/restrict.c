/* SPDX-License-Identifier: MIT */
/* Parts of a space, and a point for each combination of some axes, against loops
 * over all its points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "space/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 6, LARGE = 24 };

/* ranks = a x b; settings c, d and a text; rules that join layout and settings. large: c has so
 * many values that the points are not listed one by one. */
static struct dt_space *make(int large)
{
    static const char *const names[AXES] = {"ranks", "a", "b", "c", "d", "mode"};
    static const char *const labels[] = {"x", "y", "z"};
    static const int counts[AXES] = {8, 4, 4, 6, 5, 3};
    static int64_t values[DT_AXES_MAX + 4000];
    struct dt_space *space = NULL;
    for (int i = 0; i < 4000; i++)
        values[i] = i + 1;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < AXES; i++) {
        const struct dt_axis axis = {.name = names[i],
                                     .role = i == 0  ? DT_ROLE_RANKS
                                             : i < 3 ? DT_ROLE_LAYOUT
                                                     : DT_ROLE_PLAIN,
                                     .count = counts[i] + (i == 3 || i == 4 ? large : 0),
                                     .values = i < 5 ? values : NULL,
                                     .labels = i < 5 ? NULL : labels};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_constant(space, "most", 9), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "a * b == ranks", ""), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "c + b <= most || mode == 'y'", ""), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "a < 4 || (c == 2 && d == 3)", ""), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "b != 3 || mode == 'z'", ""), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

static bool agree(uint32_t axes, const struct dt_point *a, const struct dt_point *b)
{
    for (int i = 0; i < AXES; i++)
        if ((axes >> i & 1) != 0 && a->index[i] != b->index[i])
            return false;
    return true;
}

/* Every k-th point of the whole is in the part if and only if it agrees; and
 * the part has no others. */
static void check_part(const struct dt_space *space, uint32_t axes, const struct dt_point points[],
                       int n)
{
    struct dt_space *part = NULL;
    int64_t expected = 0;
    assert_int_equal(dt_space_restrict(space, axes, points, n, &part), DT_OK);
    for (int64_t k = 0; k < dt_space_count(space); k++) {
        struct dt_point point;
        bool any = false;
        dt_space_at(space, k, &point);
        for (int i = 0; i < n; i++)
            any = any || agree(axes, &point, &points[i]);
        expected += any;
        assert_int_equal(dt_space_feasible(part, &point), any);
    }
    assert_int_equal(dt_space_count(part), expected);
    dt_space_free(part);
}

static void a_part_has_the_points_that_agree(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        struct dt_space *space = make(large * LARGE);
        struct dt_rng rng = dt_rng_at(7, "parts");
        struct dt_point points[3];
        for (int i = 0; i < 8; i++) {
            for (int k = 0; k < 3; k++)
                dt_space_draw(space, &rng, &points[k]);
            check_part(space, 7, points, 1 + i % 3);
            check_part(space, (uint32_t)dt_rng_below(&rng, 64), points, 1 + i % 3);
        }
        dt_space_free(space);
    }
}

/* Far too many points to list: only the diagram knows the part. */
static void a_part_of_a_large_space(void **state)
{
    struct dt_space *space = make(3000), *part = NULL;
    struct dt_rng rng = dt_rng_at(8, "parts");
    struct dt_point point, drawn;
    int64_t sum = 0;
    (void)state;
    assert_true(dt_space_count(space) > 4000000);
    for (int k = 0; k < 200; k++) {
        dt_space_draw(space, &rng, &point);
        assert_int_equal(dt_space_restrict(space, 7, &point, 1, &part), DT_OK);
        dt_space_draw(part, &rng, &drawn);
        assert_true(agree(7, &point, &drawn) && dt_space_feasible(space, &drawn));
        dt_space_free(part);
    }
    struct dt_point *tuples = NULL;
    int count;
    assert_int_equal(dt_space_tuples(space, 7, &tuples, &count), DT_OK);
    for (int i = 0; i < count; i++) {
        assert_int_equal(dt_space_restrict(space, 7, &tuples[i], 1, &part), DT_OK);
        sum += dt_space_count(part);
        dt_space_free(part);
    }
    assert_int_equal(sum, dt_space_count(space)); /* they share the points out */
    free(tuples);
    dt_space_free(space);
}

static void each_combination_has_one_point(void **state)
{
    struct dt_space *space = make(0);
    bool seen[8 * 4 * 4] = {false};
    struct dt_point *tuples = NULL, point;
    int count, distinct = 0;
    (void)state;
    assert_int_equal(dt_space_layout_axes(space), 7);
    assert_int_equal(dt_space_tuples(space, 7, &tuples, &count), DT_OK);
    for (int64_t k = 0; k < dt_space_count(space); k++) {
        dt_space_at(space, k, &point);
        bool *at = &seen[(point.index[0] * 4 + point.index[1]) * 4 + point.index[2]];
        distinct += !*at;
        *at = true;
    }
    assert_int_equal(count, distinct);
    for (int i = 0; i < count; i++) {
        assert_true(dt_space_feasible(space, &tuples[i]));
        for (int k = 0; k < i; k++)
            assert_false(agree(7, &tuples[i], &tuples[k]));
        if (tuples[i].index[1] < 3 && tuples[i].index[2] != 2) /* its default settings are legal */
            assert_int_equal(tuples[i].index[3] + tuples[i].index[4] + tuples[i].index[5], 0);
    }
    free(tuples);
    dt_space_free(space);
}

static void too_many_combinations_are_refused(void **state)
{
    struct dt_space *space = make(3000);
    struct dt_point *tuples = NULL;
    int count;
    (void)state;
    assert_int_equal(dt_space_tuples(space, 31, &tuples, &count), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "too many"));
    assert_null(tuples);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_the_points_that_agree),
        cmocka_unit_test(a_part_of_a_large_space),
        cmocka_unit_test(each_combination_has_one_point),
        cmocka_unit_test(too_many_combinations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
