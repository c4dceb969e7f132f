/* SPDX-License-Identifier: MIT */
/* Depth and NUL are checked by a scan of the bytes before they are parsed: a deep tree would hurt whoever walks it
 * later. */
#include "base/json_int.h"
#include "base/read.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status check_shape(const char *text, size_t size, size_t values, const char *what)
{
    int depth = 0;
    size_t count = 1;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\0')
            return dt_fail(DT_EUSAGE,
                           "%s has a NUL byte at offset %zu, which JSON text cannot hold", what, i);
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            count++;
            if (++depth > DT_JSON_MAX_DEPTH)
                return dt_fail(DT_EUSAGE, "%s is nested deeper than %d levels", what,
                               DT_JSON_MAX_DEPTH);
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == ',') {
            count++;
        }
        if (count > values)
            return dt_fail(DT_EUSAGE, "%s has more than the %zu values allowed", what, values);
    }
    return DT_OK;
}

dt_status dt_json_parse_within(const char *text, size_t size, struct dt_json_limits limits,
                               const char *what, json_t **root)
{
    if (size > limits.bytes)
        return dt_fail(DT_EUSAGE, "%s is %zu bytes long, more than the %zu allowed", what, size,
                       limits.bytes);
    DT_TRY(check_shape(text, size, limits.values, what));
    return dt_json_build(text, size, what, root);
}

dt_status dt_json_parse(const char *text, size_t size, const char *what, json_t **root)
{
    const struct dt_json_limits limits = {.bytes = DT_JSON_MAX_BYTES, .values = DT_JSON_MAX_BYTES};
    return dt_json_parse_within(text, size, limits, what, root);
}

dt_status dt_json_read_within(const char *path, struct dt_json_limits limits, const char *what,
                              json_t **root)
{
    struct dt_text name = {0}, text = {0};
    dt_text_add(&name, "%s %s", what, path);
    dt_status status = dt_read_text(path, dt_text_at(&name), limits.bytes, &text);
    if (status == DT_OK)
        status =
            dt_json_parse_within(dt_text_at(&text), text.size, limits, dt_text_at(&name), root);
    dt_text_fini(&name);
    dt_text_fini(&text);
    return status;
}

dt_status dt_json_read(const char *path, const char *what, json_t **root)
{
    const struct dt_json_limits limits = {.bytes = DT_JSON_MAX_BYTES, .values = DT_JSON_MAX_BYTES};
    return dt_json_read_within(path, limits, what, root);
}

static dt_status field(const json_t *object, const char *what, const char *key, json_t **value)
{
    if (!json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    *value = json_object_get(object, key);
    return *value != NULL ? DT_OK : dt_fail(DT_EUSAGE, "%s: '%s' is missing", what, key);
}

dt_status dt_json_int(const json_t *object, const char *what, const char *key, int64_t low,
                      int64_t high, int64_t *out)
{
    json_t *value;
    DT_TRY(field(object, what, key, &value));
    if (!json_is_integer(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is not an integer", what, key);
    int64_t number = json_integer_value(value);
    if (number < low || number > high)
        return dt_fail(DT_EUSAGE, "%s: '%s' is %lld, expected %lld to %lld", what, key,
                       (long long)number, (long long)low, (long long)high);
    *out = number;
    return DT_OK;
}

dt_status dt_json_real(const json_t *object, const char *what, const char *key, double *out)
{
    json_t *value;
    DT_TRY(field(object, what, key, &value));
    if (!json_is_number(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is not a number", what, key);
    *out = json_number_value(value);
    return DT_OK;
}

dt_status dt_json_bool(const json_t *object, const char *what, const char *key, bool *out)
{
    json_t *value;
    DT_TRY(field(object, what, key, &value));
    if (!json_is_boolean(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is neither true nor false", what, key);
    *out = json_is_true(value);
    return DT_OK;
}

/* A field of a type of Jansson's. */
static dt_status typed(const json_t *object, const char *what, const char *key, json_type type,
                       const char *a_type, json_t **out)
{
    json_t *value;
    DT_TRY(field(object, what, key, &value));
    if (json_typeof(value) != type)
        return dt_fail(DT_EUSAGE, "%s: '%s' is not %s", what, key, a_type);
    *out = value;
    return DT_OK;
}

dt_status dt_json_string(const json_t *object, const char *what, const char *key, const char **out)
{
    json_t *value = NULL;
    DT_TRY(typed(object, what, key, JSON_STRING, "a string", &value));
    *out = json_string_value(value);
    return DT_OK;
}

dt_status dt_json_array(const json_t *object, const char *what, const char *key, json_t **out)
{
    return typed(object, what, key, JSON_ARRAY, "an array", out);
}

dt_status dt_json_object(const json_t *object, const char *what, const char *key, json_t **out)
{
    return typed(object, what, key, JSON_OBJECT, "an object", out);
}

bool dt_json_lists(const json_t *list, const char *name)
{
    const json_t *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        if (json_is_string(value) && strcmp(json_string_value(value), name) == 0)
            return true;
    }
    return false;
}

bool dt_json_contains(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

json_t *dt_json_named(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(dt_json_text_at(json_array_get(list, i), "name"), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

bool dt_json_has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

json_int_t dt_json_integer_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *dt_json_text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

json_t *dt_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dt_json_ints(const int values[], int n)
{
    json_t *array = json_array();
    for (int i = 0; values != NULL && i < n; i++)
        if (json_array_append_new(array, json_integer(values[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

dt_status dt_json_only(const json_t *object, const char *what, const char *const known[])
{
    if (!json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool found = false;
        for (int i = 0; known[i] != NULL && !found; i++)
            found = strcmp(known[i], key) == 0;
        if (found)
            continue;
        const char *near = dt_json_nearest(key, known);
        if (near != NULL)
            return dt_fail(DT_EUSAGE, "%s: unknown field '%s', did you mean '%s'?", what, key,
                           near);
        return dt_fail(DT_EUSAGE, "%s: unknown field '%s'", what, key);
    }
    return DT_OK;
}

json_t *dt_json_copy(const json_t *object)
{
    const char *key;
    json_t *value, *copy = json_object();
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_object_set(copy, key, value) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

struct writing {
    struct dt_text *text;
    bool string; /* between quotes, which Jansson writes one by one */
};

/* Jansson writes 0.85 with 17 digits, as 0.84999999999999998: the shortest text of the same number takes its place. */
static bool add_shorter(const char *bytes, size_t size, struct dt_text *text)
{
    char number[40], shorter[40];
    if (size < 18 || size >= sizeof number || memchr(bytes, '.', size) == NULL)
        return false;
    char point = localeconv()->decimal_point[0]; /* of strtod and snprintf; JSON's is a point */
    memcpy(number, bytes, size);
    number[size] = 0;
    *strchr(number, '.') = point;
    double value = strtod(number, NULL);
    for (int digits = 1; digits < 17; digits++) {
        snprintf(shorter, sizeof shorter, "%.*g", digits, value);
        if (strtod(shorter, NULL) == value) {
            char *own = strchr(shorter, point);
            if (own != NULL)
                *own = '.';
            dt_text_add(text, "%s%s", shorter, strpbrk(shorter, ".e") == NULL ? ".0" : "");
            return true;
        }
    }
    return false;
}

static int append(const char *bytes, size_t size, void *context)
{
    struct writing *writing = context;
    if (size == 1 && *bytes == '"')
        writing->string = !writing->string;
    if (writing->string || !add_shorter(bytes, size, writing->text))
        dt_text_add_bytes(writing->text, bytes, size);
    return 0;
}

dt_status dt_json_text(const json_t *root, struct dt_text *text)
{
    struct writing writing = {.text = text};
    if (root == NULL ||
        json_dump_callback(root, append, &writing, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while writing JSON");
    return dt_text_status(text);
}

dt_status dt_json_shown(const json_t *root, struct dt_text *text)
{
    struct dt_text exact = {0};
    dt_status status = dt_json_text(root, &exact);
    if (status == DT_OK)
        dt_text_show_json(dt_text_at(&exact), text);
    dt_text_fini(&exact);
    return status == DT_OK ? dt_text_status(text) : status;
}

void dt_json_plain(const json_t *value, struct dt_text *text)
{
    if (json_is_string(value))
        dt_text_add(text, "%s", json_string_value(value));
    else if (dt_json_text(value, text) != DT_OK)
        text->failed = true;
}

/* Edit distance (Levenshtein 1966); INT_MAX for strings of 64 bytes and more, which are near nothing. */
static int distance(const char *a, const char *b)
{
    int row[64];
    int na = (int)strlen(a), nb = (int)strlen(b);
    if (na >= 64 || nb >= 64)
        return INT_MAX;
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

const char *dt_json_nearest(const char *name, const char *const names[])
{
    const char *best = NULL;
    int size = (int)strlen(name), least = size > 2 ? size / 3 + 2 : 1; /* tp is no slip of dp */
    for (int i = 0; names[i] != NULL; i++) {
        int d = distance(name, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}
