/* SPDX-License-Identifier: MIT */
/* Properties of designs in a full box: a Latin hypercube of n points meets each of n values of every axis once; the
 * first 2^k points of a Sobol sequence do so for 2^k values. Draws do neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

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

static void hypercubes_hold_every_value_once(void **state)
{
    struct dt_space *space = make_box();
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct dt_search *lhs = start("lhs:points=32", space, seed);
        struct dt_search *sobol = start("sobol", space, seed);
        struct dt_search *random = start("random", space, seed);
        assert_int_equal(different(lhs, space), VALUES);
        for (int cube = 1; cube < 4; cube++) /* less a point or two that an earlier cube had */
            assert_in_range(different(lhs, space), VALUES - 2, VALUES);
        assert_int_equal(different(sobol, space), VALUES);
        assert_in_range(different(random, space), 10, VALUES - 4); /* 1 - 1/e of them, or so */
        dt_search_free(lhs);
        dt_search_free(sobol);
        dt_search_free(random);
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hypercubes_hold_every_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
