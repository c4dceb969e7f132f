/* SPDX-License-Identifier: MIT */
#include "db/canonical_int.h"

#include <stdlib.h>
#include <string.h>

static dt_status add(const json_t *value, int depth, struct dt_text *text);

static dt_status add_array(const json_t *array, int depth, struct dt_text *text)
{
    size_t i;
    json_t *value;
    dt_text_add(text, "[");
    json_array_foreach(array, i, value)
    {
        if (i > 0)
            dt_text_add(text, ",");
        DT_TRY(add(value, depth + 1, text));
    }
    dt_text_add(text, "]");
    return DT_OK;
}

static dt_status add_string(const char *string, struct dt_text *text)
{
    json_t *value = json_string(string);
    dt_status status = dt_json_text(value, text);
    json_decref(value);
    return status;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static dt_status add_object(const json_t *object, int depth, struct dt_text *text)
{
    size_t n = json_object_size(object), i = 0;
    const char **keys = calloc(n + 1, sizeof *keys);
    const char *key;
    json_t *value;
    if (keys == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while sorting %zu JSON keys", n);
    json_object_foreach((json_t *)object, key, value) keys[i++] = key;
    qsort(keys, n, sizeof *keys, by_bytes);
    dt_status status = DT_OK;
    for (i = 0; i < n && status == DT_OK; i++) {
        dt_text_add(text, i > 0 ? "," : "{");
        status = add_string(keys[i], text);
        dt_text_add(text, ":");
        if (status == DT_OK)
            status = add(json_object_get(object, keys[i]), depth + 1, text);
    }
    dt_text_add(text, n > 0 ? "}" : "{}");
    free(keys);
    return status;
}

static void add_real(double real, struct dt_text *text)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    dt_text_add(text, "r%016llx", (unsigned long long)bits);
}

static dt_status add(const json_t *value, int depth, struct dt_text *text)
{
    if (depth > DT_JSON_MAX_DEPTH)
        return dt_fail(DT_EUSAGE, "a stored value is nested deeper than %d levels",
                       DT_JSON_MAX_DEPTH);
    if (json_is_object(value))
        return add_object(value, depth, text);
    if (json_is_array(value))
        return add_array(value, depth, text);
    if (!json_is_real(value))
        return dt_json_text(value, text);
    add_real(json_real_value(value), text);
    return DT_OK;
}

dt_status dt_canonical_add(const json_t *value, struct dt_text *text)
{
    DT_TRY(add(value, 0, text));
    return dt_text_status(text);
}

dt_status dt_canonical_equal(const json_t *a, const json_t *b, bool *same)
{
    struct dt_text first = {0}, second = {0};
    dt_status status = dt_canonical_add(a, &first);
    if (status == DT_OK)
        status = dt_canonical_add(b, &second);
    if (status == DT_OK)
        *same = strcmp(dt_text_at(&first), dt_text_at(&second)) == 0;
    dt_text_fini(&first);
    dt_text_fini(&second);
    return status;
}
