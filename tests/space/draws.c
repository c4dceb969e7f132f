/* SPDX-License-Identifier: MIT */
/* Draws and points of coordinates by chi-square, neighbours by going over the whole product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/space_int.h"
#include "tests/space/ruled.h"
#include "tests/space/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above it in one of 10^5 (Wilson, Hilferty 1931). */
static double chi_square_limit(double freedom)
{
    double step = 4.265 * sqrt(2 / (9 * freedom));
    return freedom * pow(1 - 2 / (9 * freedom) + step, 3);
}

static double chi_square(const int counts[], int n, double expected)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void draws_are_uniform(void **state)
{
    (void)state;
    struct dt_space *space = ruled_space();
    struct dt_rng rng = dt_rng_at(11, "draws");
    int n = (int)dt_space_count(space), each = 200;
    int *counts = calloc((size_t)n, sizeof *counts);
    assert_true(n > 100);
    for (int i = 0; i < n * each; i++) {
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        int64_t k = dt_space_index(space, &point);
        assert_in_range(k, 0, n - 1);
        counts[k]++;
    }
    assert_true(chi_square(counts, n, each) < chi_square_limit(n - 1));
    free(counts);
    dt_space_free(space);
}

/* Uniform coordinates give uniform draws; where one coordinate goes over its range in equal
 * steps, so do the values of the axis that is bound first. */
static void coordinates_are_mapped_by_the_distribution(void **state)
{
    struct dt_space *space = ruled_space();
    struct dt_rng rng = dt_rng_at(5, "coordinates");
    int count = (int)dt_space_count(space), each = 200, steps = 1000, of_first[7] = {0};
    int *counts = calloc((size_t)count, sizeof *counts);
    double coordinates[DT_AXES_MAX] = {0}, share[7] = {0};
    struct dt_point point;
    (void)state;
    for (int k = 0; k < count; k++) {
        dt_space_at(space, k, &point);
        share[point.index[0]] += 1.0 / count;
    }
    for (int i = 0; i < count * each; i++) {
        for (int a = 0; a < 4; a++) /* one of the five axes has one value, and no coordinate */
            coordinates[a] = dt_rng_uniform(&rng);
        assert_true(dt_space_at_coordinates(space, coordinates, &point));
        counts[dt_space_index(space, &point)]++;
    }
    assert_true(chi_square(counts, count, each) < chi_square_limit(count - 1));
    for (int i = 0; i < steps; i++) {
        coordinates[0] = (i + 0.5) / steps;
        assert_true(dt_space_at_coordinates(space, coordinates, &point));
        of_first[point.index[0]]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(fabs(of_first[i] - steps * share[i]) < 1.01);
    free(counts);
    dt_space_free(space);
}

/* Does b differ from a in one axis? By the definition, over all points. */
static bool is_neighbour(const struct dt_space *space, const struct dt_point *a,
                         const struct dt_point *b)
{
    int different = 0;
    for (int i = 0; i < dt_space_axes(space); i++)
        different += a->index[i] != b->index[i];
    return different == 1 && dt_space_feasible(space, b);
}

static void neighbours_match_enumeration(void **state)
{
    struct dt_space *space = ruled_space();
    struct dt_point *found = calloc(64, sizeof *found), point, other;
    int64_t count = dt_space_count(space);
    (void)state;
    for (int64_t k = 0; k < count; k += 3) {
        int expected = 0;
        dt_space_at(space, k, &point);
        int n = dt_space_neighbours(space, &point, found, 64);
        assert_in_range(n, 0, 64);
        for (int64_t i = 0; i < count; i++) {
            dt_space_at(space, i, &other);
            expected += is_neighbour(space, &point, &other);
        }
        assert_int_equal(n, expected);
        for (int i = 0; i < n; i++) {
            assert_true(is_neighbour(space, &point, &found[i]));
            for (int j = 0; j < i; j++)
                assert_false(dt_point_equal(space, &found[i], &found[j]));
        }
        other = found[1];
        assert_int_equal(dt_space_neighbours(space, &point, found, 1), n);
        assert_true(n < 2 || dt_point_equal(space, &found[1], &other));
    }
    free(found);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(coordinates_are_mapped_by_the_distribution),
        cmocka_unit_test(neighbours_match_enumeration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
