/* SPDX-License-Identifier: MIT */
/* A space as JSON: what a worker announces in its hello, or a user writes in a file. */
#include "space/space_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    const char *what;
    struct dt_axis axis;
    int64_t values[DT_VALUES_MAX];
    const char *labels[DT_VALUES_MAX];
};

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static dt_status read_numbers(struct reading *reading, const json_t *list)
{
    struct dt_axis *axis = &reading->axis;
    for (int i = 0; i < axis->count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!json_is_integer(value))
            return dt_fail(DT_EUSAGE,
                           "%s: parameter '%s': value %d is not an integer as the first one is",
                           reading->what, axis->name, i + 1);
        reading->values[i] = json_integer_value(value);
    }
    axis->values = reading->values;
    qsort(reading->values, (size_t)axis->count, sizeof reading->values[0], ascending);
    for (int i = 1; i < axis->count; i++)
        if (reading->values[i] == reading->values[i - 1])
            return dt_fail(DT_EUSAGE, "%s: parameter '%s': the value %lld is given twice",
                           reading->what, axis->name, (long long)reading->values[i]);
    return DT_OK;
}

static dt_status read_labels(struct reading *reading, const json_t *list)
{
    struct dt_axis *axis = &reading->axis;
    for (int i = 0; i < axis->count; i++) {
        reading->labels[i] = json_string_value(json_array_get(list, (size_t)i));
        if (reading->labels[i] == NULL)
            return dt_fail(DT_EUSAGE,
                           "%s: parameter '%s': value %d is not a string as the first one is",
                           reading->what, axis->name, i + 1);
    }
    axis->labels = reading->labels;
    return DT_OK;
}

static dt_status read_values(struct reading *reading, const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    json_t *list;
    DT_TRY(dt_json_array(object, reading->what, "values", &list));
    size_t n = json_array_size(list);
    if (n < 1 || n > DT_VALUES_MAX)
        return dt_fail(DT_EUSAGE, "%s: parameter '%s' has %zu values, expected 1 to %d",
                       reading->what, axis->name, n, DT_VALUES_MAX);
    axis->count = (int)n;
    if (json_is_integer(json_array_get(list, 0)))
        return read_numbers(reading, list);
    if (json_is_string(json_array_get(list, 0)))
        return read_labels(reading, list);
    return dt_fail(DT_EUSAGE, "%s: parameter '%s': values are integers or strings", reading->what,
                   axis->name);
}

/* Without "default" it is the first value of the list. */
static dt_status read_default(struct reading *reading, const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    const json_t *value = json_object_get(object, "default");
    if (value == NULL)
        value = json_array_get(json_object_get(object, "values"), 0);
    axis->fallback = -1;
    if (axis->labels == NULL && json_is_integer(value))
        axis->fallback = dt_axis_find(axis, json_integer_value(value));
    for (int i = 0; axis->labels != NULL && json_is_string(value) && i < axis->count; i++)
        if (strcmp(axis->labels[i], json_string_value(value)) == 0)
            axis->fallback = i;
    if (axis->fallback < 0)
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': its 'default' is none of its values",
                       reading->what, axis->name);
    return DT_OK;
}

static dt_status read_role(struct reading *reading, const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    const char *role;
    axis->role = DT_ROLE_PLAIN;
    if (dt_json_has(object, "role")) {
        DT_TRY(dt_json_string(object, reading->what, "role", &role));
        DT_TRY(dt_role_parse(role, &axis->role));
    }
    axis->variable = NULL;
    if (axis->role != DT_ROLE_ENVIRONMENT)
        return DT_OK;
    DT_TRY(dt_json_string(object, reading->what, "variable", &axis->variable));
    if (axis->variable[0] == '\0' || strpbrk(axis->variable, "= \t\r\n") != NULL)
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': '%.80s' cannot name a variable",
                       reading->what, axis->name, axis->variable);
    return DT_OK;
}

static dt_status read_axis(struct dt_space *space, struct reading *reading, const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    *axis = (struct dt_axis){0};
    if (!json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s: parameter %d is not {\"name\", \"values\"}", reading->what,
                       space->axis_count + 1);
    DT_TRY(dt_json_string(object, reading->what, "name", &axis->name));
    DT_TRY(read_values(reading, object));
    DT_TRY(read_default(reading, object));
    DT_TRY(read_role(reading, object));
    bool counted = axis->role == DT_ROLE_RANKS || axis->role == DT_ROLE_BATCH;
    if (counted && (axis->labels != NULL || axis->values[0] < 1))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%s' of role %s needs integers of at least 1 for values",
                       reading->what, axis->name, dt_role_text(axis->role));
    if (dt_json_has(object, "doc"))
        DT_TRY(dt_json_string(object, reading->what, "doc", &axis->doc));
    return dt_space_add_axis(space, axis);
}

static dt_status read_axes(struct dt_space *space, const json_t *root, const char *what)
{
    json_t *list;
    DT_TRY(dt_json_array(root, what, "parameters", &list));
    if (json_array_size(list) == 0)
        return dt_fail(DT_EUSAGE, "%s: 'parameters' is empty, there is nothing to tune", what);
    struct reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    reading->what = what;
    dt_status status = DT_OK;
    for (size_t i = 0; status == DT_OK && i < json_array_size(list); i++)
        status = read_axis(space, reading, json_array_get(list, i));
    free(reading);
    return status;
}

static dt_status read_constants(struct dt_space *space, const json_t *root, const char *what)
{
    json_t *object, *value;
    const char *name;
    if (!dt_json_has(root, "constants"))
        return DT_OK;
    DT_TRY(dt_json_object(root, what, "constants", &object));
    json_object_foreach(object, name, value)
    {
        if (!json_is_integer(value))
            return dt_fail(DT_EUSAGE, "%s: the constant '%.80s' is not an integer", what, name);
        DT_TRY(dt_space_add_constant(space, name, json_integer_value(value)));
    }
    return DT_OK;
}

static dt_status read_rules(struct dt_space *space, const json_t *root, const char *what)
{
    json_t *list;
    if (!dt_json_has(root, "rules"))
        return DT_OK;
    DT_TRY(dt_json_array(root, what, "rules", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const char *expr = json_string_value(row), *sentence = NULL;
        if (expr == NULL && !json_is_object(row))
            return dt_fail(DT_EUSAGE, "%s: rule %zu is neither a string nor {\"if\", \"say\"}",
                           what, i + 1);
        if (expr == NULL)
            DT_TRY(dt_json_string(row, what, "if", &expr));
        if (json_is_object(row) && dt_json_has(row, "say"))
            DT_TRY(dt_json_string(row, what, "say", &sentence));
        DT_TRY(dt_space_add_rule(space, expr, sentence));
    }
    return DT_OK;
}

static dt_status fill(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_axes(space, root, what));
    DT_TRY(read_constants(space, root, what));
    DT_TRY(read_rules(space, root, what));
    return dt_space_seal(space);
}

/* Sentences of add_axis and the rules' compiler name the offender but not the file; `what` is put before them. */
static dt_status add_source(dt_status status, const char *what)
{
    char sentence[1024];
    if (strncmp(dt_message(), what, strlen(what)) == 0)
        return status;
    snprintf(sentence, sizeof sentence, "%s", dt_message());
    return dt_fail(status, "%s: %s", what, sentence);
}

static dt_status read_space(const json_t *root, const char *what,
                            dt_status (*read)(struct dt_space *space, const json_t *root,
                                              const char *what),
                            struct dt_space **space)
{
    struct dt_space *made = NULL;
    DT_TRY(dt_space_new(&made));
    dt_status status = read(made, root, what);
    if (status != DT_OK) {
        dt_space_free(made);
        return add_source(status, what);
    }
    *space = made;
    return DT_OK;
}

dt_status dt_space_from_json(const json_t *root, const char *what, struct dt_space **space)
{
    return read_space(root, what, fill, space);
}

dt_status dt_space_axes_from_json(const json_t *root, const char *what, struct dt_space **space)
{
    return read_space(root, what, read_axes, space);
}

static json_t *axis_json(const struct dt_axis *axis)
{
    json_t *values = json_array();
    for (int i = 0; i < axis->count; i++)
        json_array_append_new(values, dt_value_json(axis, axis->values[i]));
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o}", "name", axis->name, "role", dt_role_text(axis->role),
                  "values", values, "default", dt_value_json(axis, axis->values[axis->fallback]));
    if (axis->variable != NULL)
        json_object_set_new(object, "variable", json_string(axis->variable));
    return object;
}

json_t *dt_space_axes_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int i = 0; i < space->axis_count; i++)
        json_array_append_new(list, axis_json(&space->axes[i]));
    return list;
}
