/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* A space whose diagram knows some of its rules only: what is drawn from it is uniform over the
 * points that keep all of them. One is made so by hand, small enough to go over; another is too
 * much for a diagram by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/diagram/diagram.h"
#include "space/json/json.h"
#include "tests/space/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t values[] = {1, 2, 3, 4, 6, 8, 12};

static struct dt_space *make(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct dt_space *space = NULL;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 4; i++) {
        const struct dt_axis axis = {.name = names[i], .count = 7 - i, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "a % b == 0", NULL), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "(a * c + b) % 5 != d", NULL), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "b + c < 10", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* Leaves the second rule to rejection. */
static void relax(struct dt_space *space)
{
    static const struct dt_bound plenty = {.work = 1000000, .edges = 1000000};
    const int order[] = {2, 0, 3, 1};
    dt_diagram_free(space->diagram);
    free(space->rows);
    space->rows = NULL;
    space->diagram = NULL;
    space->relaxation.kept[1] = false;
    space->relaxation.used = true;
    space->count = -1;
    assert_int_equal(dt_diagram_new(space, order, space->relaxation.kept, &plenty, &space->diagram),
                     DT_OK);
    assert_int_equal(dt_space_probe(space), DT_OK);
}

static double chi_square_limit(double freedom)
{
    double step = 4.265 * sqrt(2 / (9 * freedom));
    return freedom * pow(1 - 2 / (9 * freedom) + step, 3);
}

static void draws_are_uniform(void **state)
{
    struct dt_space *exact = make(), *space = make();
    struct dt_rng rng = dt_rng_at(21, "relaxed");
    int count = (int)dt_space_count(exact), each = 200;
    int *counts = calloc((size_t)count, sizeof *counts);
    double sum = 0;
    (void)state;
    relax(space);
    assert_false(dt_space_listed(space));
    assert_int_equal(dt_space_count(space), -1);
    assert_true(fabs(dt_space_estimate(space) / count - 1) < 0.3);
    for (int i = 0; i < count * each; i++) {
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        counts[dt_space_index(exact, &point)]++;
    }
    for (int i = 0; i < count; i++)
        sum += (double)(counts[i] - each) * (counts[i] - each) / each;
    assert_true(sum < chi_square_limit(count - 1));
    free(counts);
    dt_space_free(exact);
    dt_space_free(space);
}

static void other_functions_match_the_exact_space(void **state)
{
    struct dt_space *exact = make(), *space = make();
    struct dt_rng rng = dt_rng_at(22, "relaxed");
    struct dt_point point = {{0}}, one[256], two[256];
    int mapped[2] = {0};
    (void)state;
    relax(space);
    do {
        int64_t v[DT_AXES_MAX] = {0};
        walk_values(space, &point, v);
        assert_int_equal(dt_space_feasible(space, &point), dt_space_feasible(exact, &point));
        if (dt_space_feasible(exact, &point))
            continue;
        struct dt_explanation a, b;
        assert_int_equal(dt_space_explain(exact, v, &a), DT_OK);
        assert_int_equal(dt_space_explain(space, v, &b), DT_OK);
        assert_int_equal(json_array_size(json_object_get(a.json, "nearest")),
                         json_array_size(json_object_get(b.json, "nearest")));
        dt_explanation_fini(&a);
        dt_explanation_fini(&b);
    } while (walk_on(space, &point));
    for (int64_t k = 0; k < dt_space_count(exact); k += 5) {
        dt_space_at(exact, k, &point);
        int n = dt_space_neighbours(exact, &point, one, 256);
        assert_int_equal(dt_space_neighbours(space, &point, two, 256), n);
        assert_in_range(n, 0, 256);
        for (int i = 0; i < n; i++)
            assert_true(dt_point_equal(space, &one[i], &two[i]));
    }
    for (int i = 0; i < 2000; i++) {
        double coordinates[DT_AXES_MAX] = {0};
        for (int a = 0; a < dt_space_axes(space); a++)
            coordinates[a] = dt_rng_uniform(&rng);
        bool feasible = dt_space_at_coordinates(space, coordinates, &point);
        assert_int_equal(feasible, dt_space_feasible(exact, &point));
        mapped[feasible]++;
    }
    assert_true(mapped[false] > 0 && mapped[true] > 0);
    dt_space_free(exact);
    dt_space_free(space);
}

static dt_status make_large(const char *rule, struct dt_space **space)
{
    int64_t numbers[100];
    assert_int_equal(dt_space_new(space), DT_OK);
    for (int i = 0; i < 100; i++)
        numbers[i] = i + 1;
    for (int i = 0; i < 6; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct dt_axis axis = {.name = name, .count = 100, .values = numbers};
        assert_int_equal(dt_space_add_axis(*space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(*space, "a < f && b <= e", NULL), DT_OK);
    assert_int_equal(dt_space_add_rule(*space, rule, NULL), DT_OK);
    return dt_space_seal(*space);
}

static void handles_a_large_space(void **state)
{
    struct dt_space *space = NULL;
    struct dt_rng rng = dt_rng_at(24, "large");
    (void)state;
    assert_int_equal(make_large("(a * c + b * d + c * e * f + a * e) % 100003 < 2000", &space),
                     DT_OK);
    assert_false(dt_space_listed(space));
    assert_int_equal(dt_space_count(space), -1);
    for (int i = 0; i < 500; i++) {
        struct dt_point point;
        int64_t v[DT_AXES_MAX] = {0};
        dt_space_draw(space, &rng, &point);
        walk_values(space, &point, v);
        assert_true(v[0] < v[5] && v[1] <= v[4]);
        assert_true((v[0] * v[2] + v[1] * v[3] + v[2] * v[4] * v[5] + v[0] * v[4]) % 100003 < 2000);
    }
    dt_space_free(space);
    /* 101^6 is more than any of them, so no plan keeps this one; the explanation says
     * what it cannot show. */
    assert_int_equal(
        make_large("a * c + b * d * e + c * e * f + a * e * b == a * b * c * d * e * f "
                   "* 100 + 77777 * f",
                   &space),
        DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "none of"));
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(other_functions_match_the_exact_space),
        cmocka_unit_test(handles_a_large_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
