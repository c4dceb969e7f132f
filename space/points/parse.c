/* SPDX-License-Identifier: MIT */
/* Converts text and JSON to values, and values to a point. */
#include "space/space_int.h"

#include "space/json/json_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static dt_status unknown_parameter(const struct dt_space *space, const char *name)
{
    const char *names[DT_AXES_MAX + 1] = {NULL};
    for (int i = 0; i < space->axis_count; i++)
        names[i] = space->axes[i].name;
    const char *near = dt_json_nearest(name, names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown parameter '%.80s', did you mean '%s'?", name, near);
    struct dt_text list = {0};
    for (int i = 0; i < space->axis_count; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    dt_status status = dt_fail(DT_EUSAGE, "unknown parameter '%.80s', expected one of %s", name,
                               dt_text_at(&list));
    dt_text_fini(&list);
    return status;
}

static dt_status unknown_label(const struct dt_axis *axis, const char *text)
{
    struct dt_text list = {0};
    for (int i = 0; i < axis->count && list.size < 400; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", axis->labels[i]);
    dt_status status = dt_fail(DT_EUSAGE, "%s=%.80s is unknown, expected one of %s", axis->name,
                               text, dt_text_at(&list));
    dt_text_fini(&list);
    return status;
}

static dt_status read_value(const struct dt_axis *axis, const char *text, int64_t *value)
{
    if (axis->labels != NULL) {
        for (int i = 0; i < axis->count; i++) {
            if (strcmp(axis->labels[i], text) == 0) {
                *value = i;
                return DT_OK;
            }
        }
        return unknown_label(axis, text);
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (text[0] == '\0' || *end != '\0')
        return dt_fail(DT_EUSAGE, "%s=%.80s is not an integer", axis->name, text);
    if (errno == ERANGE)
        return dt_fail(DT_EUSAGE, "%s=%.80s is too large a number", axis->name, text);
    *value = number;
    return DT_OK;
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
    return read_value(&space->axes[axis], equals + 1, &values[axis]);
}

static void fill_defaults(const struct dt_space *space, int64_t values[])
{
    for (int i = 0; i < space->axis_count; i++)
        values[i] = space->axes[i].values[space->axes[i].fallback];
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
    for (char *pair; status == DT_OK && (pair = strsep(&rest, " ,\t\r\n")) != NULL;)
        if (pair[0] != '\0')
            status = read_pair(space, pair, named, read);
    free(copy);
    DT_TRY(status);
    if (space->complete != NULL)
        space->complete(space->complete_context, space, named, read);
    memcpy(values, read, (size_t)space->axis_count * sizeof read[0]);
    return DT_OK;
}

static dt_status read_json(const struct dt_space *space, const char *name, const json_t *value,
                           int64_t *out)
{
    int axis = dt_space_find(space, name);
    if (axis < 0)
        return unknown_parameter(space, name);
    if (space->axes[axis].labels != NULL && json_is_string(value))
        return read_value(&space->axes[axis], json_string_value(value), out);
    if (space->axes[axis].labels != NULL || !json_is_integer(value))
        return dt_fail(DT_EUSAGE, "the plan's '%s' is not %s", name,
                       space->axes[axis].labels != NULL ? "a string" : "an integer");
    *out = json_integer_value(value);
    return DT_OK;
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

dt_status dt_point_read(const struct dt_space *space, const json_t *plan, struct dt_point *point)
{
    struct dt_point read = {{0}};
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        const json_t *item = json_object_get(plan, axis->name);
        int64_t value = 0;
        if (item == NULL)
            return dt_fail(DT_EUSAGE, "the plan does not name '%s'", axis->name);
        DT_TRY(read_json(space, axis->name, item, &value));
        read.index[i] = dt_axis_find(axis, value);
        if (read.index[i] < 0)
            return dt_fail(DT_EUSAGE, "the plan's %s=%lld is none of its values", axis->name,
                           (long long)value);
    }
    *point = read;
    return DT_OK;
}

/* "; nearest feasible: ulysses=3, 6 or ring=2" out of a violation's {"ulysses": [3, 6], ...}. */
static void add_nearest(const json_t *nearest, struct dt_text *out)
{
    const char *axis, *before = "; nearest feasible: ";
    json_t *values;
    json_object_foreach((json_t *)nearest, axis, values)
    {
        dt_text_add(out, "%s%s=", before, axis);
        before = " or ";
        for (size_t i = 0; i < json_array_size(values); i++) {
            const json_t *value = json_array_get(values, i);
            const char *comma = i > 0 ? ", " : "";
            if (json_is_string(value))
                dt_text_add(out, "%s%s", comma, json_string_value(value));
            else
                dt_text_add(out, "%s%lld", comma, (long long)json_integer_value(value));
        }
    }
}

void dt_violation_text(const json_t *violation, struct dt_text *out)
{
    const char *sentence = json_string_value(json_object_get(violation, "sentence"));
    const char *numbers = json_string_value(json_object_get(violation, "numbers"));
    dt_text_add(out, "%s", sentence);
    if (strcmp(sentence, numbers) != 0)
        dt_text_add(out, " (%s)", numbers);
    add_nearest(json_object_get(violation, "nearest"), out);
}

/* A value outside its axis comes first in the list when no rule uses it, since it is then the cause. */
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
    json_t *rows = NULL;
    struct dt_text text = {0};
    DT_TRY(dt_space_violations(space, values, &rows));
    dt_violation_text(json_array_get(rows, 0), &text);
    dt_status status = dt_fail(DT_EINFEASIBLE, "%s", dt_text_at(&text));
    json_decref(rows);
    dt_text_fini(&text);
    return status;
}
