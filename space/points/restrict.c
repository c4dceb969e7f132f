/* SPDX-License-Identifier: MIT */
/* Parts of a space: the points that agree with given ones in some axes, and one point for each
 * combination of some axes. */
#include "base/array.h"
#include "space/space_int.h"

#include <stdlib.h>

enum { TUPLES_MOST = 65536, SEARCHED_MOST = 256 };

static bool has_axis(uint32_t axes, int axis)
{
    return (axes >> axis & 1) != 0;
}

/* ---- the part of a space */

bool dt_points_agree(const struct dt_space *space, uint32_t axes, const struct dt_point *a,
                     const struct dt_point *b)
{
    for (int i = 0; i < space->axis_count; i++)
        if (has_axis(axes, i) && a->index[i] != b->index[i])
            return false;
    return true;
}

/* Keeps the rows that agree of a listed space, which needs no rules. */
static dt_status keep_rows(const struct dt_space *space, uint32_t axes,
                           const struct dt_point points[], int n, struct dt_space *part)
{
    dt_auto_free struct dt_point *kept = NULL;
    int count = 0;
    for (int64_t k = 0; k < space->count; k++) {
        struct dt_point point;
        bool any = false;
        dt_row_point(space, space->rows[k], &point);
        for (int i = 0; !any && i < n; i++)
            any = dt_points_agree(space, axes, &point, &points[i]);
        if (!any)
            continue;
        DT_TRY(DT_GROW(kept, count, 1));
        kept[count++] = point;
    }
    return dt_space_seal_points(part, kept, count);
}

/* The points as a list of cases of those axes. */
static dt_status add_points(const struct dt_space *space, uint32_t axes,
                            const struct dt_point points[], int n, struct dt_space *part)
{
    dt_auto_free struct dt_point *rows = calloc((size_t)n + 1, sizeof *rows);
    struct dt_cases table = {.count = n, .rows = rows};
    if (rows == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a part of a space");
    for (int a = 0; a < space->axis_count; a++) {
        for (int i = 0; has_axis(axes, a) && i < n; i++)
            table.rows[i].index[table.width] = points[i].index[a];
        table.axes[table.width] = a;
        table.width += has_axis(axes, a);
    }
    return dt_space_add_cases(part, &table);
}

static dt_status copy_rules(const struct dt_space *space, struct dt_space *part)
{
    for (int i = 0; i < space->constants.count; i++)
        DT_TRY(dt_space_add_constant(part, space->constants.names[i], space->constants.values[i]));
    for (int i = 0; i < space->derived_count; i++) {
        const struct dt_derived *derived = &space->derived[i];
        const char *uses[DT_AXES_MAX + 1] = {NULL};
        int n = 0;
        for (int a = 0; a < space->axis_count; a++)
            if (has_axis(derived->axes, a))
                uses[n++] = space->axes[a].name;
        DT_TRY(
            dt_space_add_derived(part, derived->name, uses, derived->function, derived->context));
    }
    for (int i = 0; i < space->rule_count; i++) {
        const struct dt_rule *rule = &space->rules[i];
        if (rule->of_when)
            continue;
        DT_TRY(rule->cases != NULL      ? dt_space_add_cases(part, rule->cases)
               : rule->sentence == NULL ? dt_space_add_prune(part, rule->text)
               : rule->python           ? dt_space_add_python(part, rule->text, rule->sentence)
                                        : dt_space_add_rule(part, rule->text, rule->sentence));
    }
    return DT_OK;
}

static dt_status fill_part(const struct dt_space *space, uint32_t axes,
                           const struct dt_point points[], int n, struct dt_space *part)
{
    for (int i = 0; i < space->axis_count; i++)
        DT_TRY(dt_space_add_axis(part, &space->axes[i]));
    for (int i = 0; space->rows != NULL && i < space->rule_count; i++) /* for neighbours */
        if (space->rules[i].cases != NULL)
            DT_TRY(dt_space_add_cases(part, space->rules[i].cases));
    if (space->rows != NULL)
        return keep_rows(space, axes, points, n, part);
    DT_TRY(copy_rules(space, part));
    DT_TRY(add_points(space, axes, points, n, part));
    return dt_space_seal(part);
}

dt_status dt_space_restrict(const struct dt_space *space, uint32_t axes,
                            const struct dt_point points[], int n, struct dt_space **part)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *made = NULL;
    DT_TRY(dt_space_new(&made));
    DT_TRY(fill_part(space, axes, points, n, made));
    *part = made;
    made = NULL;
    return DT_OK;
}

/* ---- one point for each combination */

uint32_t dt_space_layout_axes(const struct dt_space *space)
{
    uint32_t axes = 0;
    bool any = false;
    for (int i = 0; i < space->axis_count; i++) {
        enum dt_role role = space->axes[i].role;
        any = any || (role == DT_ROLE_LAYOUT && space->axes[i].count > 1);
        if (role == DT_ROLE_RANKS || role == DT_ROLE_BATCH || role == DT_ROLE_LAYOUT ||
            role == DT_ROLE_REPLICAS)
            axes |= UINT32_C(1) << i;
    }
    return any ? axes : 0;
}

/* Takes the first point that the combination has, in the order of the points,
 * where they can be listed. */
static dt_status first_of(const struct dt_space *space, uint32_t axes, struct dt_point *point,
                          bool *found)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *part = NULL;
    dt_status status = dt_space_restrict(space, axes, point, 1, &part);
    struct dt_rng rng = dt_rng_at(0, "first");
    *found = status == DT_OK && dt_space_estimate(part) > 0;
    if (*found && dt_space_listed(part))
        dt_space_at(part, 0, point);
    else if (*found)
        dt_space_draw(part, &rng, point);
    return status == DT_ENOMEM ? status : DT_OK;
}

/* A rule of these axes alone is broken: no other value of the rest can help. */
static bool is_hopeless(const struct dt_space *space, uint32_t axes, const int64_t values[])
{
    int64_t scope[DT_SCOPE_MAX];
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if ((space->rules[i].axes & ~axes) == 0 && !dt_rule_holds(space, &space->rules[i], scope))
            return true;
    return false;
}

/* The point that unnamed parameters complete, else the first one; `searched` limits how
 * often that is looked for. */
static dt_status find_representative(const struct dt_space *space, uint32_t axes,
                                     struct dt_point *point, int *searched, bool *found)
{
    bool named[DT_AXES_MAX], inside = true;
    int64_t values[DT_AXES_MAX];
    struct dt_point completed = {{0}};
    dt_point_values(space, point, values);
    for (int i = 0; i < space->axis_count; i++)
        named[i] = has_axis(axes, i);
    if (space->complete != NULL)
        space->complete(space->complete_context, space, named, values);
    for (int i = 0; i < space->axis_count; i++) {
        completed.index[i] = dt_axis_find(&space->axes[i], values[i]);
        inside = inside && completed.index[i] >= 0;
    }
    *found = inside && dt_space_feasible(space, &completed);
    if (*found)
        *point = completed;
    if (*found || is_hopeless(space, axes, values) || *searched == SEARCHED_MOST)
        return DT_OK;
    (*searched)++;
    return first_of(space, axes, point, found);
}

/* Sets point to the next combination of these axes; false: that was the last one. */
static bool next_tuple(const struct dt_space *space, uint32_t axes, struct dt_point *point)
{
    for (int i = space->axis_count - 1; i >= 0; i--) {
        if (!has_axis(axes, i))
            continue;
        if (++point->index[i] < space->axes[i].count)
            return true;
        point->index[i] = 0;
    }
    return false;
}

static dt_status list_tuples(const struct dt_space *space, uint32_t axes, struct dt_point **points,
                             int *count)
{
    struct dt_point tuple = {{0}};
    int searched = 0;
    for (int i = 0; i < space->axis_count; i++)
        tuple.index[i] = has_axis(axes, i) ? 0 : space->axes[i].fallback;
    do {
        struct dt_point point = tuple;
        bool found = false;
        DT_TRY(find_representative(space, axes, &point, &searched, &found));
        if (!found)
            continue;
        DT_TRY(DT_GROW(*points, *count, 1));
        (*points)[(*count)++] = point;
    } while (next_tuple(space, axes, &tuple));
    return DT_OK;
}

dt_status dt_space_tuples(const struct dt_space *space, uint32_t axes, struct dt_point **points,
                          int *count)
{
    double product = 1;
    *points = NULL;
    *count = 0;
    for (int i = 0; i < space->axis_count; i++)
        product *= has_axis(axes, i) ? space->axes[i].count : 1;
    if (product > TUPLES_MOST)
        return dt_fail(DT_EUNSUP, "%.0f combinations are too many to try each, at most %d", product,
                       TUPLES_MOST);
    dt_status status = list_tuples(space, axes, points, count);
    if (status != DT_OK) {
        free(*points);
        *points = NULL;
        *count = 0;
    }
    return status;
}
