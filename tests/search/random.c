/* SPDX-License-Identifier: MIT */
/* All orders are equally likely: chi-square over many seeds. Each limit is passed by chance once in
 * 10^4, but the seeds are fixed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

enum { CELLS_MOST = 128, SEEDS = 24000 };

static double chi_square(const int counts[], int cells)
{
    double sum = 0, expected = (double)SEEDS / cells;
    for (int i = 0; i < cells; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void order_of(const struct dt_space *space, uint64_t seed, int order[], int n)
{
    struct dt_search *search = start("random", space, seed);
    for (int i = 0; i < n; i++) {
        struct dt_point point;
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        order[i] = (int)dt_space_index(space, &point);
    }
    dt_search_free(search);
}

static void each_draw_is_uniform(void **state)
{
    int counts[3][20] = {{0}};
    struct dt_space *space = make_line(20);
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int order[20];
        order_of(space, seed, order, 20);
        counts[0][order[0]]++;
        counts[1][order[1]]++;
        counts[2][order[19]]++;
    }
    for (int i = 0; i < 3; i++)
        assert_true(chi_square(counts[i], 20) < 51); /* 19 degrees of freedom */
    dt_space_free(space);
}

static void every_permutation_is_equally_likely(void **state)
{
    int counts[256] = {0}, cells[CELLS_MOST], n = 0;
    struct dt_space *space = make_line(4);
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int order[4];
        order_of(space, seed, order, 4);
        counts[((order[0] * 4 + order[1]) * 4 + order[2]) * 4 + order[3]]++;
    }
    for (int i = 0; i < 256; i++)
        if (counts[i] > 0 && n < CELLS_MOST)
            cells[n++] = counts[i];
    assert_int_equal(n, 24);
    assert_true(chi_square(cells, 24) < 57); /* 23 degrees of freedom */
    dt_space_free(space);
}

/* Told points are left out; the others stay equally likely. */
static void uniform_after_a_warm_start(void **state)
{
    int counts[30] = {0}, cells[20], n = 0;
    struct dt_space *space = make_line(30);
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct dt_search *search = start("random", space, seed);
        struct dt_point point;
        for (int k = 0; k < 30; k += 3) {
            dt_space_at(space, k, &point);
            answer(search, &point, k);
        }
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        counts[dt_space_index(space, &point)]++;
        dt_search_free(search);
    }
    for (int k = 0; k < 30; k++) {
        if (k % 3 == 0)
            assert_int_equal(counts[k], 0);
        else
            cells[n++] = counts[k];
    }
    assert_true(chi_square(cells, 20) < 51);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_draw_is_uniform),
        cmocka_unit_test(every_permutation_is_equally_likely),
        cmocka_unit_test(uniform_after_a_warm_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
