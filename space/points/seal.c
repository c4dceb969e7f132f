/* SPDX-License-Identifier: MIT */
/* Sealing: the rules are compiled, then the diagram is built in the order in which the axes were declared, or, when
 * that gets too wide, in an order chosen to keep it narrow. When that fails, too, the rules with the most combinations
 * are left out of the diagram: its points are then drawn and tested, which is uniform over the feasible points. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <math.h>
#include <stdlib.h>

/* The first bound is about a tenth of a second and 50 MiB; the second a second and 300 MiB. */
static const struct dt_bound quick = {.work = 60000000, .edges = 4000000},
                             patient = {.work = 600000000, .edges = 16000000};

static bool has(struct dt_names names, int i)
{
    return (names.bits[i / 64] >> (i % 64) & 1) != 0;
}

static void analyse(const struct dt_space *space, struct dt_rule *rule)
{
    struct dt_names names = dt_expr_names(rule->expr);
    int first = space->axis_count + space->constants.count;
    for (int i = 0; i < space->axis_count; i++)
        if (has(names, i))
            rule->axes |= UINT32_C(1) << i;
    for (int i = 0; i < space->derived_count; i++) {
        if (has(names, first + i)) {
            rule->derived |= UINT32_C(1) << i;
            rule->axes |= space->derived[i].axes;
        }
    }
}

/* What rules may name. */
struct words {
    const char *names[DT_SCOPE_MAX];
    const char *const *labels[DT_SCOPE_MAX];
    int counts[DT_SCOPE_MAX], digits[DT_SCOPE_MAX];
    struct dt_vocabulary vocabulary;
};

static void collect(const struct dt_space *space, struct words *words)
{
    int n = 0;
    *words = (struct words){.counts = {0}};
    for (int i = 0; i < space->axis_count; i++) {
        words->labels[n] = space->axes[i].labels;
        words->counts[n] = space->axes[i].count;
        words->digits[n] = space->axes[i].digits;
        words->names[n++] = space->axes[i].name;
    }
    for (int i = 0; i < space->constants.count; i++)
        words->names[n++] = space->constants.names[i];
    for (int i = 0; i < space->derived_count; i++)
        words->names[n++] = space->derived[i].name;
    words->vocabulary = (struct dt_vocabulary){.names = words->names,
                                               .labels = words->labels,
                                               .counts = words->counts,
                                               .digits = words->digits,
                                               .count = n};
}

dt_status dt_space_expr(const struct dt_space *space, const char *text, bool python,
                        struct dt_expr **expr)
{
    struct words words;
    collect(space, &words);
    words.vocabulary.python = python;
    return dt_expr_new_of(text, &words.vocabulary, expr);
}

static dt_status compile(struct dt_space *space)
{
    DT_TRY(dt_when_rules(space));
    for (int i = 0; i < space->derived_count; i++)
        if (space->axis_count < DT_AXES_MAX)
            space->derived[i].axes &= (UINT32_C(1) << space->axis_count) - 1;
    for (int i = 0; i < space->rule_count; i++) {
        struct dt_rule *rule = &space->rules[i];
        if (rule->cases != NULL)
            continue;
        DT_TRY(dt_space_expr(space, rule->text, rule->python, &rule->expr));
        DT_TRY(dt_when_guard(space, rule));
        analyse(space, rule);
    }
    return DT_OK;
}

dt_status dt_space_test(const struct dt_space *space, const char *condition,
                        const struct dt_point *point, bool *holds, uint32_t *axes)
{
    struct dt_expr *expr = NULL;
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX], result = 0;
    bool exist = true;
    DT_TRY(dt_space_expr(space, condition, false, &expr));
    for (int i = 0; i < space->axis_count; i++)
        if (has(dt_expr_names(expr), i)) {
            *axes |= UINT32_C(1) << i;
            exist = exist && (point == NULL || dt_point_has(space, point, i));
        }
    if (point != NULL) {
        dt_point_values(space, point, values);
        dt_space_scope(space, values, scope);
        *holds = exist && dt_expr_eval(expr, scope, &result) == DT_OK && result != 0;
    }
    dt_expr_free(expr);
    return DT_OK;
}

static double combinations(const struct dt_space *space, uint32_t axes)
{
    double product = 1;
    for (int i = 0; i < space->axis_count; i++)
        if (axes >> i & 1)
            product *= space->axes[i].count;
    return product;
}

/* Rules of one axis, and cases, cost little. */
static bool is_light(const struct dt_rule *rule)
{
    return rule->cases != NULL || (rule->axes & (rule->axes - 1)) == 0;
}

/* Builds the diagram of the light rules and those with at most `most` combinations. */
static dt_status build(struct dt_space *space, double most, const struct dt_bound *bound)
{
    uint32_t *axes = calloc((size_t)space->rule_count + 1, sizeof *axes);
    int order[DT_AXES_MAX], n = 0;
    if (axes == NULL)
        return dt_diagram_no_memory();
    for (int i = 0; i < space->rule_count; i++) {
        space->relaxation.kept[i] =
            is_light(&space->rules[i]) || combinations(space, space->rules[i].axes) <= most;
        if (space->relaxation.kept[i])
            axes[n++] = space->rules[i].axes;
    }
    dt_diagram_order(space, axes, n, order);
    free(axes);
    return dt_diagram_new(space, order, space->relaxation.kept, bound, &space->diagram);
}

/* Tries fewer and fewer rules; the light ones can always be kept. */
static dt_status relax(struct dt_space *space)
{
    dt_status status = DT_EUNSUP;
    space->relaxation.used = true;
    space->count = -1;
    for (double most = 1e8; status == DT_EUNSUP && most >= 10; most /= 50)
        status = build(space, most, &quick);
    if (status == DT_EUNSUP)
        status = build(space, 0, &patient);
    DT_TRY(status);
    return dt_space_probe(space);
}

static dt_status enumerate(struct dt_space *space)
{
    int order[DT_AXES_MAX];
    for (int i = 0; i < space->axis_count; i++)
        order[i] = i;
    for (int i = 0; i < space->rule_count; i++)
        space->relaxation.kept[i] = true;
    dt_status status =
        dt_diagram_new(space, order, space->relaxation.kept, &quick, &space->diagram);
    if (status == DT_EUNSUP)
        status = build(space, HUGE_VAL, &patient);
    if (status == DT_EUNSUP)
        return relax(space);
    DT_TRY(status);
    space->count = space->diagram->count;
    return dt_space_list(space);
}

dt_status dt_space_compile(struct dt_space *space)
{
    space->count = -1;
    return compile(space);
}

static dt_status seal(struct dt_space *space)
{
    DT_TRY(compile(space));
    space->relaxation.kept = calloc((size_t)space->rule_count + 1, sizeof *space->relaxation.kept);
    return space->relaxation.kept != NULL ? enumerate(space) : dt_diagram_no_memory();
}

/* *never: the condition of an axis holds for no values of those before it. One that cannot be enumerated may hold. */
static dt_status holds_never(const struct dt_space *space, int axis, bool *never)
{
    struct dt_space *before = NULL;
    DT_TRY(dt_space_new(&before));
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < axis; i++)
        status = dt_space_add_axis(before, &space->axes[i]);
    for (int i = 0; status == DT_OK && i < space->rule_count; i++)
        if (space->rules[i].cases != NULL && space->rules[i].axes >> axis == 0)
            status = dt_space_add_cases(before, space->rules[i].cases);
    if (status == DT_OK)
        status = dt_space_add_rule(before, dt_expr_text(space->when[axis]), NULL);
    if (status == DT_OK) {
        before->rules[before->listed - 1].of_when = true;
        status = seal(before);
    }
    *never = status == DT_OK && before->count == 0;
    dt_space_free(before);
    return status == DT_EUNSUP ? DT_OK : status;
}

dt_status dt_space_seal(struct dt_space *space)
{
    bool never = false;
    DT_TRY(seal(space));
    for (int i = 0; i < space->axis_count; i++) {
        if (space->when[i] != NULL)
            DT_TRY(holds_never(space, i, &never));
        if (never)
            return dt_fail(DT_EUSAGE,
                           "parameter '%s' never exists: its 'when' holds for no values of the "
                           "parameters before it: %s",
                           space->axes[i].name, space->axes[i].when);
    }
    return DT_OK;
}

bool dt_space_listed(const struct dt_space *space)
{
    return space->count >= 0;
}
