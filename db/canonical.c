/* SPDX-License-Identifier: MIT */
#include "db/canonical_int.h"

#include <stdlib.h>
#include <string.h>

static dt_status value_add(const json_t *value, int depth, struct dt_text *text);

static dt_status array_add(const json_t *array, int depth, struct dt_text *text)
{
    size_t i;
    json_t *value;
    dt_text_add(text, "[");
    json_array_foreach(array, i, value)
    {
        if (i > 0)
            dt_text_add(text, ",");
        DT_TRY(value_add(value, depth + 1, text));
    }
    dt_text_add(text, "]");
    return DT_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static dt_status object_add(const json_t *object, int depth, struct dt_text *text)
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
        json_auto_t *name = json_string(keys[i]);
        status = dt_json_text(name, text);
        dt_text_add(text, ":");
        if (status == DT_OK)
            status = value_add(json_object_get(object, keys[i]), depth + 1, text);
    }
    dt_text_add(text, n > 0 ? "}" : "{}");
    free(keys);
    return status;
}

static dt_status value_add(const json_t *value, int depth, struct dt_text *text)
{
    if (depth > DT_JSON_MAX_DEPTH)
        return dt_fail(DT_EUSAGE, "a stored value is nested deeper than %d levels",
                       DT_JSON_MAX_DEPTH);
    if (json_is_object(value))
        return object_add(value, depth, text);
    if (json_is_array(value))
        return array_add(value, depth, text);
    if (!json_is_real(value))
        return dt_json_text(value, text);
    double real = json_real_value(value);
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    dt_text_add(text, "r%016llx", (unsigned long long)bits);
    return DT_OK;
}

dt_status dt_canonical_add(const json_t *value, struct dt_text *text)
{
    DT_TRY(value_add(value, 0, text));
    return dt_text_status(text);
}
