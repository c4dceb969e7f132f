/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Small spaces drawn at random, with random rules that are written once in the language of
 * rules and once as C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/lib/dose.h"
#include "tests/space/walk.h"

#include <stdio.h>
#include <string.h>

enum { AXES = 5, VALUES = 5, RULES = 6, SPACES = 600 };

/* kind says which rule; x, y, z are axes and k a number. */
struct rule {
    int kind, x, y, z, k;
    bool prune;
};

struct drawn {
    int axes, rules;
    int64_t values[AXES][VALUES];
    int counts[AXES];
    struct rule rule[RULES];
    struct dt_space *space;
};

static const char *const names[AXES] = {"v0", "v1", "v2", "v3", "v4"};

static int below(struct dt_rng *rng, int n)
{
    return (int)dt_rng_below(rng, (uint64_t)n);
}

static void rule_text(const struct rule *rule, char text[], size_t room)
{
    const int x = rule->x, y = rule->y, z = rule->z, k = rule->k;
    switch (rule->kind) {
    case 0:
        snprintf(text, room, "v%d * v%d <= %d", x, y, k);
        break;
    case 1:
        snprintf(text, room, "v%d %% v%d == 0", x, y);
        break;
    case 2:
        snprintf(text, room, "v%d + v%d != seven", x, y);
        break;
    case 3:
        snprintf(text, room, "v%d == v%d || !(v%d > %d)", x, y, z, k);
        break;
    case 4:
        snprintf(text, room, "v%d in (1, %d, seven, -2)", x, k);
        break;
    case 5:
        snprintf(text, room, "max(v%d, min(v%d, %d)) >= v%d", x, y, k, z);
        break;
    case 6:
        snprintf(text, room, "twice <= %d", 2 * k);
        break;
    case 7:
        snprintf(text, room, "v%d == 0 || twice / v%d < %d", x, x, k);
        break;
    default:
        snprintf(text, room, "seven > %d", k);
    }
}

/* The derived name: twice the first axis, and the last. */
static int64_t twice(const void *context, const int64_t values[])
{
    return 2 * values[0] + values[*(const int *)context - 1];
}

static bool rule_holds(const struct rule *rule, int axes, const int64_t v[])
{
    const int64_t x = v[rule->x], y = v[rule->y], z = v[rule->z], k = rule->k;
    switch (rule->kind) {
    case 0:
        return x * y <= k;
    case 1:
        return y != 0 && x % y == 0; /* what cannot be computed does not hold */
    case 2:
        return x + y != 7;
    case 3:
        return x == y || z <= k;
    case 4:
        return x == 1 || x == k || x == 7 || x == -2;
    case 5:
        return x >= z || (y < k ? y : k) >= z;
    case 6:
        return 2 * v[0] + v[axes - 1] <= 2 * k;
    case 7:
        return x == 0 || (2 * v[0] + v[axes - 1]) / x < k;
    default:
        return k < 7;
    }
}

static void draw_axes(struct drawn *drawn, struct dt_rng *rng)
{
    drawn->axes = 1 + below(rng, AXES);
    for (int i = 0; i < drawn->axes; i++) {
        int64_t value = below(rng, 6) - 3;
        drawn->counts[i] = 1 + below(rng, VALUES);
        for (int k = 0; k < drawn->counts[i]; k++, value += 1 + below(rng, 4))
            drawn->values[i][k] = value;
    }
}

static void draw_rules(struct drawn *drawn, struct dt_rng *rng)
{
    drawn->rules = below(rng, RULES + 1);
    for (int i = 0; i < drawn->rules; i++) {
        struct rule *rule = &drawn->rule[i];
        *rule = (struct rule){.kind = below(rng, 9),
                              .x = below(rng, drawn->axes),
                              .y = below(rng, drawn->axes),
                              .z = below(rng, drawn->axes),
                              .k = below(rng, 10)};
        /* A prune must be implied: here by the rule before it, which it repeats. */
        if (i > 0 && below(rng, 5) == 0) {
            *rule = drawn->rule[i - 1];
            rule->prune = true;
        }
    }
}

static void build(struct drawn *drawn)
{
    assert_int_equal(dt_space_new(&drawn->space), DT_OK);
    for (int i = 0; i < drawn->axes; i++) {
        const struct dt_axis axis = {
            .name = names[i], .count = drawn->counts[i], .values = drawn->values[i]};
        assert_int_equal(dt_space_add_axis(drawn->space, &axis), DT_OK);
    }
    const char *const uses[] = {names[0], names[drawn->axes - 1], NULL};
    assert_int_equal(dt_space_add_constant(drawn->space, "seven", 7), DT_OK);
    assert_int_equal(dt_space_add_derived(drawn->space, "twice", uses, twice, &drawn->axes), DT_OK);
    for (int i = 0; i < drawn->rules; i++) {
        char text[128];
        rule_text(&drawn->rule[i], text, sizeof text);
        if (drawn->rule[i].prune)
            assert_int_equal(dt_space_add_prune(drawn->space, text), DT_OK);
        else
            assert_int_equal(dt_space_add_rule(drawn->space, text, NULL), DT_OK);
    }
    assert_int_equal(dt_space_seal(drawn->space), DT_OK);
}

/* Each rule on its own, over the whole product. */
static void check_rules(const struct drawn *drawn, const int64_t removed[])
{
    int listed = 0;
    for (int i = 0; i < drawn->rules; i++) {
        char text[128];
        if (drawn->rule[i].prune)
            continue;
        rule_text(&drawn->rule[i], text, sizeof text);
        struct dt_rule_info info = dt_space_rule(drawn->space, listed++);
        assert_string_equal(info.expr, text);
        assert_string_equal(info.sentence, text);
        assert_int_equal(info.removes, removed[i]);
    }
    assert_int_equal(dt_space_rules(drawn->space), listed);
}

static int64_t check_points(const struct drawn *drawn)
{
    const struct dt_space *space = drawn->space;
    struct dt_point point = {{0}}, found;
    int64_t removed[RULES] = {0}, count = 0, product = 0;
    do {
        int64_t values[DT_AXES_MAX];
        bool legal = true;
        walk_values(space, &point, values);
        for (int i = 0; i < drawn->rules; i++) {
            bool holds = rule_holds(&drawn->rule[i], drawn->axes, values);
            removed[i] += !holds;
            legal = legal && holds;
        }
        assert_int_equal(dt_space_feasible(space, &point), legal);
        assert_int_equal(dt_space_index(space, &point), legal ? count : -1);
        assert_int_equal(dt_space_locate(space, values, &found), legal ? DT_OK : DT_EINFEASIBLE);
        if (legal) {
            assert_true(dt_point_equal(space, &found, &point));
            dt_space_at(space, count++, &found);
            assert_memory_equal(&found, &point, sizeof point);
        }
        product++;
    } while (walk_on(space, &point));
    assert_int_equal(dt_space_count(space), count);
    assert_true(dt_space_cartesian(space) == (double)product);
    check_rules(drawn, removed);
    return count;
}

static void random_spaces_match_enumeration(void **state)
{
    struct dt_rng rng = dt_rng_at(dose_seed("spaces", 7), "random spaces");
    int empty = 0, whole = 0;
    (void)state;
    for (int i = 0; i < SPACES; i++) {
        struct drawn drawn = {0};
        draw_axes(&drawn, &rng);
        draw_rules(&drawn, &rng);
        build(&drawn);
        int64_t count = check_points(&drawn);
        empty += count == 0;
        whole += (double)count == dt_space_cartesian(drawn.space);
        dt_space_free(drawn.space);
    }
    assert_in_range(empty, SPACES / 20, SPACES / 2);
    assert_in_range(whole, SPACES / 20, SPACES / 2);
}

/* The widest there is: 32 axes, rules on the first and the last. */
static void handles_32_axes(void **state)
{
    static const int64_t values[] = {1, 2};
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < DT_AXES_MAX; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        const struct dt_axis axis = {.name = name, .count = i % 8 == 7 ? 2 : 1, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    const struct dt_axis more = {.name = "more", .count = 1, .values = values};
    assert_int_equal(dt_space_add_axis(space, &more), DT_EUSAGE);
    assert_int_equal(dt_space_add_rule(space, "x31 != x7", NULL), DT_OK);
    assert_int_equal(dt_space_add_rule(space, "x0 + x31 + x15 <= 4", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_true(dt_space_cartesian(space) == 16);
    /* (x31, x15) of (1,1) (1,2) (2,1), x7 the other of x31, x23 free */
    assert_int_equal(dt_space_count(space), 6);
    assert_int_equal(dt_space_rule(space, 0).removes, 8);
    assert_int_equal(dt_space_rule(space, 1).removes, 4);
    dt_space_free(space);
}

/* 3 points of 2^30: only by deciding early. */
static void decides_rules_early(void **state)
{
    static const int64_t values[] = {0, 1};
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 30; i++) {
        char name[8], rule[32];
        snprintf(name, sizeof name, "x%d", i);
        const struct dt_axis axis = {.name = name, .count = 2, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
        snprintf(rule, sizeof rule, "x%d == x%d", i, i - 1);
        if (i > 1)
            assert_int_equal(dt_space_add_rule(space, rule, NULL), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "x0 <= x1", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_int_equal(dt_space_count(space), 3);
    assert_int_equal(dt_space_rule(space, 0).removes, 1 << 29); /* where x2 is not x1 */
    dt_space_free(space);
}

/* 2^24 points: too many to list, not to count. */
static void counts_too_many_points_to_list(void **state)
{
    static int64_t values[256];
    struct dt_space *space = NULL;
    struct dt_point point;
    (void)state;
    for (int i = 0; i < 256; i++)
        values[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 3; i++) {
        const struct dt_axis axis = {.name = names[i], .count = 256, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_add_rule(space, "v0 < v2", NULL), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_true(dt_space_listed(space));
    assert_int_equal(dt_space_count(space), 256 * 255 / 2 * 256);
    for (int64_t k = 0; k < dt_space_count(space); k += 9973) {
        dt_space_at(space, k, &point);
        assert_true(point.index[0] < point.index[2]);
        assert_int_equal(dt_space_index(space, &point), k);
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_spaces_match_enumeration),
        cmocka_unit_test(handles_32_axes),
        cmocka_unit_test(decides_rules_early),
        cmocka_unit_test(counts_too_many_points_to_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
