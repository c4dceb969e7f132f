/* SPDX-License-Identifier: MIT */
/* Points as values, text and JSON. */
#include "space/space_int.h"

#include "space/expr/decimal.h"
#include "space/json/json_int.h"

#include <string.h>

int dt_axis_find(const struct dt_axis *axis, int64_t value)
{
    int low = 0, high = axis->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (axis->values[middle] == value)
            return middle;
        if (axis->values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

void dt_axis_plain(const struct dt_axis *axis, int64_t value, struct dt_text *out)
{
    if (axis->labels != NULL && value >= 0 && value < axis->count)
        dt_text_add(out, "%s", axis->labels[value]);
    else if (axis->truth && (value == 0 || value == 1))
        dt_text_add(out, "%s", value != 0 ? "true" : "false");
    else
        dt_decimal_add(value, axis->digits, out);
}

double dt_axis_number(const struct dt_axis *axis, int64_t value)
{
    return dt_decimal_number(value, axis->digits);
}

void dt_axis_text(const struct dt_axis *axis, int64_t value, struct dt_text *out)
{
    const char *label =
        axis->labels != NULL && value >= 0 && value < axis->count ? axis->labels[value] : NULL;
    if (label == NULL || (label[0] != '\0' && strpbrk(label, " ,=\t\r\n\"'") == NULL))
        dt_axis_plain(axis, value, out);
    else
        dt_text_add(out, strchr(label, '\'') == NULL ? "'%s'" : "\"%s\"", label);
}

int64_t dt_point_value(const struct dt_space *space, const struct dt_point *point, int axis)
{
    return space->axes[axis].values[point->index[axis]];
}

void dt_point_values(const struct dt_space *space, const struct dt_point *point, int64_t values[])
{
    for (int i = 0; i < space->axis_count; i++)
        values[i] = dt_point_value(space, point, i);
}

bool dt_point_equal(const struct dt_space *space, const struct dt_point *a,
                    const struct dt_point *b)
{
    return memcmp(a->index, b->index, (size_t)space->axis_count * sizeof a->index[0]) == 0;
}

static void add_value(const struct dt_space *space, int axis, int64_t value, struct dt_text *out)
{
    dt_text_add(out, "%s=", space->axes[axis].name);
    dt_axis_text(&space->axes[axis], value, out);
}

void dt_values_text(const struct dt_space *space, const int64_t values[], struct dt_text *out)
{
    for (int i = 0; i < space->axis_count; i++) {
        if (!dt_value_shown(space, i, values))
            continue;
        if (i > 0)
            dt_text_add(out, " ");
        add_value(space, i, values[i], out);
    }
}

void dt_point_text(const struct dt_space *space, const struct dt_point *point, struct dt_text *out)
{
    int64_t values[DT_AXES_MAX];
    dt_point_values(space, point, values);
    dt_values_text(space, values, out);
}

/* Ranks, threads and batch are named even at their defaults, which may differ where the plan is read. */
static bool always_named(const struct dt_space *space, const struct dt_point *point, int axis)
{
    const struct dt_axis *row = &space->axes[axis];
    return row->role == DT_ROLE_RANKS || strcmp(row->name, "threads") == 0 ||
           (row->role == DT_ROLE_BATCH && dt_point_value(space, point, axis) != 1);
}

/* Names the parameters that are not at their axis' default, so that a journal, whose space has only axes, prints a plan
 * as its session did; then those that the parser would complete differently. Returns how many are named. */
static int choose_named(const struct dt_space *space, const struct dt_point *point, bool named[])
{
    int64_t own[DT_AXES_MAX], filled[DT_AXES_MAX];
    int before, count = 0;
    dt_point_values(space, point, own);
    for (int i = 0; i < space->axis_count; i++) {
        named[i] = dt_point_has(space, point, i) &&
                   (point->index[i] != space->axes[i].fallback || always_named(space, point, i));
        count += named[i];
    }
    do {
        before = count;
        memcpy(filled, own, (size_t)space->axis_count * sizeof own[0]);
        if (space->complete != NULL)
            space->complete(space->complete_context, space, named, filled);
        for (int i = 0; i < space->axis_count; i++) {
            count += !named[i] && filled[i] != own[i];
            named[i] = named[i] || filled[i] != own[i];
        }
    } while (count > before);
    return count;
}

void dt_point_short(const struct dt_space *space, const struct dt_point *point, struct dt_text *out)
{
    bool named[DT_AXES_MAX];
    const char *before = "";
    if (space->axis_count <= DT_AXES_SHOWN) {
        dt_point_text(space, point, out);
        return;
    }
    if (space->axis_count > 0 && choose_named(space, point, named) == 0)
        named[0] = true;
    for (int i = 0; i < space->axis_count; i++) {
        if (!named[i])
            continue;
        dt_text_add(out, "%s", before);
        add_value(space, i, dt_point_value(space, point, i), out);
        before = " ";
    }
}

json_t *dt_value_json(const struct dt_axis *axis, int64_t value)
{
    if (axis->labels != NULL && value >= 0 && value < axis->count)
        return json_string(axis->labels[value]);
    if (axis->truth && (value == 0 || value == 1))
        return json_boolean(value);
    return axis->digits > 0 ? json_real(dt_decimal_number(value, axis->digits))
                            : json_integer(value);
}

json_t *dt_values_json(const struct dt_space *space, const int64_t values[])
{
    json_t *plan = json_object();
    for (int i = 0; i < space->axis_count; i++) {
        if (dt_value_shown(space, i, values) &&
            json_object_set_new(plan, space->axes[i].name,
                                dt_value_json(&space->axes[i], values[i])) != 0) {
            json_decref(plan);
            return NULL;
        }
    }
    return plan;
}

json_t *dt_point_json(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX];
    dt_point_values(space, point, values);
    return dt_values_json(space, values);
}
