/* SPDX-License-Identifier: MIT */
/* What every strategy owes, whichever rows strategies.def has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"

#include <string.h>

enum { MOST = 2000 };

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

static void check_once(const char *name, const struct dt_space *space)
{
    static int order[MOST], visits[MOST];
    int count = (int)dt_space_count(space);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct dt_search *search = start(name, space, seed);
        memset(visits, 0, sizeof visits);
        assert_int_equal(walk(search, space, order, MOST), count);
        for (int i = 0; i < count; i++)
            visits[order[i]]++;
        for (int k = 0; k < count; k++)
            assert_int_equal(visits[k], 1);
        dt_search_free(search);
    }
}

static void every_point_once(void **state)
{
    static const int sizes[] = {1, 2, 3, 6, 7, 64, 210, 997};
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_ruled();
        check_once(dt_strategies[s]->name, space);
        dt_space_free(space);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            space = make_line(sizes[i]);
            check_once(dt_strategies[s]->name, space);
            dt_space_free(space);
        }
    }
}

/* Without a single answer: ask is allowed to wait, but not to repeat or to make points up. */
static void asked_ahead(void **state)
{
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_ruled();
        struct dt_search *search = start(dt_strategies[s]->name, space, 3);
        int visits[120] = {0};
        struct dt_point point;
        while (dt_search_ask(search, &point) == DT_OK) {
            assert_true(dt_space_feasible(space, &point));
            assert_int_equal(visits[dt_space_index(space, &point)]++, 0);
        }
        dt_search_free(search);
        dt_space_free(space);
    }
}

static void seed_decides(void **state)
{
    static int first[MOST], second[MOST];
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_line(MOST);
        for (uint64_t seed = 0; seed < 10; seed++) {
            for (uint64_t other = seed; other < 10; other++) {
                struct dt_search *a = start(dt_strategies[s]->name, space, seed);
                struct dt_search *b = start(dt_strategies[s]->name, space, other);
                walk(a, space, first, MOST);
                walk(b, space, second, MOST);
                assert_int_equal(memcmp(first, second, sizeof first) == 0, seed == other);
                dt_search_free(a);
                dt_search_free(b);
            }
        }
        dt_space_free(space);
    }
}

/* Two at once do not disturb each other. */
static void searches_are_apart(void **state)
{
    static int alone[MOST];
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_line(100);
        struct dt_search *search = start(dt_strategies[s]->name, space, 5);
        walk(search, space, alone, MOST);
        dt_search_free(search);
        struct dt_search *a = start(dt_strategies[s]->name, space, 5);
        struct dt_search *b = start(dt_strategies[s]->name, space, 6);
        for (int i = 0; i < 100; i++) {
            struct dt_point point, other;
            assert_int_equal(dt_search_ask(a, &point), DT_OK);
            assert_int_equal(dt_search_ask(b, &other), DT_OK);
            assert_int_equal(dt_space_index(space, &point), alone[i]);
            answer(b, &other, i);
            answer(a, &point, i);
        }
        dt_search_free(a);
        dt_search_free(b);
        dt_space_free(space);
    }
}

/* A warm start: every third point, with every outcome, some twice; and one that is not of the space. */
static void told_is_not_asked(void **state)
{
    static int order[MOST];
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_ruled();
        struct dt_search *search = start(dt_strategies[s]->name, space, 1);
        int count = (int)dt_space_count(space), told = 0;
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
        assert_int_equal(walk(search, space, order, MOST), count - told);
        for (int i = 0; i < count - told; i++)
            assert_int_not_equal(order[i] % 3, 0);
        dt_search_free(search);
        dt_space_free(space);
    }
}

/* Someone else's answers come in between the questions. */
static void told_on_the_way(void **state)
{
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_line(500);
        struct dt_search *search = start(dt_strategies[s]->name, space, 9);
        int visits[500] = {0}, asked = 0, told = 0;
        struct dt_point point;
        while (dt_search_ask(search, &point) == DT_OK) {
            int64_t k = dt_space_index(space, &point);
            assert_int_equal(visits[k]++, 0);
            answer(search, &point, asked++);
            int64_t other = (k * 7 + 13) % 500;
            dt_space_at(space, other, &point);
            told += visits[other] == 0;
            visits[other]++;
            answer(search, &point, asked);
        }
        assert_int_equal(asked + told, 500);
        dt_search_free(search);
        dt_space_free(space);
    }
}

static void all_told(void **state)
{
    (void)state;
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        struct dt_space *space = make_line(17);
        struct dt_search *search = start(dt_strategies[s]->name, space, 2);
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

static void unknown_name(void **state)
{
    struct dt_space *space = make_line(3);
    const struct dt_search_opts opts = {.space = space};
    struct dt_search *search = NULL;
    (void)state;
    assert_int_equal(dt_search_new("exhaustiv", &opts, &search), DT_EUSAGE);
    assert_null(search);
    assert_non_null(strstr(dt_message(), "'exhaustiv'"));
    for (int s = 0; dt_strategies[s] != NULL; s++) {
        assert_non_null(strstr(dt_message(), dt_strategies[s]->name));
        assert_true(dt_strategies[s]->doc[0] != '\0');
    }
    assert_int_equal(dt_search_new("", &opts, &search), DT_EUSAGE);
    dt_search_free(NULL);
    dt_space_free(space);
}

static void outcomes(void **state)
{
    (void)state;
    for (int i = 0; i < DT_TRIAL_OUTCOMES; i++) {
        enum dt_outcome outcome = DT_TRIAL_OUTCOMES;
        assert_int_equal(dt_outcome_parse(dt_outcome_text((enum dt_outcome)i), &outcome), DT_OK);
        assert_int_equal(outcome, i);
    }
    enum dt_outcome outcome = DT_TRIAL_HUNG;
    assert_string_equal(dt_outcome_text(DT_TRIAL_OK), "ok");
    assert_string_equal(dt_outcome_text(DT_TRIAL_OUTCOMES), "unknown outcome");
    assert_int_equal(dt_outcome_parse("OK", &outcome), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "'OK'"));
    assert_int_equal(dt_outcome_parse("", &outcome), DT_EUSAGE);
    assert_int_equal(outcome, DT_TRIAL_HUNG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_once),  cmocka_unit_test(asked_ahead),
        cmocka_unit_test(seed_decides),      cmocka_unit_test(searches_are_apart),
        cmocka_unit_test(told_is_not_asked), cmocka_unit_test(told_on_the_way),
        cmocka_unit_test(all_told),          cmocka_unit_test(unknown_name),
        cmocka_unit_test(outcomes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
