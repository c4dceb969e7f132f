/* SPDX-License-Identifier: MIT */
/* Queries of a sealed space. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int dt_space_axes(const struct dt_space *space)
{
    return space->axis_count;
}

const struct dt_axis *dt_space_axis(const struct dt_space *space, int axis)
{
    return &space->axes[axis];
}

int dt_space_find(const struct dt_space *space, const char *name)
{
    for (int i = 0; i < space->axis_count; i++)
        if (strcmp(space->axes[i].name, name) == 0)
            return i;
    return -1;
}

int dt_space_role(const struct dt_space *space, enum dt_role role)
{
    for (int i = 0; i < space->axis_count; i++)
        if (space->axes[i].role == role)
            return i;
    return -1;
}

bool dt_space_constant(const struct dt_space *space, const char *name, int64_t *value)
{
    for (int i = 0; i < space->constants.count; i++) {
        if (strcmp(space->constants.names[i], name) == 0) {
            *value = space->constants.values[i];
            return true;
        }
    }
    return false;
}

double dt_space_cartesian(const struct dt_space *space)
{
    double product = space->axis_count > 0 ? 1 : 0;
    for (int i = 0; i < space->axis_count; i++)
        product *= space->axes[i].count;
    return product;
}

int64_t dt_space_count(const struct dt_space *space)
{
    return space->count;
}

double dt_space_estimate(const struct dt_space *space)
{
    if (space->count >= 0)
        return (double)space->count;
    return space->diagram->weight * (space->relaxation.used ? space->relaxation.share : 1);
}

size_t dt_space_bytes(const struct dt_space *space)
{
    size_t rows = space->rows != NULL ? (size_t)space->count * sizeof *space->rows : 0;
    return dt_diagram_bytes(space->diagram) + rows;
}

void dt_space_at(const struct dt_space *space, int64_t k, struct dt_point *point)
{
    assert(k >= 0 && k < space->count);
    if (space->rows != NULL)
        dt_row_point(space, space->rows[k], point);
    else
        dt_diagram_at(space->diagram, (uint64_t)k, point);
}

int64_t dt_space_index(const struct dt_space *space, const struct dt_point *point)
{
    assert(space->count >= 0);
    return space->rows != NULL ? dt_row_find(space, point)
                               : dt_diagram_index(space->diagram, point);
}

bool dt_space_passes(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    if (!space->relaxation.used)
        return true;
    dt_point_values(space, point, values);
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if (!space->relaxation.kept[i] && !dt_rule_holds(space, &space->rules[i], scope))
            return false;
    return true;
}

/* For a space that was not enumerated: tests every rule. */
static bool keeps_rules(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    dt_point_values(space, point, values);
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if (!dt_rule_holds(space, &space->rules[i], scope))
            return false;
    return true;
}

bool dt_space_feasible(const struct dt_space *space, const struct dt_point *point)
{
    if (space->diagram == NULL)
        return keeps_rules(space, point);
    return dt_diagram_has(space->diagram, point) && dt_space_passes(space, point);
}

int dt_space_rules(const struct dt_space *space)
{
    return space->listed;
}

void dt_space_derive(const struct dt_space *space, uint32_t derived, int64_t scope[])
{
    int first = space->axis_count + space->constants.count;
    for (int i = 0; derived != 0; i++, derived >>= 1)
        if (derived & 1)
            scope[first + i] = space->derived[i].function(space->derived[i].context, scope);
}

void dt_space_scope(const struct dt_space *space, const int64_t values[], int64_t scope[])
{
    for (int i = 0; i < space->axis_count; i++)
        scope[i] = values[i];
    for (int i = 0; i < space->constants.count; i++)
        scope[space->axis_count + i] = space->constants.values[i];
    dt_space_derive(space, (UINT32_C(1) << space->derived_count) - 1, scope);
}

bool dt_rule_holds(const struct dt_space *space, const struct dt_rule *rule, const int64_t scope[])
{
    int64_t value;
    if (rule->cases != NULL)
        return dt_cases_has(space, rule->cases, scope);
    return dt_expr_eval(rule->expr, scope, &value) == DT_OK && value != 0;
}

/* Number of points that the rules of the mask leave, counted with a diagram of its own; -1: not counted. */
static int64_t left_by(const struct dt_space *space, const bool rules[])
{
    /* One or two tenths of a second for all rules together. */
    int64_t work = 100000000 / space->rule_count, left = -1;
    const struct dt_bound bound = {.work = work > 100000 ? work : 100000, .edges = 1000000};
    struct dt_diagram *diagram = NULL;
    int order[DT_AXES_MAX];
    for (int i = 0; i < space->axis_count; i++)
        order[i] = i;
    if (dt_diagram_new(space, order, rules, &bound, &diagram) == DT_OK)
        left = diagram->count;
    dt_diagram_free(diagram);
    return left;
}

/* Number of points of the full product that the rule alone removes. */
static int64_t removes(const struct dt_space *space, int rule)
{
    int64_t all = 1, left = -1;
    bool *only = calloc((size_t)space->rule_count, sizeof *only);
    for (int i = 0; i < space->axis_count; i++)
        if (__builtin_mul_overflow(all, space->axes[i].count, &all))
            all = -1;
    if (only != NULL && all > 0) {
        only[rule] = true;
        left = left_by(space, only);
    }
    free(only);
    return left >= 0 ? all - left : -1;
}

/* One rule that leaves no point, else all but those that can be left out one after the other while no point is left; returns how
 * many they are, 0: unknown. What takes too long to count stays. */
static int find_conflict(const struct dt_space *space, bool rules[])
{
    int count = space->listed;
    for (int i = 0; i < space->listed; i++) {
        rules[i] = true;
        if (left_by(space, rules) == 0)
            return 1;
        rules[i] = false;
    }
    for (int i = 0; i < space->listed; i++)
        rules[i] = true;
    if (count == 0 || left_by(space, rules) != 0)
        return 0;
    for (int i = 0; i < space->listed; i++) {
        rules[i] = false;
        rules[i] = left_by(space, rules) != 0;
        count -= !rules[i];
    }
    return count;
}

dt_status dt_space_none(const struct dt_space *space)
{
    struct dt_text text = {0};
    int64_t values[DT_AXES_MAX];
    struct dt_point point;
    bool *rules = calloc((size_t)space->rule_count + 1, sizeof *rules);
    int count = rules != NULL ? find_conflict(space, rules) : 0;
    bool numbers = count == 0; /* those of the default plan say more */
    const char *before = count == 1 ? ": the rule " : ": together these rules remove every plan: ";
    for (int i = 0; count > 0 && i < space->listed; i++) {
        const struct dt_rule *rule = &space->rules[i];
        if (!rules[i])
            continue;
        numbers = numbers || rule->derived != 0;
        dt_text_add(&text, "%s'%s'", before, rule->text);
        if (strcmp(rule->text, rule->sentence) != 0)
            dt_text_add(&text, count == 1 ? " removes every plan: %s" : " (%s)", rule->sentence);
        else if (count == 1)
            dt_text_add(&text, " removes every plan");
        before = ", ";
    }
    if (numbers && dt_space_parse(space, "", values) == DT_OK &&
        dt_space_locate(space, values, &point) < 0)
        dt_text_add(&text, "; the default plan: %s", dt_message());
    dt_status status = dt_fail(DT_EINFEASIBLE, "no feasible plan among %.0f%s",
                               dt_space_cartesian(space), dt_text_at(&text));
    dt_text_fini(&text);
    free(rules);
    return status;
}

struct dt_rule_info dt_space_rule(const struct dt_space *space, int rule)
{
    const struct dt_rule *row = &space->rules[rule];
    return (struct dt_rule_info){
        .expr = row->text, .sentence = row->sentence, .removes = removes(space, rule)};
}
