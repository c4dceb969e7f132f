/* SPDX-License-Identifier: MIT */
/* Narrows a foreign worker's parameters to the values that a file of the user names. */
#include "tuner/measure/foreign/narrow.h"

#include "space/json/json.h"

#include <string.h>

static const char what[] = "the space file";

/* DT_EUSAGE with `why` and the value behind it. */
static dt_status refuse(const char *name, const json_t *value, const char *why, const json_t *has)
{
    struct dt_text given = {0}, known = {0};
    dt_status status = dt_json_text(value, &given);
    if (status == DT_OK)
        status = dt_json_text(has, &known);
    if (status == DT_OK)
        status = dt_fail(DT_EUSAGE, "%s: '%s' %s %s; the worker has %s", what, name, why,
                         dt_text_at(&given), dt_text_at(&known));
    dt_text_fini(&given);
    dt_text_fini(&known);
    return status;
}

/* Keeps the worker's order of the values, and its default: plans are compared with that. Its rules may name the other texts. */
static dt_status narrow_one(json_t *parameter, const char *name, const json_t *wanted)
{
    json_t *all = NULL, *kept = json_array(), *fallback = json_object_get(parameter, "default");
    const json_t *value;
    size_t i;
    dt_status status = dt_json_array(parameter, "the worker's hello", "values", &all);
    json_array_foreach(wanted, i, value)
    {
        if (status == DT_OK && !dt_json_contains(all, value))
            status = refuse(name, value, "has no value", all);
    }
    json_array_foreach(all, i, value)
    {
        if (status == DT_OK && dt_json_contains(wanted, value) &&
            json_array_append(kept, (json_t *)value) != 0)
            status = dt_fail(DT_ENOMEM, "out of memory");
    }
    if (fallback == NULL)
        fallback = json_array_get(all, 0);
    if (status == DT_OK && !dt_json_contains(kept, fallback))
        status = refuse(name, fallback,
                        "must keep the worker's default, which plans are compared "
                        "with:",
                        all);
    bool words = json_is_string(json_array_get(all, 0)) && !dt_json_has(parameter, "words");
    if (status == DT_OK && ((words && json_object_set(parameter, "words", all) != 0) ||
                            json_object_set(parameter, "values", kept) != 0))
        status = dt_fail(DT_ENOMEM, "out of memory");
    json_decref(kept);
    return status;
}

static dt_status narrow_all(const json_t *file, json_t *announced)
{
    static const char *const members[] = {"parameters", NULL};
    static const char *const fields[] = {"name", "values", NULL};
    json_t *wanted, *parameter, *values;
    size_t i;
    DT_TRY(dt_json_only(file, what, members));
    DT_TRY(dt_json_array(file, what, "parameters", &wanted));
    json_array_foreach(wanted, i, parameter)
    {
        const char *name;
        DT_TRY(dt_json_only(parameter, what, fields));
        DT_TRY(dt_json_string(parameter, what, "name", &name));
        DT_TRY(dt_json_array(parameter, what, "values", &values));
        json_t *own = dt_json_named(json_object_get(announced, "parameters"), name);
        if (own == NULL)
            return dt_fail(DT_EUSAGE, "%s: the worker has no parameter '%s'", what, name);
        DT_TRY(narrow_one(own, name, values));
    }
    return DT_OK;
}

/* A copy with parameters of its own; NULL when memory runs out. */
static json_t *separate(const json_t *announced)
{
    json_t *copy = dt_json_copy(announced), *own = json_array(), *parameter;
    size_t i;
    bool failed = copy == NULL || own == NULL;
    json_array_foreach(json_object_get(announced, "parameters"), i, parameter) failed |=
        json_array_append_new(own, dt_json_copy(parameter)) != 0;
    failed |= json_object_set_new(copy, "parameters", own) != 0;
    if (failed)
        json_decref(copy);
    return failed ? NULL : copy;
}

/* {"parameters": [{"name", "values"}, ..]} of a whole space, new; NULL: it cannot be read. */
static json_t *values_of(const json_t *stored)
{
    struct dt_space *space = NULL;
    json_t *names = json_array(), *axes, *axis;
    size_t i;
    if (dt_space_axes_from_json(stored, "the entry's space", &space) != DT_OK) {
        json_decref(names);
        return NULL;
    }
    axes = dt_space_axes_json(space);
    json_array_foreach(axes, i, axis)
    {
        json_array_append_new(names, json_pack("{s:O, s:O}", "name", json_object_get(axis, "name"),
                                               "values", json_object_get(axis, "values")));
    }
    json_decref(axes);
    dt_space_free(space);
    return json_pack("{s:o}", "parameters", names);
}

dt_status dt_target_narrow_as(const json_t *stored, const json_t *announced, json_t **narrowed)
{
    json_t *file = values_of(stored), *copy = file != NULL ? separate(announced) : NULL;
    dt_status status = copy != NULL ? narrow_all(file, copy) : DT_EUSAGE;
    json_decref(file);
    *narrowed = status == DT_OK ? copy : NULL;
    if (status != DT_OK)
        json_decref(copy);
    return status == DT_ENOMEM ? status : DT_OK;
}

dt_status dt_target_narrow(const char *path, const json_t *announced, json_t **narrowed)
{
    json_t *file = NULL, *copy = separate(announced);
    dt_status status =
        copy == NULL ? dt_fail(DT_ENOMEM, "out of memory") : dt_json_read(path, what, &file);
    if (status == DT_OK) {
        status = narrow_all(file, copy);
        if (status == DT_EUSAGE)
            status = dt_fail(DT_EUSAGE, "%s: %s", path, dt_message());
    }
    json_decref(file);
    if (status == DT_OK)
        *narrowed = copy;
    else
        json_decref(copy);
    return status;
}
