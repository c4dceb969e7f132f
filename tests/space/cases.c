/* SPDX-License-Identifier: MIT */
/* Lists of cases: as many plans as cases times the rest, in every order of the axes, of
 * lists that are long; draws, neighbours and keys. What is right is a formula, or a loop
 * over the whole product. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/diagram/diagram.h"
#include "space/json/json.h"
#include "tests/space/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 6, LONG = 10000 };

/* Column i of the case k: an affine map of Z/10007 for each, so that no two cases are one. */
static int value_of(int k, int column)
{
    static const int primes[COLUMNS] = {31, 4001, 61, 11, 89, 7};
    return (int)((int64_t)(k + 1) * (column + 3) * 977 % 10007 % primes[column]);
}

static json_t *long_list(void)
{
    json_t *cases = json_array();
    for (int k = 0; k < LONG; k++) {
        json_t *one = json_object();
        for (int i = 0; i < COLUMNS; i++)
            json_object_set_new(one, (const char[]){(char)('a' + i), 0},
                                json_integer(value_of(k, i)));
        json_array_append_new(cases, one);
    }
    return cases;
}

/* 10,000 cases over axes of 4001 and other values, times 30 plans, with a rule over both. */
static struct dt_space *long_space(void)
{
    static const int primes[COLUMNS] = {31, 4001, 61, 11, 89, 7};
    json_t *parameters = json_array();
    struct dt_space *space = NULL;
    for (int i = 0; i < COLUMNS; i++)
        json_array_append_new(parameters,
                              json_pack("{s:o, s:{s:i, s:i}}", "name", json_sprintf("%c", 'a' + i),
                                        "values", "from", 0, "to", primes[i] - 1));
    json_array_append_new(
        parameters, json_pack("{s:s, s:{s:i, s:i}}", "name", "x", "values", "from", 1, "to", 10));
    json_array_append_new(parameters,
                          json_pack("{s:s, s:[s, s, s]}", "name", "y", "values", "p", "q", "r"));
    json_t *root = json_pack("{s:o, s:[{s:o}, s]}", "parameters", parameters, "rules", "cases",
                             long_list(), "a + x != 20");
    if (dt_space_from_json(root, "the space", &space) != DT_OK)
        fail_msg("%s", dt_message());
    json_decref(root);
    return space;
}

static void a_long_list_is_counted(void **state)
{
    (void)state;
    struct dt_space *space = long_space();
    int64_t expected = 0;
    for (int k = 0; k < LONG; k++)
        for (int x = 1; x <= 10; x++)
            expected += value_of(k, 0) + x != 20 ? 3 : 0;
    assert_true(dt_space_listed(space));
    assert_int_equal(dt_space_count(space), expected);
    for (int64_t k = 0; k < expected; k += 97) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        assert_true(dt_space_feasible(space, &point));
        assert_int_equal(dt_space_index(space, &point), k);
        point.index[1] = (point.index[1] + 1) % 4001;
        assert_false(dt_space_feasible(space, &point));
    }
    /* any order of the axes, with little work: not the product of two axes */
    const int orders[][COLUMNS + 2] = {{7, 6, 5, 4, 3, 2, 1, 0}, {1, 6, 0, 7, 4, 2, 5, 3}};
    const struct dt_bound bound = {.work = 30000000, .edges = 1000000};
    for (int i = 0; i < 2; i++) {
        struct dt_diagram *diagram = NULL;
        assert_int_equal(dt_diagram_new(space, orders[i], NULL, &bound, &diagram), DT_OK);
        assert_int_equal(diagram->count, expected);
        dt_diagram_free(diagram);
    }
    dt_space_free(space);
}

static struct dt_space *space_of(const char *text)
{
    struct dt_space *space = NULL;
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    if (dt_space_from_json(root, "the space", &space) != DT_OK)
        fail_msg("%s", dt_message());
    json_decref(root);
    return space;
}

#define CASES                                                                                      \
    "{\"cases\":[{\"m\":\"f\",\"a\":1,\"b\":2},{\"m\":\"f\",\"a\":2,\"b\":4},"                     \
    "{\"m\":\"g\",\"a\":4,\"b\":1},{\"m\":\"g\",\"a\":1,\"b\":1},{\"m\":\"h\",\"a\":3,\"b\":3}]}"
#define TEXT(cases, rules)                                                                         \
    "{\"parameters\":{\"m\":[\"f\",\"g\",\"h\"],\"c\":[1,2,3],\"b\":[1,2,3,4],\"a\":[1,2,3,4]},"   \
    "\"rules\":[" cases rules "]}"

/* Every neighbour is a plan that differs first in the axis that was moved, none is there twice, and
 * moves lead from any plan to all others. */
static void walk_through(struct dt_space *space, int n)
{
    int at = 0, known = 1;
    bool *seen = calloc((size_t)n, sizeof *seen);
    struct dt_point *queue = calloc((size_t)n, sizeof *queue), near[64];
    assert_int_equal(dt_space_count(space), n);
    dt_space_at(space, 0, &queue[0]);
    seen[0] = true;
    while (at < known) {
        int found = dt_space_neighbours(space, &queue[at++], near, 64);
        assert_in_range(found, 1, n - 1);
        for (int i = 0; i < found; i++) {
            assert_true(dt_space_feasible(space, &near[i]));
            assert_false(dt_point_equal(space, &near[i], &queue[at - 1]));
            for (int k = 0; k < i; k++)
                assert_false(dt_point_equal(space, &near[i], &near[k]));
            int64_t k = dt_space_index(space, &near[i]);
            if (!seen[k])
                queue[known++] = near[i];
            seen[k] = true;
        }
    }
    assert_int_equal(known, n);
    free(seen);
    free(queue);
    dt_space_free(space);
}

static void neighbours_are_other_cases(void **state)
{
    (void)state;
    walk_through(space_of(TEXT(CASES, ",\"c <= a\"")), 1 + 2 + 3 + 1 + 3);
}

/* p exists with m = f, and q where p is 2: three plans of f and p = 2, one of p = 1,
 * one each of g and h. */
static void neighbours_lose_what_does_not_exist(void **state)
{
    (void)state;
    walk_through(space_of("{\"parameters\":[{\"name\":\"m\",\"values\":[\"f\",\"g\",\"h\"]},"
                          "{\"name\":\"p\",\"values\":[1,2],\"default\":2,\"when\":\"m == 'f'\"},"
                          "{\"name\":\"q\",\"values\":[1,2,3],\"when\":\"p == 2\"}],"
                          "\"rules\":[\"q < 4 && p != 1 || q == 1\"]}"),
                 6);
}

static void draws_are_uniform(void **state)
{
    (void)state;
    struct dt_space *space = space_of(TEXT(CASES, ",\"c <= a\""));
    struct dt_rng rng = dt_rng_at(5, "cases");
    int counts[10] = {0};
    for (int i = 0; i < 10000; i++) {
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        counts[dt_space_index(space, &point)]++;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], 850, 1150); /* five standard deviations of a thousand */
    dt_space_free(space);
}

static void same(const char *a, const char *b, bool yes)
{
    struct dt_text texts[2] = {{0}};
    const char *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct dt_space *space = space_of(both[i]);
        dt_space_identity(space, &texts[i]);
        dt_space_free(space);
    }
    if ((strcmp(dt_text_at(&texts[0]), dt_text_at(&texts[1])) == 0) != yes)
        fail_msg("%s and %s", a, b);
    dt_text_fini(&texts[0]);
    dt_text_fini(&texts[1]);
}

/* The set of cases is the key: neither their order, nor how the parameters of a case follow each
 * other, nor one that is there twice. All combinations are no rule. */
static void the_key_is_the_set_of_cases(void **state)
{
    (void)state;
#define AB(cases, more)                                                                            \
    "{\"parameters\":{\"a\":[1,2],\"b\":[0.5,1]},\"rules\":[{\"cases\":[" cases "]}" more "]}"
#define BA(cases) "{\"parameters\":{\"b\":[0.5,1],\"a\":[1,2]},\"rules\":[{\"cases\":[" cases "]}]}"
    static const char two[] = AB("{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":1}", "");
    same(two, AB("{\"a\":2,\"b\":1.0},{\"b\":0.5,\"a\":1},{\"a\":2,\"b\":1}", ""), true);
    same(two, BA("{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":1}"), true);
    same(two, AB("{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":0.5}", ""), false);
    same(two, AB("{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":1},{\"a\":1,\"b\":1}", ""), false);
    same(AB("{\"a\":1,\"b\":0.5},{\"a\":2,\"b\":1},{\"a\":1,\"b\":1},{\"a\":2,\"b\":0.5}", ""),
         "{\"parameters\":{\"a\":[1,2],\"b\":[0.5,1]}}", true);
#define WHEN(more, rules)                                                                          \
    "{\"parameters\":{\"a\":[1,2],\"b\":{\"values\":[1,2]" more "}},\"rules\":[" rules "]}"
    same(WHEN(",\"when\":\"a == 1\"", ""), WHEN(",\"when\":\"(a)==1\"", ""), true);
    same(WHEN(",\"when\":\"a == 1\"", ""), WHEN("", "\"a == 1 || b == 1\""), false);
    same(WHEN(",\"when\":\"a == 1\"", ""), WHEN("", ""), false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_list_is_counted), cmocka_unit_test(neighbours_are_other_cases),
        cmocka_unit_test(neighbours_lose_what_does_not_exist), cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(the_key_is_the_set_of_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
