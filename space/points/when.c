/* SPDX-License-Identifier: MIT */
/* Parameters that exist under a condition on earlier ones: elsewhere such an axis has its default alone, which a rule says, and texts
 * and JSON of a plan have no value of it. */
#include "space/space_int.h"

#include <string.h>

static bool names_axis(const struct dt_expr *expr, int axis)
{
    struct dt_names names = dt_expr_names(expr);
    return (names.bits[axis / 64] >> (axis % 64) & 1) != 0;
}

/* The condition, and those of the axes that it names: what depends on an axis that does not exist does not, either. */
dt_status dt_when_compile(const struct dt_space *space, const char *when, struct dt_expr **out)
{
    struct dt_expr *own = NULL;
    struct dt_text text = {0};
    dt_status status = dt_space_expr(space, when, false, &own);
    if (status != DT_OK)
        return status;
    for (int i = 0; i < space->axis_count; i++) /* before it is computed with what does not exist */
        if (space->when[i] != NULL && names_axis(own, i))
            dt_text_add(&text, "%s && ", dt_expr_text(space->when[i]));
    dt_text_add(&text, "(%s)", when);
    dt_expr_free(own);
    status = dt_text_status(&text);
    if (status == DT_OK)
        status = dt_space_expr(space, dt_text_at(&text), false, out);
    dt_text_fini(&text);
    return status;
}

bool dt_axis_exists(const struct dt_space *space, int axis, const int64_t values[])
{
    int64_t value;
    return space->when[axis] == NULL ||
           (dt_expr_eval(space->when[axis], values, &value) == DT_OK && value != 0);
}

bool dt_point_has(const struct dt_space *space, const struct dt_point *point, int axis)
{
    int64_t values[DT_AXES_MAX];
    if (space->when[axis] == NULL)
        return true;
    dt_point_values(space, point, values);
    return dt_axis_exists(space, axis, values);
}

bool dt_value_shown(const struct dt_space *space, int axis, const int64_t values[])
{
    const struct dt_axis *row = &space->axes[axis];
    return values[axis] != row->values[row->fallback] || dt_axis_exists(space, axis, values);
}

dt_status dt_when_rules(struct dt_space *space)
{
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        struct dt_text text = {0}, sentence = {0};
        if (space->when[i] == NULL || axis->count == 1)
            continue;
        dt_text_add(&text, "%s == ", axis->name);
        if (axis->labels != NULL)
            dt_text_add(&text,
                        strchr(axis->labels[axis->fallback], '\'') == NULL ? "'%s'" : "\"%s\"",
                        axis->labels[axis->fallback]);
        else
            dt_axis_plain(axis, axis->values[axis->fallback], &text);
        /* A condition that cannot be computed does not hold. */
        dt_text_add(&text, " || (%s)", dt_expr_text(space->when[i]));
        dt_text_add(&sentence, "%s exists only when %s", axis->name, axis->when);
        dt_status status = dt_space_add_rule(space, dt_text_at(&text), dt_text_at(&sentence));
        if (status == DT_OK)
            space->rules[space->listed - 1].of_when = true;
        dt_text_fini(&text);
        dt_text_fini(&sentence);
        DT_TRY(status);
    }
    return DT_OK;
}

dt_status dt_when_guard(const struct dt_space *space, struct dt_rule *rule)
{
    struct dt_text text = {0};
    for (int i = 0; !rule->of_when && i < space->axis_count; i++)
        if (space->when[i] != NULL && names_axis(rule->expr, i))
            dt_text_add(&text, "!(%s) || ", dt_expr_text(space->when[i]));
    if (text.size == 0)
        return DT_OK;
    dt_text_add(&text, "(%s)", rule->text);
    struct dt_expr *guarded = NULL;
    dt_status status = dt_text_status(&text);
    if (rule->python)
        status = dt_fail(DT_EUSAGE,
                         "the rule '%.80s' in Python names a parameter with a 'when': write it in "
                         "the language of rules, with 'if'",
                         rule->text);
    if (status == DT_OK)
        status = dt_space_expr(space, dt_text_at(&text), false, &guarded);
    dt_text_fini(&text);
    DT_TRY(status);
    dt_expr_free(rule->expr);
    rule->expr = guarded;
    return DT_OK;
}
