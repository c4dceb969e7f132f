/* SPDX-License-Identifier: MIT */
/* Reads one parameter: its values, as a list or a range, and its other fields. */
#include "space/expr/decimal.h"
#include "space/json/json_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool dt_decimal_json(const json_t *value, struct dt_decimal *decimal)
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
        if (!dt_decimal_json(value, &decimal))
            return no_number(reading, i, value);
        axis->digits = decimal.digits > axis->digits ? decimal.digits : axis->digits;
    }
    for (int i = 0; i < axis->count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        if (!dt_decimal_json(value, &decimal) ||
            !dt_decimal_widen(decimal, axis->digits, &reading->values[i]))
            return no_number(reading, i, value);
    }
    axis->values = reading->values;
    qsort(reading->values, (size_t)axis->count, sizeof reading->values[0], ascending);
    for (int i = 1; i < axis->count; i++) {
        if (reading->values[i] != reading->values[i - 1])
            continue;
        struct dt_text text = {0};
        dt_decimal_add(reading->values[i], axis->digits, &text);
        dt_status status = dt_fail(DT_EUSAGE, "%s: parameter '%s': the value %s is given twice",
                                   reading->what, axis->name, dt_text_at(&text));
        dt_text_fini(&text);
        return status;
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
    qsort(reading->values, (size_t)axis->count, sizeof reading->values[0], ascending);
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
    if (!dt_decimal_json(field, &decimal) || !dt_decimal_widen(decimal, digits, value))
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
        if (field != NULL && dt_decimal_json(field, &decimal) && decimal.digits > digits)
            digits = decimal.digits;
    }
    return digits;
}

/* {"from": 8, "to": 64, "step": 8} or {"from": 1, "to": 1024, "factor": 2}, also with decimals; values beyond the last
 * step are left out. */
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

int dt_axis_index(const struct dt_axis *axis, const json_t *value)
{
    int64_t number = 0;
    struct dt_decimal decimal;
    for (int i = 0; axis->labels != NULL && json_is_string(value) && i < axis->count; i++)
        if (strcmp(axis->labels[i], json_string_value(value)) == 0)
            return i;
    if (axis->truth && json_is_boolean(value))
        return dt_axis_find(axis, json_is_true(value));
    if (axis->labels == NULL && !axis->truth && dt_decimal_json(value, &decimal) &&
        decimal.digits <= axis->digits && dt_decimal_widen(decimal, axis->digits, &number))
        return dt_axis_find(axis, number);
    return -1;
}

/* Without "default" the first value as written is the default. */
static dt_status read_default(struct dt_reading *reading, const json_t *value, const json_t *values)
{
    struct dt_axis *axis = &reading->axis;
    if (value == NULL && json_is_object(values))
        value = json_object_get(values, "from");
    else if (value == NULL)
        value = json_array_get(values, 0);
    axis->fallback = dt_axis_index(axis, value);
    if (axis->fallback < 0)
        return dt_fail(DT_EUSAGE, "%s: parameter '%s': its 'default' is none of its values",
                       reading->what, axis->name);
    return DT_OK;
}

/* Variables that select code, shells or the location of files, which a plan must not set. Names that end in _ are prefixes. It catches
 * mistakes: a space file is code all the same (docs/security.md). */
static bool is_refused(const char *name)
{
    static const char *const refused[] = {"LD_",
                                          "DYLD_",
                                          "PATH",
                                          "HOME",
                                          "TMPDIR",
                                          "TMP",
                                          "TEMP",
                                          "IFS",
                                          "ENV",
                                          "BASH_",
                                          "SHELL",
                                          "SHELLOPTS",
                                          "PS4",
                                          "EDITOR",
                                          "VISUAL",
                                          "PAGER",
                                          "BROWSER",
                                          "PYTHONPATH",
                                          "PYTHONHOME",
                                          "PYTHONSTARTUP",
                                          "PYTHONBREAKPOINT",
                                          "PYTHONINSPECT",
                                          "PYTHONUSERBASE",
                                          "PYTHONPLATLIBDIR",
                                          "PYTHONPYCACHEPREFIX",
                                          "PYTHONEXECUTABLE",
                                          "PYTHONWARNINGS",
                                          "PYTHONSAFEPATH",
                                          "PERL5LIB",
                                          "PERL5OPT",
                                          "PERL5DB",
                                          "RUBYOPT",
                                          "RUBYLIB",
                                          "NODE_OPTIONS",
                                          "NODE_PATH",
                                          "CLASSPATH",
                                          "JAVA_TOOL_OPTIONS",
                                          "_JAVA_OPTIONS",
                                          "JDK_JAVA_OPTIONS",
                                          "GIT_",
                                          "GCONV_PATH",
                                          "LOCPATH",
                                          "GLIBC_TUNABLES",
                                          "MALLOC_TRACE",
                                          "OPENSSL_",
                                          "SSL_",
                                          "XDG_",
                                          "HF_HOME",
                                          "HF_ENDPOINT",
                                          "HF_HUB_CACHE",
                                          "HF_MODULES_CACHE",
                                          "TORCH_HOME",
                                          "TORCH_EXTENSIONS_DIR",
                                          "TORCHINDUCTOR_CACHE_DIR",
                                          "TRITON_CACHE_DIR",
                                          "CUDA_CACHE_PATH",
                                          "CUDA_INJECTION64_PATH",
                                          "NCCL_NET_PLUGIN",
                                          "NCCL_TUNER_PLUGIN",
                                          "NCCL_PROFILER_PLUGIN",
                                          "NCCL_ENV_PLUGIN",
                                          "NCCL_CONF_FILE",
                                          "NCCL_DEBUG_FILE",
                                          "OMPI_ALLOW_",
                                          "OMPI_MCA_plm_",
                                          "OMPI_MCA_orte_",
                                          "OMPI_MCA_mca_",
                                          "OMPI_MCA_prte_",
                                          "PMIX_",
                                          "PRTE_",
                                          "DITTUNE_",
                                          NULL};
    for (int i = 0; refused[i] != NULL; i++) {
        size_t size = strlen(refused[i]);
        bool beginning = refused[i][size - 1] == '_';
        if (strncmp(name, refused[i], size) == 0 && (beginning || name[size] == '\0'))
            return true;
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
    bool counted =
        axis->role == DT_ROLE_RANKS || axis->role == DT_ROLE_BATCH || axis->role == DT_ROLE_THREADS;
    if (counted && (axis->labels != NULL || axis->truth || axis->digits > 0 || axis->values[0] < 1))
        return dt_fail(DT_EUSAGE,
                       "%s: parameter '%s' of role %s needs integers of at least 1 for values",
                       reading->what, axis->name, dt_role_text(axis->role));
    return DT_OK;
}

dt_status dt_axis_read(struct dt_space *space, struct dt_reading *reading, const char *name,
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
        if (dt_json_has(object, "doc"))
            DT_TRY(dt_json_string(object, reading->what, "doc", &axis->doc));
        if (dt_json_has(object, "when"))
            DT_TRY(dt_json_string(object, reading->what, "when", &axis->when));
    }
    DT_TRY(check_counts(reading));
    return dt_space_add_axis(space, axis);
}
