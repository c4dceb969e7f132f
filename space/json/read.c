/* SPDX-License-Identifier: MIT */
/* Reads a space from JSON: from a worker's hello or a user's file. */
#include "space/json/json_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* [{"name", "values", ..}, ..] or {name: values, ..}. */
static dt_status read_axes(struct dt_space *space, const json_t *root, const char *what)
{
    json_t *list = json_object_get(root, "parameters"), *item;
    const char *name;
    if (list == NULL || !(json_is_array(list) || json_is_object(list)))
        return dt_fail(DT_EUSAGE, "%s: %s", what,
                       list == NULL ? "'parameters' is missing"
                                    : "'parameters' is neither a list nor an object");
    if (json_array_size(list) + json_object_size(list) == 0)
        return dt_fail(DT_EUSAGE, "%s: 'parameters' is empty, there is nothing to tune", what);
    struct dt_reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    reading->what = what;
    dt_status status = DT_OK;
    for (size_t i = 0; status == DT_OK && i < json_array_size(list); i++)
        status = dt_axis_read(space, reading, NULL, json_array_get(list, i));
    json_object_foreach(list, name, item)
    {
        if (status == DT_OK)
            status = dt_axis_read(space, reading, name, item);
    }
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
        if (dt_json_has(row, "cases")) {
            DT_TRY(dt_cases_read(space, json_object_get(row, "cases"), what));
            continue;
        }
        bool python = dt_json_has(row, "python");
        if (python && dt_json_has(row, "if"))
            return dt_fail(DT_EUSAGE, "%s: rule %zu has 'if' and 'python': it is one of the two",
                           what, i + 1);
        if (expr == NULL && !json_is_object(row))
            return dt_fail(DT_EUSAGE, "%s: rule %zu is neither a string nor {\"if\", \"say\"}",
                           what, i + 1);
        if (expr == NULL)
            DT_TRY(dt_json_string(row, what, python ? "python" : "if", &expr));
        if (json_is_object(row) && dt_json_has(row, "say"))
            DT_TRY(dt_json_string(row, what, "say", &sentence));
        DT_TRY(python ? dt_space_add_python(space, expr, sentence)
                      : dt_space_add_rule(space, expr, sentence));
    }
    return DT_OK;
}

/* A file may state the number of its combinations and of its feasible points. A number that could not be counted is not
 * compared. */
static dt_status check_counts(const struct dt_space *space, const json_t *root, const char *what)
{
    const json_t *all = json_object_get(root, "cartesian"), *valid = json_object_get(root, "valid");
    double product = dt_space_cartesian(space);
    if (json_is_number(all) && json_number_value(all) != product)
        return dt_fail(DT_EUSAGE, "%s: 'cartesian' is %.17g, but the values make %.17g plans", what,
                       json_number_value(all), product);
    if (json_is_integer(valid) && space->count >= 0 && json_integer_value(valid) != space->count)
        return dt_fail(DT_EUSAGE, "%s: 'valid' is %lld, but the rules allow %lld plan%s", what,
                       (long long)json_integer_value(valid), (long long)space->count,
                       space->count == 1 ? "" : "s");
    return DT_OK;
}

static dt_status read_all(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_axes(space, root, what));
    DT_TRY(read_constants(space, root, what));
    return read_rules(space, root, what);
}

static dt_status fill(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_all(space, root, what));
    DT_TRY(dt_space_seal(space));
    return check_counts(space, root, what);
}

static dt_status fill_rules(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_all(space, root, what));
    return dt_space_compile(space);
}

/* Sentences of add_axis and the rules' compiler name the error but not the file; `what` is put before them. */
static dt_status add_source(dt_status status, const char *what)
{
    if (strncmp(dt_message(), what, strlen(what)) == 0)
        return status;
    return dt_fail(status, "%s: %s", what, dt_message());
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

dt_status dt_space_rules_from_json(const json_t *root, const char *what, struct dt_space **space)
{
    return read_space(root, what, fill_rules, space);
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
    if (axis->when != NULL)
        json_object_set_new(object, "when", json_string(axis->when));
    return object;
}

json_t *dt_space_axes_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int i = 0; i < space->axis_count; i++)
        json_array_append_new(list, axis_json(&space->axes[i]));
    return list;
}
