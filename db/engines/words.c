/* SPDX-License-Identifier: MIT */
/* Words with {expressions} in them. {program} and {checkpoint} are the user's own words; {{ and }} are braces. */
#include "db/engines/engines_int.h"

#include <string.h>

static bool is(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

/* The user's value, or the placeholder: the file's "program" or "checkpoint". */
static const char *own_word(const struct dt_engine *engine, const char *which, const char *given,
                            struct dt_values *values)
{
    if (given != NULL)
        return given;
    values->placeholder = true;
    const char *stand_in = json_string_value(json_object_get(engine->root, which));
    return stand_in != NULL ? stand_in : "?";
}

static dt_status fill_one(const struct dt_engine *engine, const char *inside, size_t size,
                          struct dt_values *values, struct dt_text *out)
{
    char expression[512];
    int64_t value;
    const char *word = NULL;
    if (is(inside, size, "program"))
        word = own_word(engine, "program", values->program, values);
    else if (is(inside, size, "checkpoint"))
        word = own_word(engine, "checkpoint", values->checkpoint, values);
    else
        word = dt_choice_word(engine, inside, size, values);
    if (word != NULL) {
        dt_text_add_bytes(out, word, strlen(word));
        return DT_OK;
    }
    if (size >= sizeof expression)
        return dt_fail(DT_EUSAGE, "%s %s: an expression of %zu bytes", engine->name,
                       engine->version, size);
    memcpy(expression, inside, size);
    expression[size] = '\0';
    DT_TRY(dt_values_eval(engine, expression, values, &value));
    dt_text_add(out, "%lld", (long long)value);
    return DT_OK;
}

dt_status dt_words_fill(const struct dt_engine *engine, const char *text, struct dt_values *values,
                        struct dt_text *out)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((at[0] == '{' && at[1] == '{') || (at[0] == '}' && at[1] == '}')) {
            dt_text_add_bytes(out, at++, 1);
        } else if (*at == '{') {
            const char *end = strchr(at, '}');
            if (end == NULL)
                return dt_fail(DT_EUSAGE, "%s %s: '%s' lacks a }", engine->name, engine->version,
                               text);
            DT_TRY(fill_one(engine, at + 1, (size_t)(end - at - 1), values, out));
            at = end;
        } else {
            dt_text_add_bytes(out, at, 1);
        }
    }
    return dt_text_status(out);
}

/* Jansson returns NULL for invalid UTF-8 and when memory runs out: an empty string shows which. */
static dt_status to_string(const struct dt_text *text, json_t **string)
{
    for (int i = 0; i < 2; i++) {
        *string = json_stringn(dt_text_at(text), text->size);
        if (*string != NULL)
            return DT_OK;
        json_t *probe = json_string("");
        if (probe == NULL)
            return dt_fail(DT_ENOMEM, "out of memory");
        json_decref(probe);
    }
    return dt_fail(DT_EUSAGE, "a word of the command is not UTF-8");
}

static dt_status fill_string(const struct dt_engine *engine, const char *text,
                             struct dt_values *values, json_t **filled)
{
    struct dt_text out = {0};
    dt_status status = dt_words_fill(engine, text, values, &out);
    json_t *string = NULL;
    if (status == DT_OK)
        status = to_string(&out, &string);
    dt_text_fini(&out);
    if (status == DT_OK)
        *filled = string;
    return status;
}

static dt_status append_words(const struct dt_engine *engine, const json_t *row,
                              struct dt_values *values, json_t *argv)
{
    json_t *words = NULL, *word = NULL;
    size_t i;
    DT_TRY(dt_json_array(row, "a row of words", "words", &words));
    json_array_foreach(words, i, word)
    {
        json_t *filled = NULL;
        if (!json_is_string(word))
            return dt_fail(DT_EUSAGE, "%s %s: a word is not a string", engine->name,
                           engine->version);
        DT_TRY(fill_string(engine, json_string_value(word), values, &filled));
        if (json_array_append_new(argv, filled) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}

dt_status dt_words_argv(const struct dt_engine *engine, struct dt_values *values, json_t *argv)
{
    const json_t *rows = json_object_get(engine->root, "words"), *row = NULL;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        bool holds;
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (holds)
            DT_TRY(append_words(engine, row, values, argv));
    }
    return DT_OK;
}

/* "{ring}" as a number, "{?cfg == 2}" as true or false, other strings filled; anything else as it stands. */
static dt_status fill_value(const struct dt_engine *engine, json_t *value, struct dt_values *values,
                            json_t **filled)
{
    const char *text = json_string_value(value);
    size_t size = text != NULL ? strlen(text) : 0;
    char expression[512];
    int64_t number;
    if (text == NULL) {
        *filled = json_incref(value);
        return DT_OK;
    }
    if (size < 3 || size >= sizeof expression || text[0] != '{' ||
        strchr(text, '}') != text + size - 1 || strcmp(text, "{program}") == 0 ||
        strcmp(text, "{checkpoint}") == 0 ||
        dt_choice_word(engine, text + 1, size - 2, values) != NULL)
        return fill_string(engine, text, values, filled);
    bool truth = text[1] == '?';
    memcpy(expression, text + 1 + truth, size - 2 - truth);
    expression[size - 2 - truth] = '\0';
    DT_TRY(dt_values_eval(engine, expression, values, &number));
    *filled = truth ? json_boolean(number != 0) : json_integer(number);
    return DT_OK;
}

/* field "a.b": creates object a if missing. Owns value. */
static dt_status set_field(json_t *object, const char *field, json_t *value)
{
    char part[128];
    const char *dot;
    while ((dot = strchr(field, '.')) != NULL && (size_t)(dot - field) < sizeof part) {
        memcpy(part, field, (size_t)(dot - field));
        part[dot - field] = '\0';
        json_t *inner = json_object_get(object, part);
        if (inner == NULL) {
            inner = json_object();
            json_object_set_new(object, part, inner);
        }
        object = inner;
        field = dot + 1;
    }
    if (json_object_set_new(object, field, value) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

static dt_status fill_rows(const struct dt_engine *engine, const char *list,
                           struct dt_values *values, json_t *object)
{
    const json_t *rows = json_object_get(engine->root, list), *row = NULL;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        bool holds;
        const char *name;
        json_t *filled = NULL, *value = json_object_get(row, "value");
        DT_TRY(dt_json_string(row, list, "name", &name));
        if (value == NULL)
            return dt_fail(DT_EUSAGE, "%s %s: '%s' has no value", engine->name, engine->version,
                           name);
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (!holds)
            continue;
        DT_TRY(fill_value(engine, value, values, &filled));
        DT_TRY(set_field(object, name, filled));
    }
    return DT_OK;
}

dt_status dt_words_environment(const struct dt_engine *engine, struct dt_values *values,
                               json_t *environment)
{
    return fill_rows(engine, "environment", values, environment);
}

dt_status dt_words_kwargs(const struct dt_engine *engine, struct dt_values *values, json_t *kwargs)
{
    return fill_rows(engine, "kwargs", values, kwargs);
}
