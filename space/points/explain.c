/* SPDX-License-Identifier: MIT */
/* The nearest plans are those that change the fewest axes; ties are broken by a table with the cost
 * of each value of each axis. */
#include "space/diagram/diagram.h"
#include "space/json/json_int.h"
#include "space/space_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Explains infeasible values: each violated rule with its numbers, and the nearest values of one
 * axis that would satisfy it. */

static const char explaining[] = "while explaining a plan";

/* A rule to be satisfied; NULL: any value of the axis. A change of a derived name affects
 * much, so there the new value must not break a rule that holds now; elsewhere such
 * values are only preferred. */
struct broken {
    const struct dt_space *space;
    const struct dt_rule *rule;
    const int64_t *scope;
    bool strict; /* no other rule may be broken */
};

/* Another value of one axis. */
struct cure {
    const struct broken *broken;
    int axis;
};

/* The rule would hold with it. */
static bool cures_rule(const void *context, int64_t value)
{
    const struct cure *cure = context;
    const struct dt_space *space = cure->broken->space;
    const struct dt_rule *rule = cure->broken->rule;
    const int64_t *scope = cure->broken->scope;
    int64_t changed[DT_AXES_MAX], after[DT_SCOPE_MAX];
    if (rule == NULL)
        return true;
    memcpy(changed, scope, (size_t)space->axis_count * sizeof changed[0]);
    changed[cure->axis] = value;
    dt_space_scope(space, changed, after);
    if (!dt_rule_holds(space, rule, after))
        return false;
    for (int i = 0; (rule->derived != 0 || cure->broken->strict) && i < space->listed; i++)
        if (dt_rule_holds(space, &space->rules[i], scope) &&
            !dt_rule_holds(space, &space->rules[i], after))
            return false;
    return true;
}

int dt_near_values(const int64_t values[], int count, const struct dt_near_wanted *wanted,
                   int64_t near[2])
{
    int n = 0, above = 0;
    while (above < count && values[above] <= wanted->value)
        above++;
    for (int i = above - 1; i >= 0 && n == 0; i--)
        if (values[i] < wanted->value && wanted->fits(wanted->context, values[i]))
            near[n++] = values[i];
    for (int i = above, below = n; i < count && n == below; i++)
        if (wanted->fits(wanted->context, values[i]))
            near[n++] = values[i];
    return n;
}

void dt_near_text(const json_t *near, struct dt_text *out)
{
    const char *name, *before = "; ";
    json_t *values, *value;
    size_t i;
    json_object_foreach((json_t *)near, name, values)
    {
        json_array_foreach(values, i, value)
        {
            dt_text_add(out, "%s%s=", before, name);
            dt_json_plain(value, out);
            before = " or ";
        }
    }
    dt_text_add(out, "%s", json_object_size(near) > 0 ? " would do" : "");
}

static bool add_near(const struct broken *broken, uint32_t axes, json_t *object)
{
    const struct dt_space *space = broken->space;
    for (int i = 0; i < space->axis_count; i++) {
        int64_t near[2];
        const struct dt_axis *axis = &space->axes[i];
        const struct cure cure = {broken, i};
        const struct dt_near_wanted wanted = {broken->scope[i], cures_rule, &cure};
        int n = axes >> i & 1 ? dt_near_values(axis->values, axis->count, &wanted, near) : 0;
        if (n == 0)
            continue;
        json_auto_t *list = json_array();
        for (int k = 0; k < n; k++)
            if (json_array_append_new(list, dt_value_json(axis, near[k])) != 0)
                return false;
        if (json_object_set(object, axis->name, list) != 0)
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
    return json_pack("{s:s, s:s, s:s, s:O}", "rule", rule, "sentence", sentence, "numbers", numbers,
                     "nearest", nearest_values);
}

static json_t *rule_row(const struct dt_space *space, const struct dt_rule *rule,
                        const int64_t values[])
{
    int64_t scope[DT_SCOPE_MAX];
    dt_auto_text numbers = {0};
    json_auto_t *near = json_object();
    dt_space_scope(space, values, scope);
    if (rule->cases != NULL)
        dt_cases_text(space, rule->cases, scope, &numbers);
    else
        dt_expr_explain(rule->expr, scope, &numbers);
    bool ok = near != NULL && add_nearest(space, rule, rule->axes, scope, near);
    return ok && dt_text_status(&numbers) == DT_OK
               ? row_json(rule->text, rule->sentence, dt_text_at(&numbers), near)
               : NULL;
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
    dt_auto_text rule = {0}, sentence = {0};
    const struct dt_axis *row = &space->axes[axis];
    json_auto_t *near = json_object();
    dt_space_scope(space, values, scope);
    add_values(row, &rule);
    dt_text_add(&sentence, "%s=", row->name);
    dt_axis_text(row, values[axis], &sentence);
    dt_text_add(&sentence, " is not one of the values of %s", row->name);
    bool ok = near != NULL && add_nearest(space, NULL, UINT32_C(1) << axis, scope, near);
    return ok && !rule.failed && !sentence.failed
               ? row_json(dt_text_at(&rule), dt_text_at(&sentence), dt_text_at(&rule), near)
               : NULL;
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
    json_auto_t *made = json_array();
    int failed = made == NULL;
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->axis_count; i++)
        if (dt_axis_find(&space->axes[i], values[i]) < 0)
            outside |= UINT32_C(1) << i;
    for (int i = 0; i < space->listed; i++)
        if (!dt_rule_holds(space, &space->rules[i], scope))
            spoken |= space->rules[i].axes;
    /* The first value outside its axis is probably the one given, later ones
     * were completed from it. */
    uint32_t first = outside & -outside, unspoken = outside & ~spoken;
    bool rules_first = (first & spoken) != 0;
    failed |= rules_first ? 0 : add_axes(space, values, unspoken, made);
    for (int pass = 0; pass < 2; pass++) /* first the rules that use that axis */
        for (int i = 0; i < space->listed; i++)
            if (!dt_rule_holds(space, &space->rules[i], scope) &&
                (pass == 0) == ((space->rules[i].axes & first) != 0))
                failed |= json_array_append_new(made, rule_row(space, &space->rules[i], values));
    failed |= add_axes(space, values, rules_first ? outside : outside & spoken, made);
    if (failed != 0)
        return dt_no_memory(explaining);
    *rows = json_incref(made);
    return DT_OK;
}

enum { NEAREST = 3 };

struct candidate {
    struct dt_point point;
    int changes;
    double distance;
};

struct search {
    const struct dt_space *space;
    double *const *costs; /* a cost for each value of each axis */
    struct candidate *best;
    int n, changes;
};

/* Between positive numbers the ratio in doublings; between labels 1; otherwise the difference. */
static double axis_distance(const struct dt_axis *axis, int64_t from, int64_t to)
{
    if (from == to)
        return 0;
    if (axis->labels != NULL)
        return 1;
    if (from > 0 && to > 0)
        return fabs(log2((double)from) - log2((double)to));
    return fabs((double)from - (double)to);
}

static bool is_nearer(const struct candidate *a, const struct candidate *b)
{
    if (a->changes != b->changes)
        return a->changes < b->changes;
    /* Sums in another order differ in the last bits: those are ties, and the first plan stays. */
    return a->distance < b->distance - 1e-9;
}

static int insert_candidate(struct candidate best[NEAREST], int n,
                            const struct candidate *candidate)
{
    int at = n < NEAREST ? n : NEAREST;
    while (at > 0 && is_nearer(candidate, &best[at - 1])) {
        if (at < NEAREST)
            best[at] = best[at - 1];
        at--;
    }
    if (at < NEAREST)
        best[at] = *candidate;
    return n < NEAREST ? n + 1 : n;
}

static void look_at_point(void *context, const struct dt_point *point)
{
    struct search *search = context;
    struct candidate candidate = {.point = *point, .changes = search->changes};
    if (!dt_space_passes(search->space, point))
        return;
    for (int i = 0; i < search->space->axis_count; i++)
        candidate.distance += search->costs[i][point->index[i]];
    search->n = insert_candidate(search->best, search->n, &candidate);
}

/* Collects the plans that differ in one axis, then in two, until there are enough. */
static int scan_changes(const struct dt_space *space, const int64_t values[], double *const costs[],
                        struct candidate best[NEAREST])
{
    int32_t from[DT_AXES_MAX];
    struct search search = {.space = space, .costs = costs, .best = best};
    struct dt_near near = {
        .diagram = space->diagram, .from = from, .found = look_at_point, .context = &search};
    for (int i = 0; i < space->axis_count; i++)
        from[i] = dt_axis_find(&space->axes[i], values[i]);
    for (int changes = 0; changes <= space->axis_count && search.n < NEAREST; changes++) {
        search.changes = changes;
        if (!dt_diagram_near(&near, changes))
            break;
    }
    return search.n;
}

static dt_status find_nearest(const struct dt_space *space, const int64_t values[],
                              struct candidate best[NEAREST], int *n)
{
    double *costs[DT_AXES_MAX];
    size_t count = 0;
    for (int i = 0; i < space->axis_count; i++)
        count += (size_t)space->axes[i].count;
    dt_auto_free double *all = calloc(count + 1, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while explaining a plan");
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        costs[i] = i > 0 ? costs[i - 1] + space->axes[i - 1].count : all;
        for (int k = 0; k < axis->count; k++)
            costs[i][k] = axis_distance(axis, values[i], axis->values[k]);
    }
    *n = scan_changes(space, values, costs, best);
    return DT_OK;
}

static void write_text(const struct dt_space *space, const int64_t values[], const json_t *rows,
                       struct dt_text *out)
{
    size_t n = json_array_size(rows);
    dt_values_text(space, values, out);
    dt_text_add(out, n == 0 ? "\n  is feasible\n" : "\n  is not feasible:\n");
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        dt_text_add(out, "  - ");
        dt_violation_text(row, out);
        dt_text_add(out, "\n    rule: ");
        dt_text_show(json_string_value(json_object_get(row, "rule")), out);
        dt_text_add(out, "\n");
    }
}

static void write_nearest(const struct dt_space *space, const struct candidate best[NEAREST], int n,
                          struct dt_text *out)
{
    if (space->count == 0)
        dt_text_add(out, "no plan at all is feasible here\n");
    for (int i = 0; i < n; i++) {
        dt_text_add(out, i == 0 ? "nearest feasible plans:\n  " : "  ");
        dt_point_text(space, &best[i].point, out);
        dt_text_add(out, "\n");
    }
}

static json_t *nearest_json(const struct dt_space *space, const struct candidate best[NEAREST],
                            int n)
{
    json_auto_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, dt_point_json(space, &best[i].point)) != 0)
            return NULL;
    return json_incref(list);
}

dt_status dt_space_explain(const struct dt_space *space, const int64_t values[],
                           struct dt_explanation *out)
{
    struct candidate best[NEAREST];
    DT_CLEANUP(dt_explanation_fini) struct dt_explanation made = {0};
    json_auto_t *rows = NULL;
    int n = 0;
    DT_TRY(dt_space_violations(space, values, &rows));
    if (json_array_size(rows) > 0)
        DT_TRY(find_nearest(space, values, best, &n));
    write_text(space, values, rows, &made.text);
    write_nearest(space, best, n, &made.text);
    made.json = json_pack("{s:o, s:b, s:O, s:o}", "plan", dt_values_json(space, values), "feasible",
                          (int)(json_array_size(rows) == 0), "violations", rows, "nearest",
                          nearest_json(space, best, n));
    if (made.json == NULL || made.text.failed)
        return dt_fail(DT_ENOMEM, "out of memory while explaining a plan");
    *out = made;
    made = (struct dt_explanation){0};
    return DT_OK;
}

void dt_explanation_fini(struct dt_explanation *explanation)
{
    json_decref(explanation->json);
    dt_text_fini(&explanation->text);
    explanation->json = NULL;
}
