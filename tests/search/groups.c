/* SPDX-License-Identifier: MIT */
/* Plans that share what is loaded follow each other: in rounds, each of which is a permutation of
 * what the search would have asked for anyway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

enum { GROUPS = 4, EACH = 12, PLANS = GROUPS * EACH, SEEDS = 20 };

static struct dt_space *make_box(void)
{
    struct dt_space *space = NULL;
    int64_t values[EACH];
    for (int i = 0; i < EACH; i++)
        values[i] = i;
    const struct dt_axis axes[] = {{.name = "group", .count = GROUPS, .values = values},
                                   {.name = "tile", .count = EACH, .values = values}};
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(dt_space_add_axis(space, &axes[i]), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

static uint64_t group_of(const void *context, const struct dt_point *point)
{
    (void)context;
    return (uint64_t)point->index[0] + 1;
}

/* in_a_row 0: without groups */
struct how {
    const char *name;
    uint64_t seed;
    int in_a_row, evaluations;
};

static struct dt_search *begin(const struct dt_space *space, struct how how)
{
    static struct dt_groups groups[EACH + 1];
    struct dt_search *search = NULL;
    groups[how.in_a_row] = (struct dt_groups){.of = group_of, .in_a_row = how.in_a_row};
    const struct dt_search_opts opts = {.space = space,
                                        .seed = how.seed,
                                        .evaluations = how.evaluations,
                                        .groups = how.in_a_row > 0 ? &groups[how.in_a_row] : NULL};
    assert_int_equal(dt_search_new(how.name, &opts, &search), DT_OK);
    return search;
}

/* Asks for at most `room` points, answered at once by values that follow from the point; returns
 * how many there were. */
static int sequence(const struct dt_space *space, struct how how, int room, int order[])
{
    struct dt_search *search = begin(space, how);
    struct dt_point point;
    int n = 0;
    while (n < room && dt_search_ask(search, &point) == DT_OK) {
        double value = 1 + 0.1 * point.index[0] + 0.03 * abs(point.index[1] - 5);
        const struct dt_trial trial = {
            .point = point, .value = value, .low = value, .high = value, .cost = 1};
        order[n++] = (int)dt_space_index(space, &point);
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    return n;
}

static int group(const struct dt_space *space, int k)
{
    struct dt_point point;
    dt_space_at(space, k, &point);
    return point.index[0];
}

static int changes(const struct dt_space *space, const int order[], int n)
{
    int count = 0;
    for (int i = 1; i < n; i++)
        count += group(space, order[i]) != group(space, order[i - 1]);
    return count;
}

static void a_round_loads_each_group_once(void **state)
{
    struct dt_space *space = make_box();
    int order[PLANS];
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_int_equal(sequence(space, (struct how){"exhaustive", seed, 0, 0}, PLANS, order),
                         PLANS);
        assert_in_range(changes(space, order, PLANS), 30, PLANS);
        assert_int_equal(sequence(space, (struct how){"exhaustive", seed, EACH, 0}, PLANS, order),
                         PLANS);
        assert_int_equal(changes(space, order, PLANS), GROUPS - 1);
        /* two rounds, the second of which begins with the group that is loaded */
        assert_int_equal(
            sequence(space, (struct how){"exhaustive", seed, EACH, PLANS}, PLANS, order), PLANS);
        assert_int_equal(changes(space, order, PLANS), 2 * (GROUPS - 1));
    }
    dt_space_free(space);
}

/* Where the round that begins at `from` ends, by the sequence without groups. */
static int end_of_round(const struct dt_space *space, const int plain[], int n, int from,
                        int in_a_row, int most)
{
    bool met[GROUPS] = {false};
    int groups = 0, to = from;
    while (to < n && to - from < most && (to == from || to - from < in_a_row * groups)) {
        int g = group(space, plain[to++]);
        groups += !met[g];
        met[g] = true;
    }
    return to;
}

static void check_rounds(const struct dt_space *space, const int plain[], const int order[], int n,
                         int in_a_row, int most)
{
    for (int from = 0, to; from < n; from = to) {
        bool proposed[PLANS] = {false}, met[GROUPS] = {false};
        to = end_of_round(space, plain, n, from, in_a_row, most);
        for (int i = from; i < to; i++)
            proposed[plain[i]] = true;
        for (int i = from; i < to; i++) {
            assert_true(proposed[order[i]]);
            proposed[order[i]] = false;
            int g = group(space, order[i]);
            assert_true(!met[g] || group(space, order[i - 1]) == g);
            met[g] = true;
        }
    }
}

static void a_round_is_a_permutation(void **state)
{
    static const char *const names[] = {"exhaustive", "random", "sobol"};
    struct dt_space *space = make_box();
    int plain[PLANS], order[PLANS];
    (void)state;
    for (int k = 0; k < 3; k++)
        for (uint64_t seed = 0; seed < SEEDS; seed++)
            for (int in_a_row = 1; in_a_row <= EACH; in_a_row += 2) {
                int evaluations = seed % 2 == 0 ? 0 : 30;
                int n = sequence(space, (struct how){names[k], seed, 0, evaluations}, PLANS, plain);
                assert_int_equal(n, PLANS);
                assert_int_equal(sequence(space,
                                          (struct how){names[k], seed, in_a_row, evaluations},
                                          PLANS, order),
                                 n);
                check_rounds(space, plain, order, n, in_a_row, evaluations > 0 ? 15 : PLANS);
            }
    dt_space_free(space);
}

/* The first points of searches that learn: drawn before any answer counts. */
static void the_same_first_points(void **state)
{
    static const struct {
        const char *name;
        int first;
    } rows[] = {{"bayes", 5}, {"bayes:design=9", 9}, {"tpe:starts=12", 12}, {"tpe:starts=8", 8}};
    struct dt_space *space = make_box();
    int plain[PLANS], order[PLANS], moved = 0;
    (void)state;
    for (int k = 0; k < 4; k++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            bool met[PLANS] = {false};
            int n = rows[k].first;
            assert_int_equal(sequence(space, (struct how){rows[k].name, seed, 0, 0}, n, plain), n);
            assert_int_equal(sequence(space, (struct how){rows[k].name, seed, EACH, 0}, n, order),
                             n);
            for (int i = 0; i < n; i++)
                met[plain[i]] = true;
            for (int i = 0; i < n; i++)
                assert_true(met[order[i]]);
            assert_in_range(changes(space, order, n), 0, GROUPS - 1);
            moved += changes(space, plain, n) > changes(space, order, n);
        }
    assert_true(moved > 2 * SEEDS);
    dt_space_free(space);
}

static void no_strategy_asks_twice(void **state)
{
    const char *name;
    struct dt_space *space = make_box();
    (void)state;
    EACH_STRATEGY(name)
    {
        bool met[PLANS] = {false};
        int order[PLANS];
        struct dt_search *search = begin(space, (struct how){name, 7, 5, 60});
        int n = walk(search, space, order, PLANS);
        for (int i = 0; i < n; i++) {
            assert_false(met[order[i]]);
            met[order[i]] = true;
        }
        dt_search_free(search);
    }
    dt_space_free(space);
}

/* Half of the trials visit every group, however dear a load is. */
static void no_group_takes_the_budget(void **state)
{
    struct dt_space *space = make_box();
    int order[PLANS];
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int count[GROUPS] = {0};
        assert_int_equal(
            sequence(space, (struct how){"exhaustive", seed, EACH, PLANS}, PLANS / 2, order),
            PLANS / 2);
        for (int i = 0; i < PLANS / 2; i++)
            count[group(space, order[i])]++;
        for (int g = 0; g < GROUPS; g++)
            assert_in_range(count[g], EACH / 2 - 1, EACH / 2 + 1);
    }
    dt_space_free(space);
}

/* The first group of a round: chi-square, 3 degrees of freedom, P(> 21.1) is 1e-4. */
static void the_order_of_groups_is_random(void **state)
{
    enum { DRAWS = 2000 };
    struct dt_space *space = make_box();
    int order[PLANS], again[PLANS], count[GROUPS] = {0}, ascending = 0;
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        sequence(space, (struct how){"exhaustive", seed, EACH, 0}, PLANS, order);
        count[group(space, order[0])]++;
        ascending += group(space, order[0]) < group(space, order[PLANS - 1]);
    }
    double chi2 = 0, even = (double)DRAWS / GROUPS;
    for (int g = 0; g < GROUPS; g++)
        chi2 += pow(count[g] - even, 2) / even;
    assert_true(chi2 < 21.1);
    assert_in_range(ascending, DRAWS / 2 - 90, DRAWS / 2 + 90); /* 4 standard deviations */
    sequence(space, (struct how){"exhaustive", DRAWS - 1, EACH, 0}, PLANS, again);
    assert_memory_equal(order, again, sizeof order);
    dt_space_free(space);
}

/* What is loaded comes first: here the group of the last answer told before. */
static void the_loaded_group_comes_first(void **state)
{
    struct dt_space *space = make_box();
    (void)state;
    for (int k = 0; k < PLANS; k++) {
        struct dt_search *search = begin(space, (struct how){"exhaustive", 1, EACH, 0});
        struct dt_point point;
        dt_space_at(space, k, &point);
        answer(search, &point, 0);
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        assert_int_equal(point.index[0], group(space, k));
        dt_search_free(search);
    }
    dt_space_free(space);
}

/* A point told before its turn is not asked for any more. */
static void told_points_leave_the_round(void **state)
{
    struct dt_space *space = make_box();
    int order[PLANS] = {0};
    (void)state;
    sequence(space, (struct how){"exhaustive", 3, EACH, 0}, PLANS, order);
    struct dt_search *search = begin(space, (struct how){"exhaustive", 3, EACH, 0});
    struct dt_point point;
    assert_int_equal(dt_search_ask(search, &point), DT_OK);
    assert_false(has_note(search));
    for (int i = PLANS / 2; i < PLANS; i++) {
        struct dt_point told;
        dt_space_at(space, order[i], &told);
        answer(search, &told, 0);
    }
    answer(search, &point, 0);
    for (int i = 1; i < PLANS / 2; i++) {
        assert_false(has_note(search));
        assert_int_equal(dt_search_ask(search, &point), DT_OK);
        assert_int_equal(dt_space_index(space, &point), order[i]);
        answer(search, &point, 0);
    }
    assert_int_equal(dt_search_ask(search, &point), DT_DONE);
    assert_true(has_note(search));
    dt_search_free(search);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_loads_each_group_once),
        cmocka_unit_test(a_round_is_a_permutation),
        cmocka_unit_test(the_same_first_points),
        cmocka_unit_test(no_strategy_asks_twice),
        cmocka_unit_test(no_group_takes_the_budget),
        cmocka_unit_test(the_order_of_groups_is_random),
        cmocka_unit_test(the_loaded_group_comes_first),
        cmocka_unit_test(told_points_leave_the_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
