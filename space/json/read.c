/* SPDX-License-Identifier: MIT */
/* Reads a space from JSON: from a worker's hello or a user's file. */
#include "base/array.h"
#include "space/expr/decimal.h"
#include "space/json/json_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dt_reading {
    const char *what; /* first words of each error message */
    struct dt_axis axis;
    int64_t values[DT_VALUES_MAX];
    const char *labels[DT_VALUES_MAX];
};

/* Reads one parameter: its values, as a list or a range, and its other fields. */

/* A number as a decimal; false: it is none, or has too many digits. */
static bool decimal_json(const json_t *value, struct dt_decimal *decimal)
{
    *decimal = (struct dt_decimal){.value = json_integer_value(value)};
    return json_is_integer(value) ||
           (json_is_real(value) && dt_decimal_of(json_real_value(value), decimal));
}

static dt_status no_number(const struct dt_reading *reading, int i, const json_t *value)
{
    if (json_is_real(value))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%s': value %d has more than %d digits after the point or "
                       "does not fit 64 bits",
                       reading->what, reading->axis.name, i + 1, DT_DIGITS_MAX);
    return dt_fail(DT_EUSAGE, "%s: parameter '%s': value %d is not a number as the first one is",
                   reading->what, reading->axis.name, i + 1);
}

/* Integers, or decimals that all get the digits of the longest. */
static dt_status read_numbers(struct dt_reading *reading, const json_t *list)
{
    struct dt_axis *axis = &reading->axis;
    struct dt_decimal decimal;
    for (int i = 0; i < axis->count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!decimal_json(value, &decimal))
            return no_number(reading, i, value);
        axis->digits = decimal.digits > axis->digits ? decimal.digits : axis->digits;
    }
    for (int i = 0; i < axis->count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!decimal_json(value, &decimal) ||
            !dt_decimal_widen(decimal, axis->digits, &reading->values[i]))
            return no_number(reading, i, value);
    }
    axis->values = reading->values;
    qsort(reading->values, (size_t)axis->count, sizeof reading->values[0], dt_ascending_int64);
    for (int i = 1; i < axis->count; i++) {
        if (reading->values[i] != reading->values[i - 1])
            continue;
        dt_auto_text text = {0};
        dt_decimal_add(reading->values[i], axis->digits, &text);
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': the value %s is given twice", reading->what,
                       axis->name, dt_text_at(&text));
    }
    return DT_OK;
}

static dt_status read_truths(struct dt_reading *reading, const json_t *list)
{
    struct dt_axis *axis = &reading->axis;
    for (int i = 0; i < axis->count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!json_is_boolean(value))
            return dt_fail(DT_EUSAGE,
                           "%s: parameter '%s': value %d is not true or false as the first one is",
                           reading->what, axis->name, i + 1);
        reading->values[i] = json_is_true(value);
    }
    if (axis->count > 2 || (axis->count == 2 && reading->values[0] == reading->values[1]))
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': true or false is given twice", reading->what,
                       axis->name);
    qsort(reading->values, (size_t)axis->count, sizeof reading->values[0], dt_ascending_int64);
    axis->values = reading->values;
    axis->truth = true;
    return DT_OK;
}

static dt_status read_labels(struct dt_reading *reading, const json_t *list)
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

/* Index of the value, or -1: it is none of the axis. */
static int axis_index(const struct dt_axis *axis, const json_t *value)
{
    int64_t number = 0;
    struct dt_decimal decimal;
    for (int i = 0; axis->labels != NULL && json_is_string(value) && i < axis->count; i++)
        if (strcmp(axis->labels[i], json_string_value(value)) == 0)
            return i;
    if (axis->truth && json_is_boolean(value))
        return dt_axis_find(axis, json_is_true(value));
    if (axis->labels == NULL && !axis->truth && decimal_json(value, &decimal) &&
        decimal.digits <= axis->digits && dt_decimal_widen(decimal, axis->digits, &number))
        return dt_axis_find(axis, number);
    return -1;
}

/* Adds the texts of "words" that are no values: rules may name them, no plan has them. */
static dt_status read_words(struct dt_reading *reading, const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    json_t *list = NULL, *word;
    size_t i;
    if (!dt_json_has(object, "words"))
        return DT_OK;
    DT_TRY(dt_json_array(object, reading->what, "words", &list));
    json_array_foreach(list, i, word)
    {
        if (!json_is_string(word) || axis->labels == NULL)
            return dt_fail(DT_EUSAGE, "%s: parameter '%s': its 'words' are not texts as its values",
                           reading->what, axis->name);
        if (axis_index(axis, word) >= 0)
            continue;
        if (axis->count + axis->words == DT_VALUES_MAX)
            return dt_fail(DT_EUSAGE, "%s: parameter '%s' has more than %d values and words",
                           reading->what, axis->name, DT_VALUES_MAX);
        reading->labels[axis->count + axis->words++] = json_string_value(word);
    }
    return DT_OK;
}

/* Sets *value to the field as an integer of that many digits. */
static dt_status read_end(const json_t *range, const char *what, const char *name, int digits,
                          int64_t least, int64_t *value)
{
    if (digits == 0)
        return dt_json_int(range, what, name, least, INT64_MAX, value);
    struct dt_decimal decimal;
    const json_t *field = json_object_get(range, name);
    if (field == NULL)
        return dt_fail(DT_EUSAGE, "%s: '%s' is missing", what, name);
    if (!decimal_json(field, &decimal) || !dt_decimal_widen(decimal, digits, value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is not a number of at most %d digits after the point",
                       what, name, DT_DIGITS_MAX);
    return *value >= least ? DT_OK : dt_fail(DT_EUSAGE, "%s: '%s' is too small", what, name);
}

static int digits_of(const json_t *range)
{
    static const char *const names[] = {"from", "to", "step"};
    int digits = 0;
    for (int i = 0; i < 3; i++) {
        struct dt_decimal decimal;
        const json_t *field = json_object_get(range, names[i]);
        if (field != NULL && decimal_json(field, &decimal) && decimal.digits > digits)
            digits = decimal.digits;
    }
    return digits;
}

/* {"from": 8, "to": 64, "step": 8} or {"from": 1, "to": 1024, "factor": 2}, also with decimals;
 * values beyond the last step are left out. */
static dt_status read_range(struct dt_reading *reading, const json_t *range)
{
    static const char *const known[] = {"from", "to", "step", "factor", NULL};
    struct dt_axis *axis = &reading->axis;
    int64_t from, to, step = 1, factor = 1;
    char what[300];
    snprintf(what, sizeof what, "%.100s: parameter '%.100s'", reading->what, axis->name);
    DT_TRY(dt_json_only(range, what, known));
    if (dt_json_has(range, "step") && dt_json_has(range, "factor"))
        return dt_fail(DT_EUSAGE, "%s: a range has a 'step' or a 'factor', not both", what);
    bool grows = dt_json_has(range, "factor");
    axis->digits = digits_of(range);
    DT_TRY(read_end(range, what, "from", axis->digits, grows ? 1 : INT64_MIN, &from));
    DT_TRY(read_end(range, what, "to", axis->digits, from, &to));
    if (dt_json_has(range, "step"))
        DT_TRY(read_end(range, what, "step", axis->digits, 1, &step));
    else if (axis->digits > 0 && !grows)
        return dt_fail(DT_EUSAGE, "%s: a range of decimals has a 'step' or a 'factor'", what);
    if (grows)
        DT_TRY(dt_json_int(range, what, "factor", 2, INT64_MAX, &factor));
    bool more = true;
    for (int64_t value = from; more && value <= to;) {
        if (axis->count == DT_VALUES_MAX)
            return dt_fail(DT_EUSAGE, "%s: the range has more than %d values", what, DT_VALUES_MAX);
        reading->values[axis->count++] = value;
        more = grows ? !__builtin_mul_overflow(value, factor, &value)
                     : !__builtin_add_overflow(value, step, &value);
    }
    axis->values = reading->values;
    return DT_OK;
}

static dt_status read_values(struct dt_reading *reading, const json_t *list)
{
    struct dt_axis *axis = &reading->axis;
    if (json_is_object(list))
        return read_range(reading, list);
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%.80s': its values are neither a list nor a range",
                       reading->what, axis->name);
    if (n < 1 || n > DT_VALUES_MAX)
        return dt_fail(DT_EUSAGE, "%s: parameter '%.80s' has %zu values, expected 1 to %d",
                       reading->what, axis->name, n, DT_VALUES_MAX);
    axis->count = (int)n;
    for (size_t i = 0; i < n; i++)
        if (json_is_null(json_array_get(list, i)))
            return dt_fail(
                DT_EUSAGE,
                "%s: parameter '%.80s': null is no value; a text of no bytes, \"\", is a "
                "word that is left out of a command",
                reading->what, axis->name);
    if (json_is_number(json_array_get(list, 0)))
        return read_numbers(reading, list);
    if (json_is_boolean(json_array_get(list, 0)))
        return read_truths(reading, list);
    if (json_is_string(json_array_get(list, 0)))
        return read_labels(reading, list);
    return dt_fail(DT_EUSAGE, "%s: parameter '%.80s': values are numbers, texts, or true and false",
                   reading->what, axis->name);
}

/* Without "default" the first value as written is the default. */
static dt_status read_default(struct dt_reading *reading, const json_t *value, const json_t *values)
{
    struct dt_axis *axis = &reading->axis;
    if (value == NULL && json_is_object(values))
        value = json_object_get(values, "from");
    else if (value == NULL)
        value = json_array_get(values, 0);
    axis->fallback = axis_index(axis, value);
    if (axis->fallback < 0)
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': its 'default' is none of its values",
                       reading->what, axis->name);
    return DT_OK;
}

/* Variables that select code, shells or the location of files, which a plan must not
 * set: names, NAME_ for those that begin so, *_NAME for those that end so. It catches mistakes: a
 * space file is code all the same (SECURITY.md). */
static bool is_refused(const char *name)
{
    static const char refused[] =
        "LD_ DYLD_ *_PATH *_DIR *_HOME *_CACHE *_PLUGIN *_PLUGINS *_FILENAMES *_VENDORS PATH HOME "
        "TMPDIR TMP TEMP IFS ENV BASH_ SHELL SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 EDITOR VISUAL "
        "PAGER BROWSER LESSOPEN PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONBREAKPOINT PYTHONINSPECT "
        "PYTHONUSERBASE PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX PYTHONEXECUTABLE PYTHONWARNINGS "
        "PYTHONSAFEPATH PERLLIB PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB NODE_OPTIONS LUA_INIT "
        "CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS GIT_ LOCPATH GLIBC_TUNABLES "
        "MALLOC_TRACE OPENSSL_ SSL_ XDG_ HF_ENDPOINT NCCL_CONF_FILE NCCL_DEBUG_FILE OMPI_ALLOW_ "
        "OMPI_MCA_plm_ OMPI_MCA_orte_ OMPI_MCA_mca_ OMPI_MCA_prte_ PMIX_ PRTE_ DITTUNE_";
    size_t length = strlen(name);
    for (const char *word = refused; *word != '\0';) {
        size_t size = strcspn(word, " ");
        bool ending = *word == '*', beginning = word[size - 1] == '_';
        const char *from = !ending ? name : length >= size ? name + length - (size - 1) : "";
        if (strncmp(from, word + ending, size - (size_t)ending) == 0 &&
            (beginning || from[size - (size_t)ending] == '\0'))
            return true;
        word += size + strspn(word + size, " ");
    }
    return false;
}

static dt_status read_role(struct dt_reading *reading, const json_t *object)
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
    if (is_refused(axis->variable))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%s' may not set %s, which decides what code runs or where "
                       "files lie; a parameter sets variables of libraries, such as NCCL_ALGO",
                       reading->what, axis->name, axis->variable);
    return DT_OK;
}

static dt_status check_counts(const struct dt_reading *reading)
{
    const struct dt_axis *axis = &reading->axis;
    bool counted = axis->role == DT_ROLE_RANKS || axis->role == DT_ROLE_BATCH ||
                   axis->role == DT_ROLE_THREADS || axis->role == DT_ROLE_REPLICAS;
    if (counted && (axis->labels != NULL || axis->truth || axis->digits > 0 || axis->values[0] < 1))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%s' of role %s needs integers of at least 1 for values",
                       reading->what, axis->name, dt_role_text(axis->role));
    return DT_OK;
}

/* Adds the axis of {"name", "values", ..} (name NULL), or of that name: its values, or an
 * object that has them. */
static dt_status axis_read(struct dt_space *space, struct dt_reading *reading, const char *name,
                           const json_t *object)
{
    struct dt_axis *axis = &reading->axis;
    const json_t *values = object;
    *axis = (struct dt_axis){.name = name};
    if (name == NULL && !json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s: parameter %d is not {\"name\", \"values\"}", reading->what,
                       space->axis_count + 1);
    if (name == NULL)
        DT_TRY(dt_json_string(object, reading->what, "name", &axis->name));
    bool whole = name == NULL || dt_json_has(object, "values");
    if (whole)
        values = json_object_get(object, "values");
    if (values == NULL)
        return dt_fail(DT_EUSAGE, "%s: parameter '%.80s' has no 'values'", reading->what,
                       axis->name);
    DT_TRY(read_values(reading, values));
    DT_TRY(read_default(reading, whole ? json_object_get(object, "default") : NULL, values));
    if (whole) {
        DT_TRY(read_role(reading, object));
        DT_TRY(read_words(reading, object));
        if (dt_json_has(object, "doc"))
            DT_TRY(dt_json_string(object, reading->what, "doc", &axis->doc));
        if (dt_json_has(object, "when"))
            DT_TRY(dt_json_string(object, reading->what, "when", &axis->when));
    }
    DT_TRY(check_counts(reading));
    return dt_space_add_axis(space, axis);
}

/* A list of cases in place of a product: in a file it stands for parameters with the values that
 * the cases have and a rule, which is what a worker announces. */

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

/* Adds the rule that a list of cases is: [{"a": 1, "b": 2}, ..]. A case with a value that its axis
 * does not have allows no plan. */
static dt_status cases_read(struct dt_space *space, const json_t *cases, const char *what)
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
    dt_auto_free struct dt_point *rows = calloc(json_array_size(cases), sizeof *rows);
    if (rows == NULL)
        return no_memory(what);
    table.rows = rows;
    json_array_foreach(cases, row, one)
    {
        struct dt_point *point = &table.rows[table.count++];
        bool all = true;
        for (int i = 0; i < table.width; i++) {
            point->index[i] =
                axis_index(dt_space_axis(space, table.axes[i]), json_object_get(one, names[i]));
            all = all && point->index[i] >= 0;
        }
        table.count -= !all;
    }
    return dt_space_add_cases(space, &table);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* The distinct values of a parameter in the cases, new: texts in the order of their bytes, so that
 * the order of the cases does not matter; NULL when memory runs out. */
static json_t *values_of(const json_t *cases, const char *name)
{
    json_auto_t *seen = json_object(), *values = json_array();
    json_t *one;
    dt_auto_free json_t **found = calloc(json_array_size(cases), sizeof(json_t *));
    size_t i, n = 0;
    bool texts = true;
    if (seen == NULL || values == NULL || found == NULL)
        return NULL;
    json_array_foreach(cases, i, one)
    {
        json_t *value = json_object_get(one, name);
        struct dt_decimal decimal;
        dt_auto_text key = {0};
        texts = texts && json_is_string(value);
        if (decimal_json(value, &decimal)) /* 1 and 1.0 are one */
            dt_text_add(&key, "%lld %d", (long long)decimal.value, decimal.digits);
        else if (dt_json_text(value, &key) != DT_OK)
            return NULL;
        if (json_object_get(seen, dt_text_at(&key)) == NULL)
            found[n++] = value;
        if (json_object_set_new(seen, dt_text_at(&key), json_true()) != 0)
            return NULL;
    }
    if (texts)
        qsort(found, n, sizeof(json_t *), by_text);
    for (i = 0; i < n; i++)
        if (json_array_append(values, found[i]) != 0)
            return NULL;
    return json_incref(values);
}

/* A parameter of the file's, as an object with a name: of a list, or of an object of names; new. */
static json_t *name_item(const char *name, json_t *item)
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
    json_array_foreach(parameters, i, item) json_array_append_new(list, name_item(NULL, item));
    json_object_foreach((json_t *)parameters, name, item)
        json_array_append_new(list, name_item(name, item));
    return list;
}

/* Takes the parameter of that name off the list; NULL: there is none. */
static json_t *take_named(json_t *list, const char *name)
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
    json_t *own = take_named(others, name);
    json_auto_t *values = values_of(cases, name);
    json_auto_t *made = own != NULL ? own : json_pack("{s:s}", "name", name);
    for (size_t i = 0; i < 3; i++)
        if (dt_json_has(made, refused[i]))
            return dt_fail(DT_EUSAGE,
                           "%s: parameter '%s' is in the cases, so it has no '%s' of its own, "
                           "only 'role', 'variable' and 'doc'",
                           what, name, refused[i]);
    return values == NULL || json_object_set(made, "values", values) != 0 ||
                   json_object_set(made, "default", fallback) != 0 ||
                   json_array_append(list, made) != 0
               ? no_memory(what)
               : DT_OK;
}

/* A file with a list of cases as one without: their parameters, and the list as a rule. DT_EUSAGE:
 * the cases do not name the same parameters, ... */
static dt_status cases_expand(const json_t *file, const char *what, json_t **root)
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
    json_auto_t *list = json_array(), *others = list_of(json_object_get(file, "parameters"));
    json_auto_t *rules = json_pack("[{s:O}]", "cases", cases), *made = dt_json_copy(file);
    if (list == NULL || others == NULL || rules == NULL || made == NULL)
        return no_memory(what);
    json_object_foreach(json_array_get(cases, 0), name, value)
        DT_TRY(add_parameter(cases, name, json_object_get(fallback, name), others, what, list));
    if (json_array_extend(list, others) != 0 ||
        (theirs != NULL && json_array_extend(rules, theirs) != 0) ||
        json_object_set(made, "parameters", list) != 0 ||
        json_object_set(made, "rules", rules) != 0)
        return no_memory(what);
    json_object_del(made, "cases");
    json_object_del(made, "default");
    *root = json_incref(made);
    return DT_OK;
}

/* Reads a user's file into the form that a worker announces. Here each unknown field is an error,
 * as a rule under another name would be no rule. */

/* Names that other tools give these fields. */
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

/* Like dt_json_only, and names our field for one that other tools have. */
static dt_status fields_check(const json_t *object, const char *what, const char *const known[])
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        bool ours = dt_text_index(name, known) >= 0;
        for (size_t i = 0; !ours && i < sizeof synonyms / sizeof synonyms[0]; i++)
            if (strcasecmp(synonyms[i].theirs, name) == 0 &&
                dt_text_index(synonyms[i].ours, known) >= 0)
                return dt_fail(DT_EUSAGE, "%s: unknown field '%s', did you mean '%s'?", what, name,
                               synonyms[i].ours);
    }
    return dt_json_only(object, what, known);
}

/* A range has fields of its own (read_range). */
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
    return fields_check(object, where, known);
}

static dt_status check_rule(const json_t *rule, size_t i, const char *what)
{
    static const char *const known[] = {"if", "python", "say", NULL};
    char where[600];
    snprintf(where, sizeof where, "%s: rule %zu", what, i + 1);
    return json_is_object(rule) ? fields_check(rule, where, known) : DT_OK;
}

static dt_status check_fields(const json_t *root, const char *what)
{
    static const char *const known[] = {"parameters", "cases",   "rules",      "constants",
                                        "name",       "source",  "doc",        "cartesian",
                                        "valid",      "default", "documented", NULL};
    const json_t *parameters = json_object_get(root, "parameters");
    const char *name;
    json_t *item;
    size_t i;
    DT_TRY(fields_check(root, what, known));
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
    json_auto_t *file = NULL;
    DT_TRY(dt_json_read(path, "the space", &file));
    if (!json_is_object(file))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    if (dt_json_has(file, "ConfigurationSpace"))
        return dt_t1_read(file, what, root);
    DT_TRY(check_fields(file, what));
    if (dt_json_has(file, "cases"))
        return cases_expand(file, what, root);
    *root = json_incref(file);
    return DT_OK;
}

dt_status dt_space_read(const char *path, struct dt_space **space)
{
    json_auto_t *root = NULL;
    char what[512];
    snprintf(what, sizeof what, "the space %.480s", path);
    DT_TRY(dt_space_file(path, what, &root));
    return dt_space_from_json(root, what, space);
}

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
    dt_auto_free struct dt_reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    reading->what = what;
    for (size_t i = 0; i < json_array_size(list); i++)
        DT_TRY(axis_read(space, reading, NULL, json_array_get(list, i)));
    json_object_foreach(list, name, item) DT_TRY(axis_read(space, reading, name, item));
    return DT_OK;
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
            DT_TRY(cases_read(space, json_object_get(row, "cases"), what));
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

/* A file may state the number of its combinations and of its feasible points. A number that could
 * not be counted is not compared. */
static dt_status read_check_counts(const struct dt_space *space, const json_t *root,
                                   const char *what)
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

static dt_status fill_space(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_all(space, root, what));
    DT_TRY(dt_space_seal(space));
    return read_check_counts(space, root, what);
}

static dt_status fill_rules(struct dt_space *space, const json_t *root, const char *what)
{
    DT_TRY(read_all(space, root, what));
    return dt_space_compile(space);
}

static dt_status read_space(const json_t *root, const char *what,
                            dt_status (*read)(struct dt_space *space, const json_t *root,
                                              const char *what),
                            struct dt_space **space)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *made = NULL;
    DT_TRY(dt_space_new(&made));
    dt_status status = read(made, root, what);
    if (status != DT_OK) /* add_axis and the rules' compiler name the error but not the file */
        return strncmp(dt_message(), what, strlen(what)) == 0
                   ? status
                   : dt_fail(status, "%s: %s", what, dt_message());
    *space = made;
    made = NULL;
    return DT_OK;
}

dt_status dt_space_from_json(const json_t *root, const char *what, struct dt_space **space)
{
    return read_space(root, what, fill_space, space);
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
