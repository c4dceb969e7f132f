/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Guarantees of every strategy in strategies.def. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/dose.h"
#include "tests/search/line.h"

#include <string.h>

enum {
    MOST = 300,
    SOME = 40,
    FEW = 15
}; /* SOME, FEW: asks where a search need not come to its end */

/* 4 x 5 x 6 values of which rules leave some, far from a full box. */
static struct dt_space *make_ruled(void)
{
    static const int64_t values[] = {1, 2, 3, 4, 6, 8};
    struct dt_space *space = NULL;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 3; i++) {
        const struct dt_axis axis = {
            .name = (const char *[]){"a", "b", "c"}[i], .count = 4 + i, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "a * b % c == 0", "c divides a x b"), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "a != b", "a is not b"), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    int count = 0;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 5; b++)
            for (int c = 0; c < 6; c++)
                count += values[a] * values[b] % values[c] == 0 && a != b;
    assert_int_equal(dt_space_count(space), count);
    assert_in_range(count, 20, 119);
    return space;
}

/* Until it ends: each point at most once, and every one unless it said why not. */
static void check_once(const char *name, const struct dt_space *space, uint64_t seed)
{
    int order[MOST + 1], visits[MOST] = {0}, count = (int)dt_space_count(space);
    struct dt_search *search = start(name, space, seed);
    int n = walk(search, space, order, MOST + 1);
    assert_in_range(n, 1, count);
    for (int i = 0; i < n; i++)
        assert_int_equal(visits[order[i]]++, 0);
    dt_search_free(search);
}

static void no_point_twice(void **state)
{
    static const int sizes[] = {1, 2, 3, 6, 7, 64, 150};
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_ruled();
        for (uint64_t seed = 0; seed < (dose_thin() ? 1 : 3); seed++)
            check_once(name, space, seed);
        dt_space_free(space);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] - (dose_thin() ? 3 : 0); i++) {
            space = make_line(sizes[i]);
            check_once(name, space, i);
            dt_space_free(space);
        }
    }
}

/* Without a single answer: ask is allowed to wait, but not to repeat or to make points up. */
static void asking_ahead_repeats_no_point(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_ruled();
        struct dt_search *search = start(name, space, 3);
        int visits[120] = {0}, n = 0;
        struct dt_point point;
        for (; n < SOME && dt_search_ask(search, &point) == DT_OK; n++) {
            assert_true(dt_space_feasible(space, &point));
            assert_int_equal(visits[dt_space_index(space, &point)]++, 0);
        }
        assert_true(n >= 1);
        dt_search_free(search);
        dt_space_free(space);
    }
}

/* Four workers: the answers come late, in another order, and one in seven only when the search
 * waits for nothing else. */
static void late_answers_are_accepted(void **state)
{
    enum { WORKERS = 4 };
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_line(200);
        struct dt_search *search = start(name, space, 4);
        struct dt_point pending[WORKERS], lost = {{0}};
        bool any_lost = false;
        int visits[200] = {0}, n = 0;
        for (int i = 0; i < SOME; i++) {
            struct dt_point point;
            dt_status status = n < WORKERS ? dt_search_ask(search, &point) : DT_WAIT;
            if (status == DT_OK) {
                assert_int_equal(visits[dt_space_index(space, &point)]++, 0);
                pending[n++] = point;
                continue;
            }
            assert_int_equal(status, DT_WAIT);
            assert_true(n > 0 || any_lost);
            if (n == 0) {
                answer(search, &lost, i);
                any_lost = false;
                continue;
            }
            int k = i % n;
            any_lost = any_lost || i % 7 == 0;
            if (i % 7 == 0)
                lost = pending[k];
            else
                answer(search, &pending[k], i);
            pending[k] = pending[--n];
        }
        dt_search_free(search);
        dt_space_free(space);
    }
}

static void the_seed_decides_the_order(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_line(MOST);
        int order[4][SOME];
        for (int i = 0; i < 4; i++) {
            struct dt_search *search = start(name, space, (uint64_t)(i / 2));
            assert_in_range(walk(search, space, order[i], SOME), 3, SOME);
            dt_search_free(search);
        }
        assert_memory_equal(order[0], order[1], 3 * sizeof(int));
        assert_memory_equal(order[2], order[3], 3 * sizeof(int));
        assert_memory_not_equal(order[0], order[2], 3 * sizeof(int));
        dt_space_free(space);
    }
}

/* Two at once do not disturb each other. */
static void two_searches_do_not_interact(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_line(100);
        struct dt_search *search = start(name, space, 5);
        int alone[SOME], n = walk(search, space, alone, SOME);
        dt_search_free(search);
        struct dt_search *a = start(name, space, 5);
        struct dt_search *b = start(name, space, 6);
        for (int i = 0; i < n; i++) {
            struct dt_point point, other;
            assert_int_equal(dt_search_ask(a, &point), DT_OK);
            assert_int_equal(dt_space_index(space, &point), alone[i]);
            if (dt_search_ask(b, &other) == DT_OK)
                answer(b, &other, i + 1);
            answer(a, &point, i);
        }
        dt_search_free(a);
        dt_search_free(b);
        dt_space_free(space);
    }
}

/* A warm start: every third point, with every outcome, some twice; and one that
 * is not of the space. */
static void told_points_are_not_asked(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_ruled();
        struct dt_search *search = start(name, space, 1);
        int count = (int)dt_space_count(space), told = 0, order[120];
        const struct dt_point infeasible = {{0}};
        struct dt_point point;
        assert_false(dt_space_feasible(space, &infeasible));
        answer(search, &infeasible, 0);
        for (int k = 0; k < count; k += 3, told++) {
            dt_space_at(space, k, &point);
            answer(search, &point, told);
            if (k % 2 == 0)
                answer(search, &point, told + 1);
        }
        assert_true(told >= DT_TRIAL_OUTCOMES);
        int n = walk(search, space, order, 120);
        assert_in_range(n, 0, count - told);
        for (int i = 0; i < n; i++)
            assert_int_not_equal(order[i] % 3, 0);
        dt_search_free(search);
        dt_space_free(space);
    }
}

/* Someone else's answers come in between the questions. */
static void answers_of_others_are_accepted(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_line(211);
        struct dt_search *search = start(name, space, 9);
        int visits[211] = {0}, asked = 0;
        struct dt_point point;
        while (asked < SOME && dt_search_ask(search, &point) == DT_OK) {
            int64_t k = dt_space_index(space, &point), other = (k * 7 + 13) % 211;
            assert_int_equal(visits[k]++, 0);
            answer(search, &point, asked++);
            dt_space_at(space, other, &point);
            visits[other]++;
            answer(search, &point, asked);
        }
        assert_true(asked >= 3);
        dt_search_free(search);
        dt_space_free(space);
    }
}

static void ends_when_all_points_are_told(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_line(17);
        struct dt_search *search = start(name, space, 2);
        int order[1];
        for (int k = 0; k < 17; k++) {
            struct dt_point point;
            dt_space_at(space, k, &point);
            answer(search, &point, k);
        }
        assert_int_equal(walk(search, space, order, 1), 0);
        dt_search_free(search);
        dt_space_free(space);
    }
}

/* The default, then the known plans, each once, without those already told or infeasible. */
static void asks_the_default_and_known_plans_first(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        struct dt_space *space = make_ruled();
        struct dt_search *search = NULL;
        struct dt_point first[5], point, told;
        for (int i = 0; i < 5; i++)
            dt_space_at(space, 3 * i + 2, &first[i]);
        told = first[3];
        first[1] = (struct dt_point){{0}}; /* breaks a rule */
        first[2] = first[4];
        const struct dt_search_opts opts = {
            .space = space, .start = &first[0], .known = first, .known_count = 5};
        assert_int_equal(dt_search_new(name, &opts, &search), DT_OK);
        answer(search, &told, 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(dt_search_ask(search, &point), DT_OK);
            assert_int_equal(dt_space_index(space, &point), i == 0 ? 2 : 14);
        }
        dt_search_free(search);
        dt_space_free(space);
    }
}

/* All of them, or three in ten: it goes on over the whole space, or says why not. */
static void continues_after_failures(void **state)
{
    const char *name;
    (void)state;
    EACH_STRATEGY(name)
    {
        for (int percent = 30; percent <= 100; percent += 70) {
            struct dt_space *space = make_ruled();
            struct dt_search *search = start(name, space, 8);
            struct dt_rng rng = dt_rng_at(8, "failures");
            struct dt_point point;
            int n = 0, count = (int)dt_space_count(space);
            while (dt_search_ask(search, &point) == DT_OK) {
                bool fails = dt_rng_below(&rng, 100) < (uint64_t)percent;
                assert_true(++n <= count);
                answer(search, &point, fails ? DT_TRIAL_MEMORY + n % 5 : DT_TRIAL_OK);
            }
            assert_true(n >= count / 4);
            assert_true(has_note(search));
            dt_search_free(search);
            dt_space_free(space);
        }
    }
}

/* 16 axes under one rule: far more points than can be listed. The first has 3 values, since a
 * search by stages looks at the space of each of them; the others 16. */
static struct dt_space *make_large(const char *rule)
{
    struct dt_space *space = NULL;
    int64_t values[16];
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 16; i++)
        values[i] = i + 1;
    for (int i = 0; i < 16; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct dt_axis axis = {.name = name, .count = i == 0 ? 3 : 16, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, rule, ""), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* Only exhaustive may refuse, and only what cannot be listed. */
static void check_large(const char *name, const struct dt_space *space)
{
    const struct dt_search_opts opts = {.space = space, .seed = 5, .evaluations = FEW};
    struct dt_search *search = NULL;
    struct dt_point asked[FEW];
    dt_status status = dt_search_new(name, &opts, &search);
    if (strcmp(name, "exhaustive") == 0 && !dt_space_listed(space)) {
        assert_int_equal(status, DT_EUNSUP);
        return;
    }
    assert_int_equal(status, DT_OK);
    for (int i = 0; i < FEW; i++) {
        assert_int_equal(dt_search_ask(search, &asked[i]), DT_OK);
        assert_true(dt_space_feasible(space, &asked[i]));
        for (int k = 0; k < i; k++)
            assert_false(dt_point_equal(space, &asked[i], &asked[k]));
        answer(search, &asked[i], i % 4);
    }
    dt_search_free(search);
}

static void searches_a_large_counted_space(void **state)
{
    const char *name;
    struct dt_space *space =
        make_large("(a + b + c + d + e + f + g + h + i + j + k + l + m + n + o) % p == 0");
    (void)state;
    assert_true(dt_space_listed(space) && dt_space_count(space) > INT64_C(1) << 50);
    EACH_STRATEGY(name)
    check_large(name, space);
    dt_space_free(space);
}

static void searches_a_space_too_large_to_count(void **state)
{
    const char *name;
    struct dt_space *space =
        make_large("(a * i + b * j + c * k + d * l + e * m + f * n + g * o + h * p) * (a + 3 * b) "
                   "% 11 < 3 + c * p % 5");
    (void)state;
    assert_false(dt_space_listed(space));
    EACH_STRATEGY(name)
    check_large(name, space);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_point_twice),
        cmocka_unit_test(asking_ahead_repeats_no_point),
        cmocka_unit_test(late_answers_are_accepted),
        cmocka_unit_test(the_seed_decides_the_order),
        cmocka_unit_test(two_searches_do_not_interact),
        cmocka_unit_test(told_points_are_not_asked),
        cmocka_unit_test(answers_of_others_are_accepted),
        cmocka_unit_test(ends_when_all_points_are_told),
        cmocka_unit_test(asks_the_default_and_known_plans_first),
        cmocka_unit_test(continues_after_failures),
        cmocka_unit_test(searches_a_large_counted_space),
        cmocka_unit_test(searches_a_space_too_large_to_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
