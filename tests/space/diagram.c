/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Random rules of the whole language on small spaces, counted by the diagram and by going over the
 * whole product with the rules' own evaluator, which others have checked; in any order of the axes,
 * with any of the rules left to rejection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/diagram/diagram.h"
#include "tests/lib/dose.h"
#include "tests/space/walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 5, RULES = 4 };

static const char *const names[AXES] = {"a", "b", "c", "d", "e"};
static const struct dt_bound plenty = {.work = 100000000, .edges = 1000000};

/* This number of spaces, a sixth of it in the thin dose. */
static int doses(int spaces)
{
    return dose_thin() ? spaces / 6 : spaces;
}

static int below(struct dt_rng *rng, int n)
{
    return (int)dt_rng_below(rng, (uint64_t)n);
}

static void grow(struct dt_rng *rng, int axes, int depth, struct dt_text *out)
{
    static const char *const infix[] = {"+",  "-", "*",  "/", "%",  "+",  "*",  "%",
                                        "==", "<", "<=", ">", ">=", "!=", "&&", "||"};
    int kind = depth == 0 ? below(rng, 3) : below(rng, 14);
    if (kind < 2)
        dt_text_add(out, "%s", names[below(rng, axes)]);
    else if (kind == 2)
        dt_text_add(out, "%d", below(rng, 12));
    else if (kind == 3) {
        dt_text_add(out, below(rng, 2) == 0 ? "-(" : "!(");
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, ")");
    } else if (kind == 4) {
        dt_text_add(out, below(rng, 2) == 0 ? "min(" : "max(");
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, ", ");
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, ")");
    } else if (kind == 5) {
        dt_text_add(out, "(");
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, " in (%d, ", below(rng, 8));
        grow(rng, axes, 1, out);
        dt_text_add(out, ", %d))", below(rng, 20));
    } else {
        dt_text_add(out, "(");
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, " %s ", infix[below(rng, 16)]);
        grow(rng, axes, depth - 1, out);
        dt_text_add(out, ")");
    }
}

/* Most values are positive, as in life; a third of the spaces have others, and rules that fail. */
static struct dt_space *draw(struct dt_rng *rng)
{
    struct dt_space *space = NULL;
    int axes = 1 + below(rng, AXES), rules = 1 + below(rng, RULES);
    int64_t least = below(rng, 3) == 0 ? -3 : 1;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < axes; i++) {
        int64_t values[6], value = least + below(rng, 3);
        int n = 1 + below(rng, 6);
        for (int k = 0; k < n; k++, value += 1 + below(rng, 4))
            values[k] = value;
        if (below(rng, 40) == 0)
            values[n - 1] = INT64_MAX - below(rng, 3);
        const struct dt_axis axis = {.name = names[i], .count = n, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    for (int i = 0; i < rules; i++) {
        struct dt_text text = {0};
        grow(rng, axes, 3, &text);
        assert_int_equal(dt_space_add_rule(space, dt_text_at(&text), NULL), DT_OK);
        dt_text_fini(&text);
    }
    return space;
}

static bool holds(const struct dt_space *space, const struct dt_point *point, const bool rules[])
{
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    walk_values(space, point, values);
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if ((rules == NULL || rules[i]) && !dt_rule_holds(space, &space->rules[i], scope))
            return false;
    return true;
}

static void shuffle(struct dt_rng *rng, int n, int order[])
{
    for (int i = 0; i < n; i++) {
        int k = below(rng, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* Each point of the product is in the diagram or not as the rules have it, and each number is the
 * number of one point. */
static int64_t check(const struct dt_space *space, const struct dt_diagram *diagram,
                     const bool rules[])
{
    struct dt_point point = {{0}}, found;
    int64_t count = 0;
    bool met[6 * 6 * 6 * 6 * 6] = {false};
    do {
        bool legal = holds(space, &point, rules);
        int64_t k = dt_diagram_index(diagram, &point);
        if (dt_diagram_has(diagram, &point) != legal || (k >= 0) != legal)
            fail_msg("%s", space->rules[0].text);
        if (!legal)
            continue;
        assert_in_range(k, 0, diagram->count - 1);
        assert_false(met[k]);
        met[k] = true;
        dt_diagram_at(diagram, (uint64_t)k, &found);
        assert_memory_equal(&found, &point, sizeof point);
        count++;
    } while (walk_on(space, &point));
    assert_int_equal(diagram->count, count);
    return count;
}

static void random_rules_match_enumeration(void **state)
{
    struct dt_rng rng = dt_rng_at(dose_seed("diagrams", 17), "diagrams");
    const int spaces = doses(1500);
    int empty = 0, whole = 0;
    (void)state;
    for (int i = 0; i < spaces; i++) {
        struct dt_space *space = draw(&rng);
        struct dt_diagram *diagram = NULL;
        bool rules[RULES];
        int order[DT_AXES_MAX];
        assert_int_equal(dt_space_seal(space), DT_OK);
        int64_t count = check(space, space->diagram, NULL);
        assert_int_equal(dt_space_count(space), count);
        empty += count == 0;
        whole += (double)count == dt_space_cartesian(space);
        for (int k = 0; k < RULES; k++)
            rules[k] = below(&rng, 2) == 0;
        shuffle(&rng, dt_space_axes(space), order);
        assert_int_equal(dt_diagram_new(space, order, rules, &plenty, &diagram), DT_OK);
        check(space, diagram, rules);
        dt_diagram_free(diagram);
        for (int k = 0; k < space->rule_count; k++) {
            bool only[RULES] = {false};
            struct dt_point point = {{0}};
            int64_t removes = 0;
            only[k] = true;
            do
                removes += !holds(space, &point, only);
            while (walk_on(space, &point));
            assert_int_equal(dt_space_rule(space, k).removes, removes);
        }
        dt_space_free(space);
    }
    assert_in_range(empty, spaces / 20, spaces * 3 / 4);
    assert_in_range(whole, spaces / 100, spaces / 2);
}

/* Comparisons of sums and products with each other and with numbers, whose parts are bounded
 * before they are known. */
static void bounded_parts_match_enumeration(void **state)
{
    static const char *const compare[] = {"<", "<=", ">", ">=", "=="};
    struct dt_rng rng = dt_rng_at(dose_seed("parts", 19), "parts");
    const int spaces = doses(1500);
    int empty = 0;
    (void)state;
    for (int i = 0; i < spaces; i++) {
        struct dt_space *space = NULL;
        struct dt_text text = {0};
        assert_int_equal(dt_space_new(&space), DT_OK);
        for (int axis = 0; axis < 4; axis++) {
            int64_t values[5], value = below(&rng, 3);
            for (int k = 0; k < 5; k++, value += 1 + below(&rng, 3))
                values[k] = value;
            const struct dt_axis row = {.name = names[axis], .count = 5, .values = values};
            assert_int_equal(dt_space_add_axis(space, &row), DT_OK);
        }
        const char *one = below(&rng, 2) == 0 ? "*" : "+", *two = below(&rng, 2) == 0 ? "*" : "+";
        dt_text_add(&text, "a %s b %s c %s ", one, two, compare[below(&rng, 5)]);
        if (below(&rng, 2) == 0)
            dt_text_add(&text, "%d", 1 + below(&rng, 200));
        else
            dt_text_add(&text, "d %s %d", below(&rng, 2) == 0 ? "*" : "+", 1 + below(&rng, 9));
        assert_int_equal(dt_space_add_rule(space, dt_text_at(&text), NULL), DT_OK);
        assert_int_equal(dt_space_seal(space), DT_OK);
        empty += check(space, space->diagram, NULL) == 0;
        dt_text_fini(&text);
        dt_space_free(space);
    }
    assert_in_range(empty, spaces / 150, spaces / 2);
}

struct set {
    const struct dt_space *space;
    const struct dt_point *from;
    int changes, n;
};

static void count_near(void *context, const struct dt_point *point)
{
    struct set *set = context;
    int changes = 0;
    for (int i = 0; i < dt_space_axes(set->space); i++)
        changes += point->index[i] != set->from->index[i];
    assert_int_equal(changes, set->changes);
    assert_true(dt_space_feasible(set->space, point));
    set->n++;
}

static void nearest_points_match_enumeration(void **state)
{
    struct dt_rng rng = dt_rng_at(3, "near");
    (void)state;
    for (int i = 0; i < doses(200); i++) {
        struct dt_space *space = draw(&rng);
        struct dt_point from = {{0}}, point = {{0}};
        struct set set = {.space = space, .from = &from};
        int64_t expected[AXES + 1] = {0};
        assert_int_equal(dt_space_seal(space), DT_OK);
        for (int k = 0; k < dt_space_axes(space); k++)
            from.index[k] = below(&rng, dt_space_axis(space, k)->count + 1) - 1;
        do {
            int changes = 0;
            for (int k = 0; k < dt_space_axes(space); k++)
                changes += point.index[k] != from.index[k];
            expected[changes] += dt_space_feasible(space, &point);
        } while (walk_on(space, &point));
        struct dt_near near = {
            .diagram = space->diagram, .from = from.index, .found = count_near, .context = &set};
        for (set.changes = 0; set.changes <= dt_space_axes(space); set.changes++) {
            set.n = 0;
            assert_true(dt_diagram_near(&near, set.changes));
            assert_int_equal(set.n, expected[set.changes]);
        }
        dt_space_free(space);
    }
}

/* A diagram beyond the bound is given up and freed. */
static void exceeding_the_bound_is_an_error(void **state)
{
    static const struct dt_bound tight[] = {{.work = 2000, .edges = 1000000},
                                            {.work = 100000000, .edges = 50}};
    struct dt_rng rng = dt_rng_at(5, "bounds");
    int given_up = 0;
    (void)state;
    for (int i = 0; i < doses(200); i++) {
        struct dt_space *space = draw(&rng);
        int order[DT_AXES_MAX] = {0, 1, 2, 3, 4};
        assert_int_equal(dt_space_seal(space), DT_OK);
        for (int k = 0; k < 2; k++) {
            struct dt_diagram *diagram = NULL;
            dt_status status = dt_diagram_new(space, order, NULL, &tight[k], &diagram);
            assert_true(status == DT_EUNSUP || status == DT_OK);
            given_up += status != DT_OK;
            if (status == DT_OK)
                check(space, diagram, NULL);
            dt_diagram_free(diagram);
        }
        dt_space_free(space);
    }
    assert_in_range(given_up, doses(200) / 20, doses(200) * 3 / 2);
}

/* The beginning of points that no rule lets differ is one node, so 16 free axes cost 16
 * layers of one node each. */
static void independent_axes_share_nodes(void **state)
{
    struct dt_space *space = NULL;
    int64_t values[16];
    (void)state;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 16; i++)
        values[i] = i + 1;
    for (int i = 0; i < 15; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct dt_axis axis = {.name = name, .count = 16, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "a % b == 0 && c + d < 10", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    /* 50 divisor pairs up to 16 (1+2+2+3+2+4+2+4+3+4+2+6+2+4+4+5), 36 pairs of sum below
     * 10, 16^11 of the rest */
    assert_int_equal(dt_space_count(space), INT64_C(50) * 36 << 44);
    assert_true(dt_space_bytes(space) < 20000);
    struct dt_rng rng = dt_rng_at(2, "free");
    for (int i = 0; i < 1000; i++) {
        struct dt_point point, again;
        dt_space_draw(space, &rng, &point);
        int64_t k = dt_space_index(space, &point);
        dt_space_at(space, k, &again);
        assert_true(dt_point_equal(space, &point, &again));
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rules_match_enumeration),
        cmocka_unit_test(bounded_parts_match_enumeration),
        cmocka_unit_test(nearest_points_match_enumeration),
        cmocka_unit_test(exceeding_the_bound_is_an_error),
        cmocka_unit_test(independent_axes_share_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
