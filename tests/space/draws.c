/* SPDX-License-Identifier: MIT */
/* Draws by chi-square, designs by the strata they promise, neighbours by going over the whole product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/space_int.h"
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

/* Two groups that no rule links, one of them lopsided. */
static struct dt_space *make(void)
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

static void draws_are_uniform(void **state)
{
    (void)state;
    struct dt_space *space = make();
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

/* Each point of a design is a uniform draw, too; the axes' shares are closer to what they should be than draws come. */
static void check_design(bool sobol)
{
    struct dt_space *space = make();
    struct dt_rng rng = dt_rng_at(5, "designs");
    int count = (int)dt_space_count(space), designs = 4000;
    int *counts = calloc((size_t)count, sizeof *counts);
    double share[7] = {0};
    for (int k = 0; k < count; k++) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        share[point.index[0]] += 1.0 / count;
    }
    for (int design = 0; design < designs; design++) {
        struct dt_point points[16];
        int n = 16, of_first[7] = {0};
        assert_int_equal(sobol ? dt_space_sobol(space, (uint64_t)design, &n, points)
                               : dt_space_lhs(space, &rng, &n, points),
                         DT_OK);
        assert_int_equal(n, 16);
        for (int i = 0; i < n; i++) {
            int64_t k = dt_space_index(space, &points[i]);
            assert_in_range(k, 0, count - 1);
            for (int j = 0; j < i; j++)
                assert_false(dt_point_equal(space, &points[i], &points[j]));
            counts[k]++;
            of_first[points[i].index[0]]++;
        }
        for (int i = 0; i < 7; i++)
            assert_true(fabs(of_first[i] - 16 * share[i]) < 3.01); /* two, and a repeat replaced */
    }
    /* Points of one design repel each other, so cells vary less than in draws. */
    assert_true(chi_square(counts, count, 16.0 * designs / count) < chi_square_limit(count - 1));
    free(counts);
    dt_space_free(space);
}

static void hypercube_points_are_uniform(void **state)
{
    (void)state;
    check_design(false);
}

static void sobol_points_are_uniform(void **state)
{
    (void)state;
    check_design(true);
}

/* Without rules a design of n points meets each of n equal slices of each axis once. */
static void designs_without_rules_are_stratified(void **state)
{
    enum { SIDE = 64 };
    int64_t values[SIDE];
    struct dt_space *space = NULL;
    struct dt_rng rng = dt_rng_at(3, "strata");
    (void)state;
    for (int i = 0; i < SIDE; i++)
        values[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 3; i++) {
        const struct dt_axis axis = {.name = i == 0   ? "x"
                                             : i == 1 ? "y"
                                                      : "z",
                                     .count = SIDE,
                                     .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    for (int design = 0; design < 20; design++) {
        struct dt_point points[SIDE];
        bool met[3][SIDE] = {{false}};
        int n = SIDE;
        if (design % 2 == 0)
            assert_int_equal(dt_space_lhs(space, &rng, &n, points), DT_OK);
        else
            assert_int_equal(dt_space_sobol(space, (uint64_t)design, &n, points), DT_OK);
        assert_int_equal(n, SIDE);
        for (int i = 0; i < n; i++)
            for (int axis = 0; axis < 3; axis++) {
                assert_false(met[axis][points[i].index[axis]]);
                met[axis][points[i].index[axis]] = true;
            }
    }
    dt_space_free(space);
}

/* The sequence's first 2^k points, of any coordinate, fall into each of 2^k equal slices once, and the first two
 * coordinates together into each of the boxes of that area. */
static void sobol_points_fill_equal_boxes(void **state)
{
    struct dt_sobol sobol;
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        static double rows[256][DT_AXES_MAX];
        dt_sobol_init(&sobol, seed);
        for (int i = 0; i < 256; i++)
            dt_sobol_next(&sobol, rows[i]);
        for (int axis = 0; axis < DT_AXES_MAX; axis++) {
            bool met[256] = {false};
            for (int i = 0; i < 256; i++) {
                int slice = (int)(256 * rows[i][axis]);
                assert_false(met[slice]);
                met[slice] = true;
            }
        }
        for (int across = 0; across <= 8; across++) {
            bool met[256] = {false};
            for (int i = 0; i < 256; i++) {
                int x = (int)(ldexp(rows[i][0], across)), y = (int)ldexp(rows[i][1], 8 - across);
                int box = x << (8 - across) | y;
                assert_false(met[box]);
                met[box] = true;
            }
        }
    }
}

/* More is asked for than there is, or nearly all: all of it, once each. */
static void small_spaces_are_returned_whole(void **state)
{
    struct dt_space *space = make();
    struct dt_rng rng = dt_rng_at(9, "small");
    int count = (int)dt_space_count(space);
    struct dt_point *points = calloc((size_t)count + 8, sizeof *points);
    (void)state;
    for (int wanted = count - 2; wanted <= count + 8; wanted += 5)
        for (int sobol = 0; sobol < 2; sobol++) {
            int n = wanted;
            bool *met = calloc((size_t)count, sizeof *met);
            assert_int_equal(sobol ? dt_space_sobol(space, 1, &n, points)
                                   : dt_space_lhs(space, &rng, &n, points),
                             DT_OK);
            assert_int_equal(n, wanted < count ? wanted : count);
            for (int i = 0; i < n; i++) {
                int64_t k = dt_space_index(space, &points[i]);
                assert_false(met[k]);
                met[k] = true;
            }
            free(met);
        }
    free(points);
    dt_space_free(space);
}

/* Is b one move from a? By the definition, over all points. */
static bool is_neighbour(const struct dt_space *space, const struct dt_point *a,
                         const struct dt_point *b, enum dt_move move)
{
    int axis = -1;
    for (int i = 0; i < dt_space_axes(space); i++) {
        if (a->index[i] == b->index[i])
            continue;
        if (axis >= 0)
            return false;
        axis = i;
    }
    if (axis < 0 || !dt_space_feasible(space, b))
        return false;
    int low = a->index[axis] < b->index[axis] ? a->index[axis] : b->index[axis];
    int high = a->index[axis] + b->index[axis] - low;
    struct dt_point between = *a;
    for (int i = low + 1; move == DT_STEP && i < high; i++) {
        between.index[axis] = i;
        if (dt_space_feasible(space, &between))
            return false;
    }
    return true;
}

static void neighbours_match_enumeration(void **state)
{
    struct dt_space *space = make();
    struct dt_point *found = calloc(64, sizeof *found), point, other;
    int64_t count = dt_space_count(space);
    (void)state;
    for (int move = DT_STEP; move <= DT_EXCHANGE; move++)
        for (int64_t k = 0; k < count; k += 3) {
            int expected = 0;
            dt_space_at(space, k, &point);
            int n = dt_space_neighbours(space, &point, (enum dt_move)move, found, 64);
            assert_in_range(n, 0, 64);
            for (int64_t i = 0; i < count; i++) {
                dt_space_at(space, i, &other);
                expected += is_neighbour(space, &point, &other, (enum dt_move)move);
            }
            assert_int_equal(n, expected);
            for (int i = 0; i < n; i++) {
                assert_true(is_neighbour(space, &point, &found[i], (enum dt_move)move));
                for (int j = 0; j < i; j++)
                    assert_false(dt_point_equal(space, &found[i], &found[j]));
            }
            other = found[1];
            assert_int_equal(dt_space_neighbours(space, &point, (enum dt_move)move, found, 1), n);
            assert_true(n < 2 || dt_point_equal(space, &found[1], &other));
        }
    free(found);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(hypercube_points_are_uniform),
        cmocka_unit_test(sobol_points_are_uniform),
        cmocka_unit_test(designs_without_rules_are_stratified),
        cmocka_unit_test(sobol_points_fill_equal_boxes),
        cmocka_unit_test(small_spaces_are_returned_whole),
        cmocka_unit_test(neighbours_match_enumeration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
