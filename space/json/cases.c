/* SPDX-License-Identifier: MIT */
/* A list of cases in place of a product: in a file it stands for parameters with the values that the cases have and a rule, which
 * is what a worker announces. */
#include "space/json/file_int.h"
#include "space/json/json_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status no_memory(const char *what)
{
    return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
}

/* Each case has the parameters of the first. */
static dt_status check_cases(const json_t *cases, const char *what)
{
    const char *names[DT_AXES_MAX + 1] = {NULL}, *name;
    char where[600];
    int n = 0;
    json_t *value, *one;
    size_t i;
    if (!json_is_array(cases) || !json_is_object(json_array_get(cases, 0)) ||
        json_object_size(json_array_get(cases, 0)) == 0)
        return dt_fail(DT_EUSAGE, "%s: 'cases' is %s, expected [{\"a\": 1, \"b\": 2}, ...]", what,
                       json_is_array(cases) && json_array_size(cases) == 0 ? "empty"
                                                                           : "no list of objects");
    if (json_object_size(json_array_get(cases, 0)) > DT_AXES_MAX)
        return dt_fail(DT_EUSAGE, "%s: case 1 has more than %d parameters", what, DT_AXES_MAX);
    json_object_foreach(json_array_get(cases, 0), name, value) names[n++] = name;
    json_array_foreach(cases, i, one)
    {
        snprintf(where, sizeof where, "%s: case %zu", what, i + 1);
        if (!json_is_object(one))
            return dt_fail(DT_EUSAGE, "%s is no object such as {\"a\": 1, \"b\": 2}", where);
        for (int k = 0; k < n; k++)
            if (json_object_get(one, names[k]) == NULL)
                return dt_fail(DT_EUSAGE,
                               "%s has no '%s', which case 1 has: each case has each parameter",
                               where, names[k]);
        json_object_foreach(one, name, value)
        {
            if (json_object_get(json_array_get(cases, 0), name) == NULL)
                return dt_fail(DT_EUSAGE,
                               "%s has '%.80s', which case 1 has not: each case has each parameter",
                               where, name);
        }
    }
    return DT_OK;
}

dt_status dt_cases_read(struct dt_space *space, const json_t *cases, const char *what)
{
    struct dt_cases table = {0};
    const char *names[DT_AXES_MAX];
    json_t *one;
    size_t row;
    DT_TRY(check_cases(cases, what));
    const json_t *first = json_array_get(cases, 0);
    for (int i = 0; i < dt_space_axes(space); i++) {
        names[table.width] = dt_space_axis(space, i)->name;
        table.axes[table.width] = i;
        table.width += json_object_get(first, names[table.width]) != NULL;
    }
    if (table.width < (int)json_object_size(first))
        return dt_fail(DT_EUSAGE, "%s: the cases name something that is no parameter", what);
    table.rows = calloc(json_array_size(cases), sizeof *table.rows);
    if (table.rows == NULL)
        return no_memory(what);
    json_array_foreach(cases, row, one)
    {
        struct dt_point *point = &table.rows[table.count++];
        bool all = true;
        for (int i = 0; i < table.width; i++) {
            point->index[i] =
                dt_axis_index(dt_space_axis(space, table.axes[i]), json_object_get(one, names[i]));
            all = all && point->index[i] >= 0;
        }
        table.count -= !all;
    }
    dt_status status = dt_space_add_cases(space, &table);
    free(table.rows);
    return status;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* The distinct values of a parameter in the cases, new: texts in the order of their bytes, so that the order of the cases does not
 * matter; NULL when memory runs out. */
static json_t *values_of(const json_t *cases, const char *name)
{
    json_t *seen = json_object(), *values = json_array(), *one;
    json_t **found = calloc(json_array_size(cases), sizeof(json_t *));
    size_t i, n = 0;
    bool texts = true, failed = seen == NULL || values == NULL || found == NULL;
    json_array_foreach(cases, i, one)
    {
        json_t *value = json_object_get(one, name);
        struct dt_decimal decimal;
        struct dt_text key = {0};
        if (failed)
            break;
        texts = texts && json_is_string(value);
        if (dt_decimal_json(value, &decimal)) /* 1 and 1.0 are one */
            dt_text_add(&key, "%lld %d", (long long)decimal.value, decimal.digits);
        else
            failed = dt_json_text(value, &key) != DT_OK;
        if (json_object_get(seen, dt_text_at(&key)) == NULL)
            found[n++] = value;
        failed = failed || json_object_set_new(seen, dt_text_at(&key), json_true()) != 0;
        dt_text_fini(&key);
    }
    if (!failed && texts)
        qsort(found, n, sizeof(json_t *), by_text);
    for (i = 0; !failed && i < n; i++)
        failed = json_array_append(values, found[i]) != 0;
    json_decref(seen);
    free(found);
    if (failed)
        json_decref(values);
    return failed ? NULL : values;
}

/* A parameter of the file's, as an object with a name: of a list, or of an object of names; new. */
static json_t *named(const char *name, json_t *item)
{
    bool whole = json_is_object(item) && !dt_json_has(item, "from");
    json_t *made = whole ? dt_json_copy(item) : json_pack("{s:O}", "values", item);
    if (name != NULL && made != NULL)
        json_object_set_new(made, "name", json_string(name));
    return made;
}

/* The file's parameters as a list. */
static json_t *list_of(const json_t *parameters)
{
    json_t *list = json_array(), *item;
    const char *name;
    size_t i;
    json_array_foreach(parameters, i, item) json_array_append_new(list, named(NULL, item));
    json_object_foreach((json_t *)parameters, name, item)
        json_array_append_new(list, named(name, item));
    return list;
}

/* Takes the parameter of that name off the list; NULL: there is none. */
static json_t *take(json_t *list, const char *name)
{
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (strcmp(dt_json_text_at(item, "name"), name) == 0) {
            json_incref(item);
            json_array_remove(list, i);
            return item;
        }
    }
    return NULL;
}

/* A parameter of the cases: of the file's own fields role, variable and doc are kept. */
static dt_status add_parameter(const json_t *cases, const char *name, json_t *fallback,
                               json_t *others, const char *what, json_t *list)
{
    static const char *const refused[] = {"values", "default", "when"};
    json_t *own = take(others, name), *values = values_of(cases, name);
    json_t *made = own != NULL ? own : json_pack("{s:s}", "name", name);
    dt_status status = DT_OK;
    for (size_t i = 0; i < 3 && status == DT_OK; i++)
        if (dt_json_has(made, refused[i]))
            status = dt_fail(DT_EUSAGE,
                             "%s: parameter '%s' is in the cases, so it has no '%s' of its own, "
                             "only 'role', 'variable' and 'doc'",
                             what, name, refused[i]);
    if (status == DT_OK &&
        (values == NULL || json_object_set(made, "values", values) != 0 ||
         json_object_set(made, "default", fallback) != 0 || json_array_append(list, made) != 0))
        status = no_memory(what);
    json_decref(values);
    json_decref(made);
    return status;
}

dt_status dt_cases_expand(const json_t *file, const char *what, json_t **root)
{
    json_t *cases = json_object_get(file, "cases"), *theirs = json_object_get(file, "rules");
    json_t *fallback = json_object_get(file, "default"), *value;
    const char *name;
    DT_TRY(check_cases(cases, what));
    if (dt_json_has(file, "rules"))
        DT_TRY(dt_json_array(file, what, "rules", &theirs));
    if (fallback != NULL && !dt_json_contains(cases, fallback))
        return dt_fail(DT_EUSAGE, "%s: 'default' is none of the cases", what);
    if (fallback == NULL)
        fallback = json_array_get(cases, 0);
    json_t *list = json_array(), *others = list_of(json_object_get(file, "parameters"));
    json_t *rules = json_pack("[{s:O}]", "cases", cases), *made = dt_json_copy(file);
    dt_status status =
        list != NULL && others != NULL && rules != NULL && made != NULL ? DT_OK : no_memory(what);
    json_object_foreach(json_array_get(cases, 0), name, value)
    {
        if (status == DT_OK)
            status =
                add_parameter(cases, name, json_object_get(fallback, name), others, what, list);
    }
    if (status == DT_OK && (json_array_extend(list, others) != 0 ||
                            (theirs != NULL && json_array_extend(rules, theirs) != 0) ||
                            json_object_set(made, "parameters", list) != 0 ||
                            json_object_set(made, "rules", rules) != 0))
        status = no_memory(what);
    if (status == DT_OK) {
        json_object_del(made, "cases");
        json_object_del(made, "default");
        *root = json_incref(made);
    }
    json_decref(list);
    json_decref(others);
    json_decref(rules);
    json_decref(made);
    return status;
}
