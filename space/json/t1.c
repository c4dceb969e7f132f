/* SPDX-License-Identifier: MIT */
#include "space/expr/expr.h"
#include "space/json/json_int.h"
#include "space/space_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists as Python writes them: [1, 2], ['a', "b"], range(1, 9), list(range(..)), [16 * i for i
 * in range(1, 9) if i != 3], sums of those. Items are expressions of rules (space/expr), so
 * nothing is run as Python. */

/* The name and value of a comprehension's variable. */
struct scope {
    const char *name;
    int64_t value;
};

struct reading {
    const char *whole, *what;
    int depth;
};

static dt_status read_list(struct reading *reading, const char *from, const char *to,
                           json_t *values);

static dt_status refuse_constraint(const struct reading *reading)
{
    return dt_fail(DT_EUSAGE,
                   "%s: the values '%.80s' are not read: they may be a list of numbers or texts, a "
                   "range, a comprehension over one of these such as [16*i for i in range(1, 9)], "
                   "or a sum of such lists; nothing is run as Python",
                   reading->what, reading->whole);
}

static void trim_blanks(const char **from, const char **to)
{
    while (*from < *to && isspace((unsigned char)**from))
        ++*from;
    while (*from < *to && isspace((unsigned char)(*to)[-1]))
        --*to;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The first place of word outside of brackets and quotes; words of letters
 * stand alone. NULL: none. */
static const char *find_word(const char *from, const char *to, const char *word)
{
    size_t n = strlen(word);
    int depth = 0;
    char quote = 0;
    for (const char *at = from; at < to; at++) {
        bool fits = (size_t)(to - at) >= n && strncmp(at, word, n) == 0;
        bool inside =
            is_word(word[0]) && ((at > from && is_word(at[-1])) || (fits && is_word(at[n])));
        if (quote == 0 && depth == 0 && fits && !inside)
            return at;
        if (quote != 0 || *at == '\'' || *at == '"')
            quote = quote == 0 ? *at : *at == quote ? 0 : quote;
        else if (strchr("([", *at) != NULL)
            depth++;
        else if (strchr(")]", *at) != NULL)
            depth--;
    }
    return NULL;
}

/* The bracket that [from, to) begins with ends at its last character. */
static bool is_wrapped(const char *from, const char *to, char open)
{
    const char *end =
        to - from >= 2 && *from == open ? find_word(from + 1, to, open == '[' ? "]" : ")") : NULL;
    return end == to - 1;
}

static dt_status compute_number(const struct reading *reading, const char *from, const char *to,
                                const struct scope *scope, struct dt_number *number)
{
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
    const struct dt_vocabulary words = {
        .names = &scope->name, .count = scope->name != NULL, .python = true};
    dt_auto_free char *text = strndup(from, (size_t)(to - from));
    if (text == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_expr_new_of(text, &words, &expr);
    if (status == DT_OK)
        status = dt_expr_number(expr, &scope->value, number);
    return status == DT_EUSAGE ? refuse_constraint(reading) : status;
}

static dt_status append_value(json_t *values, json_t *value)
{
    if (json_array_size(values) > DT_VALUES_MAX) {
        json_decref(value);
        return dt_fail(DT_EUSAGE, "a list has more than %d values", DT_VALUES_MAX);
    }
    return json_array_append_new(values, value) == 0 ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status add_item(const struct reading *reading, const char *from, const char *to,
                          const struct scope *scope, json_t *values)
{
    struct dt_number number;
    trim_blanks(&from, &to);
    size_t size = (size_t)(to - from);
    if (size >= 2 && (*from == '\'' || *from == '"') && to[-1] == *from &&
        memchr(from + 1, *from, size - 2) == NULL && memchr(from, '\\', size) == NULL)
        return append_value(values, json_stringn(from + 1, size - 2));
    if ((size == 4 && strncmp(from, "True", 4) == 0) ||
        (size == 5 && strncmp(from, "False", 5) == 0))
        return append_value(values, json_boolean(*from == 'T'));
    DT_TRY(compute_number(reading, from, to, scope, &number));
    return append_value(values,
                        number.real ? json_real(number.value) : json_integer(number.integer));
}

/* range(to), range(from, to), range(from, to, step); the text is what is in the parentheses. */
static dt_status read_range(const struct reading *reading, const char *from, const char *to,
                            json_t *values)
{
    const struct scope none = {NULL, 0};
    int64_t ends[3] = {0, 0, 1};
    int n = 0;
    for (const char *at = from, *comma; at <= to && n < 3; at = comma + 1) {
        struct dt_number number = {0};
        comma = find_word(at, to, ",");
        comma = comma != NULL ? comma : to;
        DT_TRY(compute_number(reading, at, comma, &none, &number));
        if (number.real)
            return refuse_constraint(reading);
        ends[n++] = number.integer;
    }
    if (n == 1) {
        ends[1] = ends[0];
        ends[0] = 0;
    }
    if (ends[2] == 0 || (n == 3 && find_word(from, to, ",") == NULL))
        return refuse_constraint(reading);
    bool more = true;
    for (int64_t i = ends[0]; more && (ends[2] > 0 ? i < ends[1] : i > ends[1]);
         more = !__builtin_add_overflow(i, ends[2], &i))
        DT_TRY(append_value(values, json_integer(i)));
    return DT_OK;
}

/* item for name in list [if condition] */
static dt_status expand_comprehension(struct reading *reading, const char *from, const char *to,
                                      const char *loop, json_t *values)
{
    const char *name = loop + 3, *in = find_word(loop, to, "in"), *test = find_word(loop, to, "if");
    const char *end = test != NULL ? test : to, *after;
    char variable[64];
    json_t *list = json_array(), *item;
    size_t i;
    if (in == NULL || in > end || find_word(loop + 3, to, "for") != NULL)
        end = NULL;
    after = in;
    if (end != NULL)
        trim_blanks(&name, &after);
    size_t n = end != NULL ? (size_t)(after - name) : 0;
    bool plain = n > 0 && n < sizeof variable && !isdigit((unsigned char)*name);
    for (size_t k = 0; k < n; k++)
        plain = plain && is_word(name[k]);
    dt_status status = plain ? read_list(reading, in + 2, end, list) : refuse_constraint(reading);
    memcpy(variable, name, plain ? n : 0);
    variable[plain ? n : 0] = 0;
    json_array_foreach(list, i, item)
    {
        struct scope scope = {variable, json_integer_value(item)};
        struct dt_number kept = {.integer = 1, .value = 1};
        if (status == DT_OK && !json_is_integer(item))
            status = refuse_constraint(reading);
        if (status == DT_OK && test != NULL)
            status = compute_number(reading, test + 2, to, &scope, &kept);
        if (status == DT_OK && kept.value != 0)
            status = add_item(reading, from, loop, &scope, values);
    }
    json_decref(list);
    return status;
}

/* Reads the items between [ and ], or ( and ) of a tuple. */
static dt_status read_items(struct reading *reading, const char *from, const char *to,
                            json_t *values)
{
    const struct scope none = {NULL, 0};
    const char *loop = find_word(from, to, "for");
    trim_blanks(&from, &to);
    if (loop != NULL)
        return expand_comprehension(reading, from, to, loop, values);
    for (const char *comma; from < to; from = comma + 1) {
        comma = find_word(from, to, ",");
        comma = comma != NULL ? comma : to;
        DT_TRY(add_item(reading, from, comma, &none, values));
        while (comma < to - 1 && isspace((unsigned char)comma[1]))
            comma++;
    }
    return DT_OK;
}

/* A list without its sums. */
static dt_status read_term(struct reading *reading, const char *from, const char *to,
                           json_t *values)
{
    static const char *const calls[] = {"list", "tuple", "sorted", "range"};
    trim_blanks(&from, &to);
    if (is_wrapped(from, to, '['))
        return read_items(reading, from + 1, to - 1, values);
    if (is_wrapped(from, to, '(') && find_word(from + 1, to - 1, ",") != NULL)
        return read_items(reading, from + 1, to - 1, values);
    if (is_wrapped(from, to, '('))
        return read_list(reading, from + 1, to - 1, values);
    for (int i = 0; i < 4; i++) {
        size_t n = strlen(calls[i]);
        if ((size_t)(to - from) > n && strncmp(from, calls[i], n) == 0 &&
            is_wrapped(from + n, to, '('))
            return i == 3 ? read_range(reading, from + n + 1, to - 1, values)
                          : read_list(reading, from + n + 1, to - 1, values);
    }
    return refuse_constraint(reading);
}

static dt_status read_list(struct reading *reading, const char *from, const char *to,
                           json_t *values)
{
    dt_status status = ++reading->depth <= 16 ? DT_OK : refuse_constraint(reading);
    for (const char *plus; status == DT_OK && from <= to; from = plus + 1) {
        plus = find_word(from, to, "+");
        plus = plus != NULL ? plus : to;
        status = read_term(reading, from, plus, values);
    }
    reading->depth--;
    return status;
}

/* Values that are there twice count once. */
static json_t *distinct_values(const json_t *values)
{
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(values); i++) {
        json_t *value = json_array_get(values, i);
        if (!dt_json_contains(made, value))
            json_array_append(made, value);
    }
    return made;
}

/* The values of a list as Python writes it, "[16 * i for i in range(1, 9)]", as a new array. */
static dt_status t1_list(const char *text, const char *what, json_t **values)
{
    struct reading reading = {.whole = text, .what = what};
    json_auto_t *list = json_array();
    DT_TRY(read_list(&reading, text, text + strlen(text), list));
    *values = distinct_values(list);
    return DT_OK;
}

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
        DT_TRY(t1_list(json_string_value(values), where, &values));
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
