/* SPDX-License-Identifier: MIT */
/* Enumeration: depth-first over the axes in their order. A rule is decided at the last axis it depends on, so a
 * violated rule cuts off all that lies below, and points come out in lexicographic order, ready for binary search. */
#include "space/space_int.h"

#include <stdlib.h>

static const int64_t POINTS_MAX = 4000000, STEPS_MAX = 400000000;

struct walk {
    struct dt_space *space;
    int *order; /* rules by depth, those without derived names first */
    int begin[DT_AXES_MAX +
              2]; /* order[begin[d+1] .. begin[d+2]-1] are decided at depth d, from -1 */
    int64_t scope[DT_SCOPE_MAX];
    int16_t index[DT_AXES_MAX];
    int64_t steps;
};

static dt_status no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while enumerating a space of plans");
}

static bool has(struct dt_names names, int i)
{
    return (names.bits[i / 64] >> (i % 64) & 1) != 0;
}

static void analyse(const struct dt_space *space, struct dt_rule *rule)
{
    struct dt_names names = dt_expr_names(rule->expr);
    int first = space->axis_count + space->constant_count;
    for (int i = 0; i < space->axis_count; i++)
        if (has(names, i))
            rule->axes |= UINT32_C(1) << i;
    for (int i = 0; i < space->derived_count; i++) {
        if (has(names, first + i)) {
            rule->derived |= UINT32_C(1) << i;
            rule->axes |= space->derived[i].axes;
        }
    }
    rule->depth = -1;
    for (int i = 0; i < space->axis_count; i++)
        if (rule->axes >> i & 1)
            rule->depth = i;
}

static dt_status compile(struct dt_space *space)
{
    const char *names[DT_SCOPE_MAX];
    int n = 0;
    for (int i = 0; i < space->axis_count; i++)
        names[n++] = space->axes[i].name;
    for (int i = 0; i < space->constant_count; i++)
        names[n++] = space->constant_names[i];
    for (int i = 0; i < space->derived_count; i++)
        names[n++] = space->derived[i].name;
    for (int i = 0; i < space->derived_count; i++)
        if (space->axis_count < DT_AXES_MAX)
            space->derived[i].axes &= (UINT32_C(1) << space->axis_count) - 1;
    for (int i = 0; i < space->rule_count; i++) {
        DT_TRY(dt_expr_new(space->rules[i].text, names, n, &space->rules[i].expr));
        analyse(space, &space->rules[i]);
    }
    return DT_OK;
}

static void sort_rules(struct walk *walk)
{
    const struct dt_space *space = walk->space;
    int n = 0;
    for (int depth = -1; depth < space->axis_count; depth++) {
        walk->begin[depth + 1] = n;
        for (int derived = 0; derived < 2; derived++)
            for (int i = 0; i < space->rule_count; i++)
                if (space->rules[i].depth == depth && (space->rules[i].derived != 0) == derived)
                    walk->order[n++] = i;
    }
    walk->begin[space->axis_count + 1] = n;
}

static bool holds(struct walk *walk, int depth)
{
    uint32_t known = 0;
    for (int k = walk->begin[depth + 1]; k < walk->begin[depth + 2]; k++) {
        const struct dt_rule *rule = &walk->space->rules[walk->order[k]];
        dt_space_derive(walk->space, rule->derived & ~known, walk->scope);
        known |= rule->derived;
        if (!dt_rule_holds(rule, walk->scope))
            return false;
    }
    return true;
}

static dt_status keep(struct walk *walk)
{
    struct dt_space *space = walk->space;
    size_t width = (size_t)space->axis_count;
    if (space->count == POINTS_MAX)
        return dt_fail(DT_EUNSUP,
                       "the space has more than %lld feasible plans: name fewer values, or add "
                       "rules",
                       (long long)POINTS_MAX);
    if (space->count == space->room) {
        int64_t room = 2 * space->room + 64;
        int16_t *points = realloc(space->points, (size_t)room * width * sizeof *points + 1);
        if (points == NULL)
            return no_memory();
        space->points = points;
        space->room = room;
    }
    for (size_t i = 0; i < width; i++)
        space->points[(size_t)space->count * width + i] = walk->index[i];
    space->count++;
    return DT_OK;
}

static dt_status visit(struct walk *walk, int depth)
{
    const struct dt_space *space = walk->space;
    if (depth == space->axis_count)
        return keep(walk);
    for (int i = 0; i < space->axes[depth].count; i++) {
        walk->index[depth] = (int16_t)i;
        walk->scope[depth] = space->axes[depth].values[i];
        if (++walk->steps > STEPS_MAX)
            return dt_fail(DT_EUNSUP,
                           "the space is too large to enumerate: its rules decide too late");
        if (holds(walk, depth))
            DT_TRY(visit(walk, depth + 1));
    }
    return DT_OK;
}

dt_status dt_space_seal(struct dt_space *space)
{
    DT_TRY(compile(space));
    struct walk walk = {.space = space};
    walk.order = calloc((size_t)space->rule_count + 1, sizeof *walk.order);
    if (walk.order == NULL)
        return no_memory();
    sort_rules(&walk);
    for (int i = 0; i < space->axis_count; i++)
        walk.scope[i] = space->axes[i].values[0];
    for (int i = 0; i < space->constant_count; i++)
        walk.scope[space->axis_count + i] = space->constants[i];
    dt_status status = holds(&walk, -1) && space->axis_count > 0 ? visit(&walk, 0) : DT_OK;
    free(walk.order);
    return status;
}
