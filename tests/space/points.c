/* SPDX-License-Identifier: MIT */
/* A space of given points against one that enumerates the same points by a rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "space/space.h"

static const int64_t values[] = {1, 2, 3, 4, 6, 8, 12};

static struct dt_space *axes(void)
{
    struct dt_space *space;
    assert_int_equal(dt_space_new(&space), DT_OK);
    const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        const struct dt_axis axis = {.name = names[i], .count = 7 - i, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    return space;
}

/* The points of the ruled space, shuffled, some of them twice, with rubbish
 * where there is no axis. */
static int64_t scatter(const struct dt_space *ruled, struct dt_point points[])
{
    struct dt_rng rng = dt_rng_at(1, "points");
    int64_t n = dt_space_count(ruled);
    for (int64_t k = 0; k < n; k++) {
        dt_space_at(ruled, k, &points[k]);
        points[k].index[DT_AXES_MAX - 1] = (int32_t)k;
    }
    for (int64_t k = n - 1; k > 0; k--) {
        int64_t j = (int64_t)dt_rng_below(&rng, (uint64_t)k + 1);
        struct dt_point swap = points[k];
        points[k] = points[j];
        points[j] = swap;
    }
    for (int64_t k = 0; k < n; k += 3)
        points[n + k / 3] = points[k];
    return n + (n + 2) / 3;
}

static void given_points_act_as_enumerated_ones(void **state)
{
    struct dt_space *ruled = axes(), *listed = axes();
    struct dt_point points[512], a, b;
    (void)state;
    assert_int_equal(dt_space_add_rule(ruled, "a % b == 0 && c <= a", ""), DT_OK);
    assert_int_equal(dt_space_seal(ruled), DT_OK);
    int64_t count = dt_space_count(ruled);
    assert_in_range(count, 20, 200);
    assert_int_equal(dt_space_seal_points(listed, points, scatter(ruled, points)), DT_OK);
    assert_int_equal(dt_space_count(listed), count);
    for (int64_t k = 0; k < count; k++) {
        dt_space_at(ruled, k, &a);
        dt_space_at(listed, k, &b);
        assert_true(dt_point_equal(ruled, &a, &b));
        assert_int_equal(dt_space_index(listed, &a), k);
    }
    const struct dt_point outside = {{0, 1, 0}}; /* a=1, b=2 */
    assert_false(dt_space_feasible(listed, &outside));
    dt_space_free(ruled);
    dt_space_free(listed);
}

static void refuses_points_outside_the_axes(void **state)
{
    struct dt_space *space = axes();
    const struct dt_point points[] = {{{0, 0, 0}}, {{6, 6, 0}}};
    (void)state;
    assert_int_equal(dt_space_seal_points(space, points, 2), DT_EUSAGE);
    assert_string_equal(dt_message(), "a point's value 6 of 'b' is none of its 6 values");
    dt_space_free(space);
}

static void an_empty_list_is_an_empty_space(void **state)
{
    struct dt_space *space = axes();
    (void)state;
    assert_int_equal(dt_space_seal_points(space, NULL, 0), DT_OK);
    assert_int_equal(dt_space_count(space), 0);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_points_act_as_enumerated_ones),
        cmocka_unit_test(refuses_points_outside_the_axes),
        cmocka_unit_test(an_empty_list_is_an_empty_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
