/* SPDX-License-Identifier: MIT */
/* What a Sobol sequence promises: in a full box its first 2^k points meet each of 2^k values of
 * every axis once, and each box of two axes of that area; with rules each point by itself is a
 * uniform draw, and the points of a prefix repel each other. Draws do neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"
#include "tests/space/ruled.h"

#include <stdio.h>

enum { AXES = 3, VALUES = 32 };

static struct dt_space *make_box(void)
{
    struct dt_space *space = open_box(AXES, VALUES);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* The least number of different values that an axis has among the next VALUES points. */
static int different(struct dt_search *search, const struct dt_space *space)
{
    bool met[AXES][VALUES] = {{false}};
    int least = VALUES;
    for (int i = 0; i < VALUES; i++) {
        struct dt_point point;
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        for (int a = 0; a < AXES; a++)
            met[a][dt_point_value(space, &point, a)] = true;
    }
    for (int a = 0; a < AXES; a++) {
        int n = 0;
        for (int i = 0; i < VALUES; i++)
            n += met[a][i];
        least = n < least ? n : least;
    }
    return least;
}

static void every_value_is_met_once(void **state)
{
    struct dt_space *space = make_box();
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct dt_search *sobol = start("sobol", space, seed);
        struct dt_search *random = start("random", space, seed);
        assert_int_equal(different(sobol, space), VALUES);
        assert_in_range(different(random, space), 10, VALUES - 4); /* 1 - 1/e of them, or so */
        dt_search_free(sobol);
        dt_search_free(random);
    }
    dt_space_free(space);
}

/* As many axes as a space may have, of 256 values each: 256 points meet each value of each axis
 * once, and each of 256 boxes of the first two axes, whichever their sides are. */
static void equal_boxes_are_filled(void **state)
{
    enum { SIDE = 256 };
    static struct dt_point points[SIDE];
    static int64_t values[SIDE];
    struct dt_space *space = NULL;
    (void)state;
    for (int i = 0; i < SIDE; i++)
        values[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int a = 0; a < DT_AXES_MAX; a++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", a);
        const struct dt_axis axis = {.name = name, .count = SIDE, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct dt_search *search = start("sobol", space, seed);
        for (int i = 0; i < SIDE; i++)
            assert_int_equal(dt_search_ask(search, &points[i]), DT_OK);
        for (int a = 0; a < DT_AXES_MAX; a++) {
            bool met[SIDE] = {false};
            for (int i = 0; i < SIDE; i++) {
                assert_false(met[points[i].index[a]]);
                met[points[i].index[a]] = true;
            }
        }
        for (int across = 0; across <= 8; across++) {
            bool met[SIDE] = {false};
            for (int i = 0; i < SIDE; i++) {
                int x = points[i].index[0] >> (8 - across), y = points[i].index[1] >> across;
                int box = x << (8 - across) | y;
                assert_false(met[box]);
                met[box] = true;
            }
        }
        dt_search_free(search);
    }
    dt_space_free(space);
}

/* Each point is a uniform draw; the first axis' shares are closer to what they should be than
 * draws come. */
static void each_point_is_uniform(void **state)
{
    enum { DESIGNS = 4000, POINTS = 16 };
    struct dt_space *space = ruled_space();
    int count = (int)dt_space_count(space);
    int *counts = calloc((size_t)count, sizeof *counts);
    double share[7] = {0}, expected = (double)DESIGNS * POINTS / count, squares = 0;
    struct dt_point point;
    (void)state;
    for (int k = 0; k < count; k++) {
        dt_space_at(space, k, &point);
        share[point.index[0]] += 1.0 / count;
    }
    for (uint64_t seed = 0; seed < DESIGNS; seed++) {
        struct dt_search *search = start("sobol", space, seed);
        int of_first[7] = {0};
        for (int i = 0; i < POINTS; i++) {
            assert_int_equal(dt_search_ask(search, &point), DT_OK);
            counts[dt_space_index(space, &point)]++;
            of_first[point.index[0]]++;
        }
        for (int i = 0; i < 7; i++)
            assert_true(fabs(of_first[i] - POINTS * share[i]) <
                        3.01); /* 2, and a repeat replaced */
        dt_search_free(search);
    }
    for (int k = 0; k < count; k++)
        squares += (counts[k] - expected) * (counts[k] - expected) / expected;
    /* Points of one sequence repel each other, so cells vary less than in draws, which are above
     * this in one of 10^5 (Wilson, Hilferty 1931). */
    double step = 4.265 * sqrt(2 / (9.0 * (count - 1)));
    assert_true(squares < (count - 1) * pow(1 - 2 / (9.0 * (count - 1)) + step, 3));
    free(counts);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_met_once),
        cmocka_unit_test(equal_boxes_are_filled),
        cmocka_unit_test(each_point_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
