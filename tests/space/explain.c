/* SPDX-License-Identifier: MIT */
/* Every combination of a small space, legal or not, and of values beside it: which rules
 * it breaks, which plans are nearest, and which single values would cure a rule, each
 * found by trying everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "tests/space/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 4, RULES = 5, NEAREST = 3, POINTS_MOST = 1024 };

static const int64_t values_a[] = {1, 2, 4, 8}, values_b[] = {1, 2, 3, 6}, values_c[] = {0, 1, 5};
static const char *const labels[] = {"slow", "fast", "odd"};
static const struct dt_axis axes[AXES] = {
    {.name = "a", .count = 4, .values = values_a},
    {.name = "b", .count = 4, .values = values_b},
    {.name = "c", .count = 3, .values = values_c},
    {.name = "mode", .count = 3, .labels = labels},
};
static const char *const rules[RULES][2] = {
    {"a * b <= 12", "a x b is at most 12"},
    {"b % a == 0 || c == 0", "a divides b, or c is 0"},
    {"mode == 'slow' || c > 0", "only slow goes without c"},
    {"c == 0 || 5 / c != 5 || b > 1", "c=1 needs b above 1"},
    {"mode != 'odd' || area >= 4", "odd needs room"},
};

static int64_t area(const void *context, const int64_t v[])
{
    (void)context;
    return v[0] * v[1];
}

static bool holds(int rule, const int64_t v[])
{
    switch (rule) {
    case 0:
        return v[0] * v[1] <= 12;
    case 1:
        return (v[0] != 0 && v[1] % v[0] == 0) || v[2] == 0;
    case 2:
        return v[3] == 0 || v[2] > 0;
    case 3:
        return !(v[2] == 1 && v[1] <= 1);
    default:
        return v[3] != 2 || v[0] * v[1] >= 4;
    }
}

static struct dt_space *make(void)
{
    static const char *const uses[] = {"a", "b", NULL};
    struct dt_space *space = NULL;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < AXES; i++)
        assert_int_equal(dt_space_add_axis(space, &axes[i]), DT_OK);
    assert_int_equal(dt_space_add_derived(space, "area", uses, area, NULL), DT_OK);
    for (int i = 0; i < RULES; i++)
        assert_int_equal(dt_space_add_rule(space, rules[i][0], rules[i][1]), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

static bool on_axis(int axis, int64_t value)
{
    for (int i = 0; i < axes[axis].count; i++)
        if (value == (axes[axis].labels != NULL ? i : axes[axis].values[i]))
            return true;
    return false;
}

static const json_t *row_of(const json_t *violations, const char *rule)
{
    for (size_t i = 0; i < json_array_size(violations); i++) {
        const json_t *row = json_array_get(violations, i);
        if (strcmp(json_string_value(json_object_get(row, "rule")), rule) == 0)
            return row;
    }
    return NULL;
}

static int64_t read_value(int axis, const json_t *value)
{
    if (axes[axis].labels == NULL)
        return json_integer_value(value);
    for (int i = 0; i < (int)(sizeof labels / sizeof labels[0]); i++)
        if (strcmp(labels[i], json_string_value(value)) == 0)
            return i;
    fail_msg("not a label");
    return -1;
}

/* The nearest value on one side of v[axis] that alone satisfies the rule and, strictly or for the
 * rule of a derived name, breaks no other. */
static bool cure(int rule, bool strict, const int64_t v[], int axis, int side, int64_t *found)
{
    bool any = false;
    for (int i = 0; i < axes[axis].count; i++) {
        int64_t w[AXES], to = axes[axis].labels != NULL ? i : axes[axis].values[i];
        memcpy(w, v, sizeof w);
        w[axis] = to;
        bool good = (to - v[axis]) * side > 0 && holds(rule, w);
        for (int other = 0; (strict || rule == 4) && other < RULES; other++)
            good = good && (holds(other, w) || !holds(other, v));
        if (good && (!any || llabs(to - v[axis]) < llabs(*found - v[axis]))) {
            *found = to;
            any = true;
        }
    }
    return any;
}

static bool any_cure(int rule, const int64_t v[], const char *used)
{
    int64_t found;
    bool any = false;
    for (int axis = 0; axis < AXES; axis++)
        for (int side = -1; side <= 1; side += 2)
            any = any || (strchr(used, axes[axis].name[0]) != NULL &&
                          cure(rule, true, v, axis, side, &found));
    return any;
}

/* Values that break another rule are named only where no other cures it. */
static void check_cures(int rule, const int64_t v[], const json_t *row)
{
    static const char *const used[RULES] = {"ab", "abc", "cm", "bc", "abm"};
    const json_t *near = json_object_get(row, "nearest");
    bool strict = any_cure(rule, v, used[rule]);
    for (int axis = 0; axis < AXES; axis++) {
        const json_t *list = json_object_get(near, axes[axis].name);
        size_t n = 0;
        for (int side = -1; side <= 1; side += 2) {
            int64_t expected = 0;
            if (strchr(used[rule], axes[axis].name[0]) == NULL ||
                !cure(rule, strict, v, axis, side, &expected))
                continue;
            assert_int_equal(read_value(axis, json_array_get(list, n++)), expected);
        }
        assert_int_equal(json_array_size(list), n);
    }
}

static void check_violations(const int64_t v[], const struct dt_explanation *explanation)
{
    const json_t *violations = json_object_get(explanation->json, "violations");
    size_t expected = 0;
    for (int i = 0; i < RULES; i++) {
        const json_t *row = row_of(violations, rules[i][0]);
        assert_int_equal(row != NULL, !holds(i, v));
        if (row == NULL)
            continue;
        expected++;
        assert_string_equal(json_string_value(json_object_get(row, "sentence")), rules[i][1]);
        assert_non_null(strstr(dt_text_at(&explanation->text), rules[i][1]));
        check_cures(i, v, row);
    }
    for (int axis = 0; axis < AXES; axis++) {
        char sentence[64];
        if (on_axis(axis, v[axis]))
            continue;
        expected++;
        snprintf(sentence, sizeof sentence, "%s=%lld is not one of the values of %s",
                 axes[axis].name, (long long)v[axis], axes[axis].name);
        assert_non_null(strstr(dt_text_at(&explanation->text), sentence));
    }
    assert_int_equal(json_array_size(violations), expected);
    assert_int_equal(json_is_true(json_object_get(explanation->json, "feasible")), expected == 0);
}

struct near {
    int changes;
    double distance;
};

/* Doublings between positive numbers, plain difference else, one for labels. */
static struct near measure(const int64_t from[], const int64_t to[])
{
    struct near near = {0, 0};
    for (int i = 0; i < AXES; i++) {
        if (from[i] == to[i])
            continue;
        near.changes++;
        if (axes[i].labels != NULL)
            near.distance += 1;
        else if (from[i] > 0 && to[i] > 0)
            near.distance += fabs(log2((double)to[i] / (double)from[i]));
        else
            near.distance += fabs((double)(to[i] - from[i]));
    }
    return near;
}

static int by_nearness(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    if (x->changes != y->changes)
        return x->changes - y->changes;
    return (x->distance > y->distance) - (x->distance < y->distance);
}

static int legal_points(const struct dt_space *space, int64_t legal[][AXES])
{
    struct dt_point point = {{0}};
    int n = 0;
    do {
        bool all = true;
        walk_values(space, &point, legal[n]);
        for (int i = 0; i < RULES; i++)
            all = all && holds(i, legal[n]);
        n += all;
    } while (walk_on(space, &point));
    return n;
}

static void check_nearest(const int64_t v[], int64_t legal[][AXES], int n, const json_t *list)
{
    struct near near[POINTS_MOST];
    int64_t seen[NEAREST][AXES];
    for (int i = 0; i < n; i++)
        near[i] = measure(v, legal[i]);
    qsort(near, (size_t)n, sizeof near[0], by_nearness);
    assert_int_equal(json_array_size(list), NEAREST);
    for (int i = 0; i < NEAREST; i++) {
        const json_t *plan = json_array_get(list, (size_t)i);
        for (int axis = 0; axis < AXES; axis++)
            seen[i][axis] = read_value(axis, json_object_get(plan, axes[axis].name));
        for (int rule = 0; rule < RULES; rule++)
            assert_true(holds(rule, seen[i]));
        for (int axis = 0; axis < AXES; axis++)
            assert_true(on_axis(axis, seen[i][axis]));
        for (int other = 0; other < i; other++)
            assert_memory_not_equal(seen[i], seen[other], sizeof seen[i]);
        struct near found = measure(v, seen[i]);
        assert_int_equal(found.changes, near[i].changes);
        assert_true(fabs(found.distance - near[i].distance) < 1e-6);
    }
}

/* The first violation, as one sentence. */
static void check_locate(const struct dt_space *space, const int64_t v[],
                         const struct dt_explanation *explanation)
{
    struct dt_point point;
    const json_t *first = json_array_get(json_object_get(explanation->json, "violations"), 0);
    dt_status status = dt_space_locate(space, v, &point);
    assert_int_equal(status, first == NULL ? DT_OK : DT_EINFEASIBLE);
    if (first == NULL)
        return;
    const char *sentence = json_string_value(json_object_get(first, "sentence"));
    assert_memory_equal(dt_message(), sentence, strlen(sentence));
}

static void explanations_match_enumeration(void **state)
{
    static const int64_t a[] = {1, 2, 3, 4, 8, 16}, b[] = {-1, 1, 2, 3, 5, 6}, c[] = {0, 1, 2, 5};
    static int64_t legal[POINTS_MOST][AXES];
    struct dt_space *space = make();
    int n = legal_points(space, legal), illegal = 0;
    (void)state;
    assert_int_equal(n, dt_space_count(space));
    for (int i = 0; i < 6 * 6 * 4 * 3; i++) {
        const int64_t v[AXES] = {a[i % 6], b[i / 6 % 6], c[i / 36 % 4], i / 144};
        struct dt_explanation explanation;
        assert_int_equal(dt_space_explain(space, v, &explanation), DT_OK);
        check_violations(v, &explanation);
        check_locate(space, v, &explanation);
        const json_t *nearest = json_object_get(explanation.json, "nearest");
        if (json_is_true(json_object_get(explanation.json, "feasible"))) {
            assert_int_equal(json_array_size(nearest), 0);
        } else {
            check_nearest(v, legal, n, nearest);
            illegal++;
        }
        dt_explanation_fini(&explanation);
    }
    assert_in_range(illegal, 300, 6 * 6 * 4 * 3 - 20);
    dt_space_free(space);
}

/* "numbers" is the rule with this plan's numbers in it. */
static void numbers_are_the_rule_with_values(void **state)
{
    struct dt_space *space = make();
    struct dt_explanation explanation;
    const int64_t v[AXES] = {8, 3, 0, 0};
    (void)state;
    assert_int_equal(dt_space_explain(space, v, &explanation), DT_OK);
    const json_t *row = row_of(json_object_get(explanation.json, "violations"), rules[0][0]);
    const char *text = json_string_value(json_object_get(row, "numbers"));
    assert_non_null(strstr(text, "8"));
    assert_non_null(strstr(text, "3"));
    assert_non_null(strstr(dt_text_at(&explanation.text), text));
    assert_non_null(strstr(dt_text_at(&explanation.text), "a=8 b=3 c=0 mode=slow"));
    dt_explanation_fini(&explanation);
    dt_space_free(space);
}

/* A space that a contradiction empties, and one of fewer plans than are shown. */
static void explains_spaces_with_few_or_no_plans(void **state)
{
    static const char *const sums[] = {"x > 9", "x == 2"};
    (void)state;
    for (int left = 0; left < 2; left++) {
        struct dt_space *space = NULL;
        struct dt_explanation explanation;
        const int64_t one = 1;
        const struct dt_axis axis = {.name = "x", .count = 4, .values = values_a};
        assert_int_equal(dt_space_new(&space), DT_OK);
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
        assert_int_equal(dt_space_add_rule(space, sums[left], NULL), DT_OK);
        assert_int_equal(dt_space_seal(space), DT_OK);
        assert_int_equal(dt_space_count(space), left);
        assert_int_equal(dt_space_explain(space, &one, &explanation), DT_OK);
        const json_t *nearest = json_object_get(explanation.json, "nearest");
        assert_int_equal(json_array_size(nearest), left);
        assert_int_equal(strstr(dt_text_at(&explanation.text), "no plan at all") != NULL,
                         left == 0);
        dt_explanation_fini(&explanation);
        dt_space_free(space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explanations_match_enumeration),
        cmocka_unit_test(numbers_are_the_rule_with_values),
        cmocka_unit_test(explains_spaces_with_few_or_no_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
