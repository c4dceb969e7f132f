/* SPDX-License-Identifier: MIT */
/* What a sealed space answers. */
#include "space/space_int.h"

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
    for (int i = 0; i < space->constant_count; i++) {
        if (strcmp(space->constant_names[i], name) == 0) {
            *value = space->constants[i];
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

static const int16_t *row(const struct dt_space *space, int64_t k)
{
    return space->points + k * space->axis_count;
}

void dt_space_at(const struct dt_space *space, int64_t k, struct dt_point *point)
{
    *point = (struct dt_point){{0}};
    for (int i = 0; i < space->axis_count; i++)
        point->index[i] = row(space, k)[i];
}

static int compare(const struct dt_space *space, const struct dt_point *point, int64_t k)
{
    for (int i = 0; i < space->axis_count; i++)
        if (point->index[i] != row(space, k)[i])
            return point->index[i] < row(space, k)[i] ? -1 : 1;
    return 0;
}

int64_t dt_space_index(const struct dt_space *space, const struct dt_point *point)
{
    int64_t low = 0, high = space->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = compare(space, point, middle);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

bool dt_space_feasible(const struct dt_space *space, const struct dt_point *point)
{
    return dt_space_index(space, point) >= 0;
}

int dt_space_rules(const struct dt_space *space)
{
    return space->listed;
}

void dt_space_derive(const struct dt_space *space, uint32_t derived, int64_t scope[])
{
    int first = space->axis_count + space->constant_count;
    for (int i = 0; derived != 0; i++, derived >>= 1)
        if (derived & 1)
            scope[first + i] = space->derived[i].function(space->derived[i].context, scope);
}

void dt_space_scope(const struct dt_space *space, const int64_t values[], int64_t scope[])
{
    for (int i = 0; i < space->axis_count; i++)
        scope[i] = values[i];
    for (int i = 0; i < space->constant_count; i++)
        scope[space->axis_count + i] = space->constants[i];
    dt_space_derive(space, (UINT32_C(1) << space->derived_count) - 1, scope);
}

bool dt_rule_holds(const struct dt_rule *rule, const int64_t scope[])
{
    int64_t value;
    return dt_expr_eval(rule->expr, scope, &value) == DT_OK && value != 0;
}

/* Steps to the next combination of the axes in the mask; false after the last. */
static bool advance(const struct dt_space *space, uint32_t axes, int index[], int64_t scope[])
{
    for (int i = space->axis_count - 1; i >= 0; i--) {
        if ((axes >> i & 1) == 0)
            continue;
        index[i] = index[i] + 1 < space->axes[i].count ? index[i] + 1 : 0;
        scope[i] = space->axes[i].values[index[i]];
        if (index[i] > 0)
            return true;
    }
    return false;
}

/* The axes a rule does not depend on only multiply what it removes. */
static int64_t removes(const struct dt_space *space, const struct dt_rule *rule)
{
    int index[DT_AXES_MAX] = {0};
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX], violated = 0, rest = 1;
    if (dt_space_cartesian(space) > 1e7)
        return -1;
    for (int i = 0; i < space->axis_count; i++) {
        values[i] = space->axes[i].values[0];
        if ((rule->axes >> i & 1) == 0)
            rest *= space->axes[i].count;
    }
    dt_space_scope(space, values, scope);
    do {
        dt_space_derive(space, rule->derived, scope);
        violated += !dt_rule_holds(rule, scope);
    } while (advance(space, rule->axes, index, scope));
    return violated * rest;
}

struct dt_rule_info dt_space_rule(const struct dt_space *space, int rule)
{
    const struct dt_rule *row = &space->rules[rule];
    return (struct dt_rule_info){
        .expr = row->text, .sentence = row->sentence, .removes = removes(space, row)};
}
