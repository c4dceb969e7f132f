/* SPDX-License-Identifier: MIT */
/* Explains infeasible values: each violated rule with its numbers, and the nearest values of one axis that would
 * satisfy it. */
#include "space/space_int.h"

#include "space/json/json_int.h"

#include <string.h>

static dt_status no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while explaining a plan");
}

/* A rule to be satisfied; NULL: any value of the axis. A change of a derived name affects much, so there the new value
 * must not break a rule that holds now; elsewhere such values are only preferred. */
struct broken {
    const struct dt_space *space;
    const struct dt_rule *rule;
    const int64_t *scope;
    bool strict; /* no other rule may be broken */
};

/* The rule would hold with another value of one axis. */
static bool cures(const struct broken *broken, int axis, int64_t value)
{
    const struct dt_space *space = broken->space;
    const struct dt_rule *rule = broken->rule;
    const int64_t *scope = broken->scope;
    int64_t changed[DT_AXES_MAX], after[DT_SCOPE_MAX];
    if (rule == NULL)
        return true;
    memcpy(changed, scope, (size_t)space->axis_count * sizeof changed[0]);
    changed[axis] = value;
    dt_space_scope(space, changed, after);
    if (!dt_rule_holds(space, rule, after))
        return false;
    for (int i = 0; (rule->derived != 0 || broken->strict) && i < space->listed; i++)
        if (dt_rule_holds(space, &space->rules[i], scope) &&
            !dt_rule_holds(space, &space->rules[i], after))
            return false;
    return true;
}

/* The nearest value below, then the nearest above. */
static int nearest(const struct broken *broken, int axis, int64_t near[2])
{
    const struct dt_axis *row = &broken->space->axes[axis];
    int64_t value = broken->scope[axis];
    int n = 0;
    for (int i = row->count - 1; i >= 0; i--) {
        if (row->values[i] < value && cures(broken, axis, row->values[i])) {
            near[n++] = row->values[i];
            break;
        }
    }
    for (int i = 0; i < row->count; i++) {
        if (row->values[i] > value && cures(broken, axis, row->values[i])) {
            near[n++] = row->values[i];
            break;
        }
    }
    return n;
}

static bool add_near(const struct broken *broken, uint32_t axes, json_t *object)
{
    const struct dt_space *space = broken->space;
    for (int i = 0; i < space->axis_count; i++) {
        int64_t near[2];
        int n = axes >> i & 1 ? nearest(broken, i, near) : 0;
        if (n == 0)
            continue;
        json_t *list = json_array();
        for (int k = 0; k < n; k++)
            if (json_array_append_new(list, dt_value_json(&space->axes[i], near[k])) != 0) {
                json_decref(list);
                return false;
            }
        if (json_object_set_new(object, space->axes[i].name, list) != 0)
            return false;
    }
    return true;
}

/* Adds values that break no other rule, or if there are none, values that satisfy this one. */
static bool add_nearest(const struct dt_space *space, const struct dt_rule *rule, uint32_t axes,
                        const int64_t scope[], json_t *object)
{
    struct broken broken = {.space = space, .rule = rule, .scope = scope, .strict = true};
    if (!add_near(&broken, axes, object))
        return false;
    broken.strict = false;
    return json_object_size(object) > 0 || add_near(&broken, axes, object);
}

static json_t *row_json(const char *rule, const char *sentence, const char *numbers,
                        json_t *nearest_values)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "rule", rule, "sentence", sentence, "numbers", numbers,
                     "nearest", nearest_values);
}

static json_t *rule_row(const struct dt_space *space, const struct dt_rule *rule,
                        const int64_t values[])
{
    int64_t scope[DT_SCOPE_MAX];
    struct dt_text numbers = {0};
    json_t *near = json_object();
    dt_space_scope(space, values, scope);
    if (rule->cases != NULL)
        dt_cases_text(space, rule->cases, scope, &numbers);
    else
        dt_expr_explain(rule->expr, scope, &numbers);
    bool ok = near != NULL && add_nearest(space, rule, rule->axes, scope, near);
    json_t *row = NULL;
    if (ok && dt_text_status(&numbers) == DT_OK)
        row = row_json(rule->text, rule->sentence, dt_text_at(&numbers), near);
    else
        json_decref(near);
    dt_text_fini(&numbers);
    return row;
}

/* "ulysses in (1, 2, 3, 6)", a long list cut. */
static void add_values(const struct dt_axis *axis, struct dt_text *out)
{
    dt_text_add(out, "%s in (", axis->name);
    for (int i = 0; i < axis->count; i++) {
        if (i == 12 && axis->count > 14) {
            dt_text_add(out, ", ...");
            i = axis->count - 1;
        }
        dt_text_add(out, "%s", i > 0 ? ", " : "");
        dt_axis_text(axis, axis->values[i], out);
    }
    dt_text_add(out, ")");
}

static json_t *axis_row(const struct dt_space *space, int axis, const int64_t values[])
{
    int64_t scope[DT_SCOPE_MAX];
    struct dt_text rule = {0}, sentence = {0};
    const struct dt_axis *row = &space->axes[axis];
    json_t *near = json_object(), *made = NULL;
    dt_space_scope(space, values, scope);
    add_values(row, &rule);
    dt_text_add(&sentence, "%s=", row->name);
    dt_axis_text(row, values[axis], &sentence);
    dt_text_add(&sentence, " is not one of the values of %s", row->name);
    bool ok = near != NULL && add_nearest(space, NULL, UINT32_C(1) << axis, scope, near);
    if (ok && !rule.failed && !sentence.failed)
        made = row_json(dt_text_at(&rule), dt_text_at(&sentence), dt_text_at(&rule), near);
    else
        json_decref(near);
    dt_text_fini(&rule);
    dt_text_fini(&sentence);
    return made;
}

static int add_axes(const struct dt_space *space, const int64_t values[], uint32_t outside,
                    json_t *rows)
{
    int failed = 0;
    for (int i = 0; i < space->axis_count; i++)
        if (outside >> i & 1)
            failed |= json_array_append_new(rows, axis_row(space, i, values));
    return failed;
}

dt_status dt_space_violations(const struct dt_space *space, const int64_t values[], json_t **rows)
{
    int64_t scope[DT_SCOPE_MAX];
    uint32_t outside = 0, spoken = 0;
    json_t *made = json_array();
    int failed = made == NULL;
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->axis_count; i++)
        if (dt_axis_find(&space->axes[i], values[i]) < 0)
            outside |= UINT32_C(1) << i;
    for (int i = 0; i < space->listed; i++)
        if (!dt_rule_holds(space, &space->rules[i], scope))
            spoken |= space->rules[i].axes;
    /* The first value outside its axis is probably the one given, later ones were completed from it. */
    uint32_t first = outside & -outside, unspoken = outside & ~spoken;
    bool rules_first = (first & spoken) != 0;
    failed |= rules_first ? 0 : add_axes(space, values, unspoken, made);
    for (int pass = 0; pass < 2; pass++) /* first the rules that use that axis */
        for (int i = 0; i < space->listed; i++)
            if (!dt_rule_holds(space, &space->rules[i], scope) &&
                (pass == 0) == ((space->rules[i].axes & first) != 0))
                failed |= json_array_append_new(made, rule_row(space, &space->rules[i], values));
    failed |= add_axes(space, values, rules_first ? outside : outside & spoken, made);
    if (failed != 0) {
        json_decref(made);
        return no_memory();
    }
    *rows = made;
    return DT_OK;
}
