/* SPDX-License-Identifier: MIT */
/* The nearest plans are those that change the fewest axes; ties are broken by a table with the cost of each value of
 * each axis. */
#include "space/diagram/diagram.h"
#include "space/json/json_int.h"
#include "space/space_int.h"

#include <math.h>
#include <stdlib.h>

enum { NEAREST = 3 };

struct candidate {
    struct dt_point point;
    int changes;
    double distance;
};

struct search {
    const struct dt_space *space;
    double *const *costs; /* of each value of each axis */
    struct candidate *best;
    int n, changes;
};

/* Between positive numbers the ratio in doublings; between labels 1; otherwise the difference. */
static double distance(const struct dt_axis *axis, int64_t from, int64_t to)
{
    if (from == to)
        return 0;
    if (axis->labels != NULL)
        return 1;
    if (from > 0 && to > 0)
        return fabs(log2((double)from) - log2((double)to));
    return fabs((double)from - (double)to);
}

static bool nearer(const struct candidate *a, const struct candidate *b)
{
    if (a->changes != b->changes)
        return a->changes < b->changes;
    /* Sums in another order differ in the last bits: those are ties, and the first plan stays. */
    return a->distance < b->distance - 1e-9;
}

static int insert(struct candidate best[NEAREST], int n, const struct candidate *candidate)
{
    int at = n < NEAREST ? n : NEAREST;
    while (at > 0 && nearer(candidate, &best[at - 1])) {
        if (at < NEAREST)
            best[at] = best[at - 1];
        at--;
    }
    if (at < NEAREST)
        best[at] = *candidate;
    return n < NEAREST ? n + 1 : n;
}

static void look(void *context, const struct dt_point *point)
{
    struct search *search = context;
    struct candidate candidate = {.point = *point, .changes = search->changes};
    if (!dt_space_passes(search->space, point))
        return;
    for (int i = 0; i < search->space->axis_count; i++)
        candidate.distance += search->costs[i][point->index[i]];
    search->n = insert(search->best, search->n, &candidate);
}

/* Collects the plans that differ in one axis, then in two, until there are enough. */
static int scan(const struct dt_space *space, const int64_t values[], double *const costs[],
                struct candidate best[NEAREST])
{
    int32_t from[DT_AXES_MAX];
    struct search search = {.space = space, .costs = costs, .best = best};
    struct dt_near near = {
        .diagram = space->diagram, .from = from, .found = look, .context = &search};
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
    double *costs[DT_AXES_MAX] = {NULL};
    dt_status status = DT_OK;
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        costs[i] = calloc((size_t)axis->count, sizeof *costs[i]);
        if (costs[i] == NULL)
            status = dt_fail(DT_ENOMEM, "out of memory while explaining a plan");
        for (int k = 0; costs[i] != NULL && k < axis->count; k++)
            costs[i][k] = distance(axis, values[i], axis->values[k]);
    }
    if (status == DT_OK)
        *n = scan(space, values, costs, best);
    for (int i = 0; i < space->axis_count; i++)
        free(costs[i]);
    return status;
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
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        if (json_array_append_new(list, dt_point_json(space, &best[i].point)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

dt_status dt_space_explain(const struct dt_space *space, const int64_t values[],
                           struct dt_explanation *out)
{
    struct candidate best[NEAREST];
    struct dt_explanation made = {0};
    json_t *rows = NULL;
    int n = 0;
    DT_TRY(dt_space_violations(space, values, &rows));
    dt_status status = DT_OK;
    if (json_array_size(rows) > 0)
        status = find_nearest(space, values, best, &n);
    if (status != DT_OK) {
        json_decref(rows);
        return status;
    }
    write_text(space, values, rows, &made.text);
    write_nearest(space, best, n, &made.text);
    made.json = json_pack("{s:o, s:b, s:o, s:o}", "plan", dt_values_json(space, values), "feasible",
                          (int)(json_array_size(rows) == 0), "violations", rows, "nearest",
                          nearest_json(space, best, n));
    if (made.json == NULL || made.text.failed) {
        dt_explanation_fini(&made);
        return dt_fail(DT_ENOMEM, "out of memory while explaining a plan");
    }
    *out = made;
    return DT_OK;
}

void dt_explanation_fini(struct dt_explanation *explanation)
{
    json_decref(explanation->json);
    dt_text_fini(&explanation->text);
    explanation->json = NULL;
}
