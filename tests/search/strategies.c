/* SPDX-License-Identifier: MIT */
/* What every strategy promises, asked of each row of strategies.def, and what sets each of ours apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 12

/* i and j of 0..11 with i * j not a multiple of 5: 144 less 12 * 3 * 2 - 9 of i or j in {0, 5, 10}. */
static struct dt_space *make_space(void)
{
    static int64_t values[SIDE];
    struct dt_space *space = NULL;
    for (int i = 0; i < SIDE; i++)
        values[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    const struct dt_axis axes[] = {{.name = "i", .count = SIDE, .values = values},
                                   {.name = "j", .count = SIDE, .values = values}};
    assert_int_equal(dt_space_add_axis(space, &axes[0]), DT_OK);
    assert_int_equal(dt_space_add_axis(space, &axes[1]), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "i * j % 5 != 0", "i * j must not end in 0 or 5"),
                     DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_int_equal(dt_space_count(space), 144 - (12 * 3 * 2 - 9));
    return space;
}

/* Asks until done; the points as numbers of the space. */
static int visit(const char *name, const struct dt_space *space, uint64_t seed,
                 const struct dt_trial told[], int n, int64_t order[])
{
    struct dt_search *search = NULL;
    struct dt_search_opts opts = {.space = space, .seed = seed};
    struct dt_point point;
    int count = 0;
    assert_int_equal(dt_search_new(name, &opts, &search), DT_OK);
    for (int i = 0; i < n; i++)
        dt_search_tell(search, &told[i]);
    dt_status status;
    while ((status = dt_search_ask(search, &point)) == DT_OK) {
        struct dt_trial trial = {.point = point,
                                 .outcome = (enum dt_outcome)(count % DT_TRIAL_OUTCOMES)};
        assert_true(dt_space_feasible(space, &point));
        order[count++] = dt_space_index(space, &point);
        assert_true(count <= dt_space_count(space));
        dt_search_tell(search, &trial);
    }
    assert_int_equal(status, DT_DONE);
    assert_int_equal(dt_search_ask(search, &point), DT_DONE);
    dt_search_free(search);
    return count;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void test_every_point_once(void **state)
{
    (void)state;
    struct dt_space *space = make_space();
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        int64_t order[SIDE * SIDE];
        int n = visit(dt_strategies[s]->name, space, 3, NULL, 0, order);
        assert_int_equal(n, dt_space_count(space));
        qsort(order, (size_t)n, sizeof order[0], by_number);
        for (int k = 0; k < n; k++)
            assert_int_equal(order[k], k);
    }
    dt_space_free(space);
}

static void test_the_seed_is_the_order(void **state)
{
    (void)state;
    struct dt_space *space = make_space();
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        int64_t a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
        int n = visit(dt_strategies[s]->name, space, 3, NULL, 0, a);
        visit(dt_strategies[s]->name, space, 3, NULL, 0, b);
        visit(dt_strategies[s]->name, space, 4, NULL, 0, c);
        assert_memory_equal(a, b, (size_t)n * sizeof a[0]);
        assert_memory_not_equal(a, c, (size_t)n * sizeof a[0]);
    }
    dt_space_free(space);
}

/* Whatever became of a told plan, and also told twice: it is not asked for. */
static void test_told_points_are_not_asked(void **state)
{
    (void)state;
    struct dt_space *space = make_space();
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        int64_t order[SIDE * SIDE];
        struct dt_trial told[12] = {0};
        for (int i = 0; i < 12; i++) {
            dt_space_at(space, 7 * (i % 11), &told[i].point);
            told[i].outcome = (enum dt_outcome)(i % DT_TRIAL_OUTCOMES);
        }
        int n = visit(dt_strategies[s]->name, space, 3, told, 12, order);
        assert_int_equal(n, dt_space_count(space) - 11);
        for (int k = 0; k < n; k++)
            assert_false(order[k] % 7 == 0 && order[k] <= 70);
    }
    dt_space_free(space);
}

static void test_a_space_of_one(void **state)
{
    (void)state;
    const int64_t one = 1;
    struct dt_space *space = NULL;
    assert_int_equal(dt_space_new(&space), DT_OK);
    assert_int_equal(
        dt_space_add_axis(space, &(struct dt_axis){.name = "only", .count = 1, .values = &one}),
        DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        int64_t order[1];
        assert_int_equal(visit(dt_strategies[s]->name, space, 9, NULL, 0, order), 1);
    }
    dt_space_free(space);
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct dt_search *search = NULL;
    struct dt_search_opts opts = {.space = NULL};
    assert_int_equal(dt_search_new("oracle", &opts, &search), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "'oracle'"));
    for (int s = 0; dt_strategies[s] != NULL; s++)
        assert_non_null(strstr(dt_message(), dt_strategies[s]->name));
    assert_null(search);
}

/* Any first m points leave no gap in the list longer than three times the even one: the three-gap theorem (Sos 1958)
 * for a step near the golden section. */
static void test_exhaustive_is_spread(void **state)
{
    (void)state;
    struct dt_space *space = make_space();
    int64_t order[SIDE * SIDE], sorted[SIDE * SIDE + 1];
    int n = visit("exhaustive", space, 5, NULL, 0, order);
    for (int m = 4; m <= n; m++) {
        memcpy(sorted, order, (size_t)m * sizeof order[0]);
        qsort(sorted, (size_t)m, sizeof sorted[0], by_number);
        sorted[m] = sorted[0] + n;
        for (int k = 0; k < m; k++)
            assert_true((double)(sorted[k + 1] - sorted[k]) <= 3.0 * n / m + 1);
    }
    dt_space_free(space);
}

/* Over 8,100 seeds each of the 81 points comes first about 100 times; chi-square with 80 degrees of freedom is beyond
 * 133 once in 5,000. So for the second point. */
static void test_random_is_uniform(void **state)
{
    (void)state;
    struct dt_space *space = make_space();
    int n = (int)dt_space_count(space);
    int first[SIDE * SIDE] = {0}, second[SIDE * SIDE] = {0};
    for (int seed = 0; seed < 100 * n; seed++) {
        struct dt_search *search = NULL;
        struct dt_search_opts opts = {.space = space, .seed = (uint64_t)seed};
        struct dt_point point;
        assert_int_equal(dt_search_new("random", &opts, &search), DT_OK);
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        first[dt_space_index(space, &point)]++;
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        second[dt_space_index(space, &point)]++;
        dt_search_free(search);
    }
    double a = 0, b = 0;
    for (int k = 0; k < n; k++) {
        a += (first[k] - 100.0) * (first[k] - 100.0) / 100.0;
        b += (second[k] - 100.0) * (second[k] - 100.0) / 100.0;
    }
    assert_true(a < 133 && b < 133);
    dt_space_free(space);
}

static void test_outcomes(void **state)
{
    (void)state;
    for (int i = 0; i < DT_TRIAL_OUTCOMES; i++) {
        enum dt_outcome outcome = DT_TRIAL_OUTCOMES;
        assert_int_equal(dt_outcome_parse(dt_outcome_text((enum dt_outcome)i), &outcome), DT_OK);
        assert_int_equal(outcome, i);
    }
    enum dt_outcome kept = DT_TRIAL_OK;
    assert_int_equal(dt_outcome_parse("brilliant", &kept), DT_EUSAGE);
    assert_int_equal(kept, DT_TRIAL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_point_once),
        cmocka_unit_test(test_the_seed_is_the_order),
        cmocka_unit_test(test_told_points_are_not_asked),
        cmocka_unit_test(test_a_space_of_one),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_exhaustive_is_spread),
        cmocka_unit_test(test_random_is_uniform),
        cmocka_unit_test(test_outcomes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
