/* SPDX-License-Identifier: MIT */
/* Converts text and JSON to values, and values to a point. */
#include "space/space_int.h"

#include "space/expr/decimal.h"
#include "space/json/json_int.h"

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

/* Cuts the next name=value off the text, at a blank or comma outside of quotes, and takes the quotes away. */
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

/* A value of a parameter that does not exist in the plan would be lost; another one than the default breaks a rule. */
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
    struct dt_text text = {0};
    if (!fits)
        return dt_fail(DT_EUSAGE, "the plan's '%s' is not %s", axis->name,
                       axis->labels != NULL ? "a string"
                       : axis->truth        ? "true or false"
                       : axis->digits > 0   ? "a number"
                                            : "an integer");
    dt_json_plain(value, &text);
    dt_status status = dt_text_status(&text);
    if (status == DT_OK)
        status = dt_axis_read_text(axis, dt_text_at(&text), out);
    dt_text_fini(&text);
    return status;
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
    struct dt_text text = {0};
    dt_axis_plain(axis, value, &text);
    dt_status status =
        dt_fail(DT_EUSAGE, "the plan's %s=%s is none of its values", axis->name, dt_text_at(&text));
    dt_text_fini(&text);
    return status;
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
            dt_text_add(out, "%s", comma);
            dt_json_plain(value, out);
        }
    }
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
