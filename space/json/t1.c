/* SPDX-License-Identifier: MIT */
#include "space/json/file_int.h"

#include <stdio.h>
#include <string.h>

/* Other fields may be of other tools; one that is nearly ours is misspelt. */
static dt_status check_fields(const json_t *object, const char *what, const char *const known[])
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const char *near = dt_json_nearest(name, known);
        if (near != NULL && strcmp(near, name) != 0)
            return dt_fail(DT_EUSAGE, "%s: unknown field '%.80s', did you mean '%s'?", what, name,
                           near);
    }
    return DT_OK;
}

/* A default that is none of the values is not one: Kernel Tuner does not read it. */
static dt_status read_parameter(const json_t *row, const char *what, json_t *parameters)
{
    static const char *const known[] = {"Name", "Type", "Values", "Default", NULL};
    const char *name;
    char where[600];
    DT_TRY(check_fields(row, what, known));
    json_t *values = json_object_get(row, "Values"), *fallback = json_object_get(row, "Default");
    DT_TRY(dt_json_string(row, what, "Name", &name));
    snprintf(where, sizeof where, "%s: parameter '%.80s'", what, name);
    if (json_is_string(values))
        DT_TRY(dt_t1_list(json_string_value(values), where, &values));
    else if (json_is_array(values))
        json_incref(values);
    else
        return dt_fail(DT_EUSAGE, "%s: 'Values' is neither a list nor the text of one", where);
    json_t *parameter = json_pack("{s:s, s:o}", "name", name, "values", values);
    if (parameter == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    if (dt_json_contains(values, fallback))
        json_object_set(parameter, "default", fallback);
    return json_array_append_new(parameters, parameter) == 0
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
}

static dt_status read_condition(const json_t *row, const char *what, json_t *rules)
{
    static const char *const known[] = {"Parameters", "Expression", NULL};
    const char *text = json_string_value(row);
    DT_TRY(check_fields(row, what, known));
    if (text == NULL)
        DT_TRY(dt_json_string(row, what, "Expression", &text));
    return json_array_append_new(rules, json_pack("{s:s}", "python", text)) == 0
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
}

dt_status dt_t1_read(const json_t *file, const char *what, json_t **root)
{
    static const char *const known[] = {"TuningParameters", "Conditions", NULL};
    json_t *space, *list, *row, *conditions, *parameters = json_array(), *rules = json_array();
    size_t i;
    dt_status status = dt_json_object(file, what, "ConfigurationSpace", &space);
    if (status == DT_OK)
        status = check_fields(space, what, known);
    if (status == DT_OK)
        status = dt_json_array(space, what, "TuningParameters", &list);
    if (status == DT_OK)
        json_array_foreach(list, i, row)
        {
            if (status == DT_OK)
                status = read_parameter(row, what, parameters);
        }
    conditions = status == DT_OK ? json_object_get(space, "Conditions") : NULL;
    if (conditions != NULL && !json_is_array(conditions) && !json_is_null(conditions))
        status = dt_fail(DT_EUSAGE, "%s: 'Conditions' is not a list", what);
    json_array_foreach(conditions, i, row)
    {
        if (status == DT_OK)
            status = read_condition(row, what, rules);
    }
    json_t *made = json_pack("{s:o, s:o}", "parameters", parameters, "rules", rules);
    if (status == DT_OK && made == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    if (status != DT_OK) {
        json_decref(made);
        return status;
    }
    *root = made;
    return DT_OK;
}
