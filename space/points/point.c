/* SPDX-License-Identifier: MIT */
/* Points as values, text and JSON. */
#include "space/expr/decimal.h"
#include "space/json/json_int.h"
#include "space/space_int.h"

#include <stdlib.h>
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

/* Ranks, threads and batch are named even at their defaults, which may differ
 * where the plan is read. */
static bool always_named(const struct dt_space *space, const struct dt_point *point, int axis)
{
    const struct dt_axis *row = &space->axes[axis];
    return row->role == DT_ROLE_RANKS || strcmp(row->name, "threads") == 0 ||
           (row->role == DT_ROLE_BATCH && dt_point_value(space, point, axis) != 1);
}

/* Names the parameters that are not at their axis' default, so that a journal, whose space has only
 * axes, prints a plan as its session did; then those that the parser would complete differently.
 * Returns how many are named. */
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

/* Converts text and JSON to values, and values to a point. */

static dt_status unknown_parameter(const struct dt_space *space, const char *name)
{
    const char *names[DT_AXES_MAX + 1] = {NULL};
    for (int i = 0; i < space->axis_count; i++)
        names[i] = space->axes[i].name;
    const char *near = dt_json_nearest(name, names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown parameter '%.80s', did you mean '%s'?", name, near);
    dt_auto_text list = {0};
    for (int i = 0; i < space->axis_count; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    return dt_fail(DT_EUSAGE, "unknown parameter '%.80s', expected one of %s", name,
                   dt_text_at(&list));
}

static dt_status unknown_label(const struct dt_axis *axis, const char *text)
{
    dt_auto_text list = {0};
    for (int i = 0; i < axis->count && list.size < 400; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", axis->labels[i]);
    return dt_fail(DT_EUSAGE, "%s=%.80s is unknown, expected one of %s", axis->name, text,
                   dt_text_at(&list));
}

static dt_status read_number(const struct dt_axis *axis, const char *text, int64_t *value)
{
    struct dt_decimal decimal;
    size_t size = 0;
    bool fits = dt_decimal_read(text, &decimal, &size);
    bool whole = size > 0 && text[size] == '\0';
    if (!whole || (fits && decimal.digits > 0 && axis->digits == 0))
        return dt_fail(DT_EUSAGE, "%s=%.80s is not %s", axis->name, text,
                       axis->digits > 0 ? "a number" : "an integer");
    if (fits && decimal.digits > axis->digits)
        return dt_fail(DT_EUSAGE, "%s=%.80s has more digits than its values have, %d", axis->name,
                       text, axis->digits);
    if (!fits || !dt_decimal_widen(decimal, axis->digits, value))
        return dt_fail(DT_EUSAGE, "%s=%.80s is too large a number", axis->name, text);
    return DT_OK;
}

dt_status dt_axis_read_text(const struct dt_axis *axis, const char *text, int64_t *value)
{
    if (axis->labels == NULL && !axis->truth)
        return read_number(axis, text, value);
    if (axis->truth && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return dt_fail(DT_EUSAGE, "%s=%.80s is not true or false", axis->name, text);
    if (axis->truth)
        *value = text[0] == 't';
    for (int i = 0; axis->labels != NULL && i < axis->count; i++) {
        if (strcmp(axis->labels[i], text) == 0) {
            *value = i;
            return DT_OK;
        }
    }
    return axis->truth ? DT_OK : unknown_label(axis, text);
}

/* Cuts the next name=value off the text, at a blank or comma outside of quotes, and
 * takes the quotes away. */
static dt_status next_pair(char **rest, char **pair)
{
    char *from = *rest + strspn(*rest, " ,\t\r\n"), *to = from, quote = 0;
    *pair = *from != '\0' ? from : NULL;
    for (; *from != '\0' && (quote != 0 || strchr(" ,\t\r\n", *from) == NULL); from++) {
        if (*from == quote || (quote == 0 && (*from == '\'' || *from == '"')))
            quote = quote == 0 ? *from : 0;
        else
            *to++ = *from;
    }
    *rest = from + (*from != '\0');
    *to = '\0';
    return quote == 0 ? DT_OK : dt_fail(DT_EUSAGE, "the plan has a %c without its end", quote);
}

/* One "name=value". */
static dt_status read_pair(const struct dt_space *space, char *pair, bool named[], int64_t values[])
{
    char *equals = strchr(pair, '=');
    if (equals == NULL)
        return dt_fail(DT_EUSAGE, "'%.80s' is not of the form name=value", pair);
    *equals = '\0';
    int axis = dt_space_find(space, pair);
    if (axis < 0)
        return unknown_parameter(space, pair);
    if (named[axis])
        return dt_fail(DT_EUSAGE, "parameter '%s' is named twice", pair);
    named[axis] = true;
    return dt_axis_read_text(&space->axes[axis], equals + 1, &values[axis]);
}

static void fill_defaults(const struct dt_space *space, int64_t values[])
{
    for (int i = 0; i < space->axis_count; i++)
        values[i] = space->axes[i].values[space->axes[i].fallback];
}

/* A value of a parameter that does not exist in the plan would be lost; another one than the
 * default breaks a rule. */
static dt_status check_existence(const struct dt_space *space, const bool named[],
                                 const int64_t values[])
{
    for (int i = 0; i < space->axis_count; i++)
        if (named[i] && !dt_value_shown(space, i, values))
            return dt_fail(DT_EUSAGE, "%s does not exist in this plan: it exists only when %s",
                           space->axes[i].name, space->axes[i].when);
    return DT_OK;
}

dt_status dt_space_parse(const struct dt_space *space, const char *text, int64_t values[])
{
    bool named[DT_AXES_MAX] = {false};
    int64_t read[DT_AXES_MAX];
    dt_status status = DT_OK;
    char *copy = strdup(text), *rest = copy;
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a plan");
    fill_defaults(space, read);
    for (char *pair = rest; status == DT_OK && pair != NULL;) {
        status = next_pair(&rest, &pair);
        if (status == DT_OK && pair != NULL)
            status = read_pair(space, pair, named, read);
    }
    free(copy);
    DT_TRY(status);
    if (space->complete != NULL)
        space->complete(space->complete_context, space, named, read);
    DT_TRY(check_existence(space, named, read));
    memcpy(values, read, (size_t)space->axis_count * sizeof read[0]);
    return DT_OK;
}

static dt_status read_json(const struct dt_space *space, const char *name, const json_t *value,
                           int64_t *out)
{
    int axis = dt_space_find(space, name);
    if (axis < 0)
        return unknown_parameter(space, name);
    return dt_value_read(&space->axes[axis], value, out);
}

dt_status dt_value_read(const struct dt_axis *axis, const json_t *value, int64_t *out)
{
    bool fits = axis->labels != NULL ? json_is_string(value)
                : axis->truth        ? json_is_boolean(value)
                : axis->digits > 0   ? json_is_number(value)
                                     : json_is_integer(value);
    dt_auto_text text = {0};
    if (!fits)
        return dt_fail(DT_EUSAGE, "the plan's '%s' is not %s", axis->name,
                       axis->labels != NULL ? "a string"
                       : axis->truth        ? "true or false"
                       : axis->digits > 0   ? "a number"
                                            : "an integer");
    dt_json_plain(value, &text);
    DT_TRY(dt_text_status(&text));
    return dt_axis_read_text(axis, dt_text_at(&text), out);
}

dt_status dt_point_from_json(const struct dt_space *space, const json_t *plan,
                             struct dt_point *point)
{
    bool named[DT_AXES_MAX] = {false};
    int64_t values[DT_AXES_MAX], value = 0;
    const char *name;
    json_t *item;
    if (!json_is_object(plan))
        return dt_fail(DT_EUSAGE, "the plan is not a JSON object");
    fill_defaults(space, values);
    json_object_foreach((json_t *)plan, name, item)
    {
        DT_TRY(read_json(space, name, item, &value));
        values[dt_space_find(space, name)] = value;
        named[dt_space_find(space, name)] = true;
    }
    if (space->complete != NULL)
        space->complete(space->complete_context, space, named, values);
    return dt_space_locate(space, values, point);
}

static dt_status no_value(const struct dt_axis *axis, int64_t value)
{
    dt_auto_text text = {0};
    dt_axis_plain(axis, value, &text);
    return dt_fail(DT_EUSAGE, "the plan's %s=%s is none of its values", axis->name,
                   dt_text_at(&text));
}

dt_status dt_point_read(const struct dt_space *space, const json_t *plan, struct dt_point *point)
{
    struct dt_point read = {{0}};
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        const json_t *item = json_object_get(plan, axis->name);
        int64_t value = 0;
        read.index[i] = axis->fallback;
        if (item == NULL && space->when[i] != NULL && !dt_point_has(space, &read, i))
            continue;
        if (item == NULL)
            return dt_fail(DT_EUSAGE, "the plan does not name '%s'", axis->name);
        DT_TRY(read_json(space, axis->name, item, &value));
        read.index[i] = dt_axis_find(axis, value);
        if (read.index[i] < 0)
            return no_value(axis, value);
    }
    *point = read;
    return DT_OK;
}

void dt_violation_text(const json_t *violation, struct dt_text *out)
{
    const char *sentence = json_string_value(json_object_get(violation, "sentence"));
    const char *numbers = json_string_value(json_object_get(violation, "numbers"));
    dt_text_show(sentence, out);
    if (strcmp(sentence, numbers) != 0) {
        dt_text_add(out, " (");
        dt_text_show(numbers, out);
        dt_text_add(out, ")");
    }
    dt_near_text(json_object_get(violation, "nearest"), out);
}

/* A value outside its axis comes first in the list when no rule uses it, since
 * it is then the cause. */
dt_status dt_space_locate(const struct dt_space *space, const int64_t values[],
                          struct dt_point *point)
{
    struct dt_point found = {{0}};
    bool inside = true;
    for (int i = 0; i < space->axis_count; i++) {
        found.index[i] = dt_axis_find(&space->axes[i], values[i]);
        inside = inside && found.index[i] >= 0;
    }
    if (inside && dt_space_feasible(space, &found)) {
        *point = found;
        return DT_OK;
    }
    json_auto_t *rows = NULL;
    dt_auto_text text = {0};
    DT_TRY(dt_space_violations(space, values, &rows));
    dt_violation_text(json_array_get(rows, 0), &text);
    return dt_fail(DT_EINFEASIBLE, "%s", dt_text_at(&text));
}
