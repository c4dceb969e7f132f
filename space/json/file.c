/* SPDX-License-Identifier: MIT */
/* Reads a user's file into the form that a worker announces. Here each unknown field is an error, as a rule under another
 * name would be no rule. */
#include "space/json/file_int.h"

#include <stdio.h>
#include <string.h>

/* What other tools call these fields. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    {"restrictions", "rules"},
    {"conditions", "rules"},
    {"constraints", "rules"},
    {"rule", "rules"},
    {"tune_params", "parameters"},
    {"params", "parameters"},
    {"choices", "values"},
    {"options", "values"},
    {"range", "values"},
    {"expression", "if"},
    {"expr", "if"},
    {"rule", "if"},
    {"message", "say"},
    {"sentence", "say"},
    {"initial", "default"},
    {"condition", "when"},
    {"if", "when"},
    {"variables", "constants"},
    {"configurations", "cases"},
    {"combinations", "cases"},
};

static bool is_known(const char *const known[], const char *name)
{
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

dt_status dt_fields_check(const json_t *object, const char *what, const char *const known[])
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        for (size_t i = 0; !is_known(known, name) && i < sizeof synonyms / sizeof synonyms[0]; i++)
            if (strcasecmp(synonyms[i].theirs, name) == 0 && is_known(known, synonyms[i].ours))
                return dt_fail(DT_EUSAGE, "%s: unknown field '%s', did you mean '%s'?", what, name,
                               synonyms[i].ours);
    }
    return dt_json_only(object, what, known);
}

/* A range has fields of its own (axis.c). */
static dt_status check_parameter(const json_t *object, const char *name, const char *what)
{
    static const char *const known[] = {"name",     "values", "default", "role",
                                        "variable", "doc",    "when",    NULL};
    char where[600];
    if (!json_is_object(object) || dt_json_has(object, "from") || dt_json_has(object, "to"))
        return DT_OK;
    if (name == NULL)
        name = json_string_value(json_object_get(object, "name"));
    snprintf(where, sizeof where, "%s: parameter '%.80s'", what, name != NULL ? name : "");
    return dt_fields_check(object, where, known);
}

static dt_status check_rule(const json_t *rule, size_t i, const char *what)
{
    static const char *const known[] = {"if", "python", "say", NULL};
    char where[600];
    snprintf(where, sizeof where, "%s: rule %zu", what, i + 1);
    return json_is_object(rule) ? dt_fields_check(rule, where, known) : DT_OK;
}

static dt_status check_fields(const json_t *root, const char *what)
{
    static const char *const known[] = {"parameters", "cases",   "rules", "constants",
                                        "name",       "source",  "doc",   "cartesian",
                                        "valid",      "default", NULL};
    const json_t *parameters = json_object_get(root, "parameters");
    const char *name;
    json_t *item;
    size_t i;
    DT_TRY(dt_fields_check(root, what, known));
    if (dt_json_has(root, "default") && !dt_json_has(root, "cases"))
        return dt_fail(DT_EUSAGE,
                       "%s: 'default' is one of the cases, and there are no 'cases'; a "
                       "parameter has a 'default' of its own",
                       what);
    json_object_foreach((json_t *)parameters, name, item) DT_TRY(check_parameter(item, name, what));
    json_array_foreach(parameters, i, item) DT_TRY(check_parameter(item, NULL, what));
    json_array_foreach(json_object_get(root, "rules"), i, item) DT_TRY(check_rule(item, i, what));
    return DT_OK;
}

dt_status dt_space_file(const char *path, const char *what, json_t **root)
{
    json_t *file = NULL, *made = NULL;
    DT_TRY(dt_json_read(path, "the space", &file));
    dt_status status = DT_OK;
    if (!json_is_object(file))
        status = dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    else if (dt_json_has(file, "ConfigurationSpace"))
        status = dt_t1_read(file, what, &made);
    else if ((status = check_fields(file, what)) == DT_OK && dt_json_has(file, "cases"))
        status = dt_cases_expand(file, what, &made);
    else if (status == DT_OK)
        made = json_incref(file);
    json_decref(file);
    if (status == DT_OK)
        *root = made;
    return status;
}

dt_status dt_space_read(const char *path, struct dt_space **space)
{
    json_t *root = NULL;
    char what[512];
    snprintf(what, sizeof what, "the space %.480s", path);
    DT_TRY(dt_space_file(path, what, &root));
    dt_status status = dt_space_from_json(root, what, space);
    json_decref(root);
    return status;
}
