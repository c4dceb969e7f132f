/* SPDX-License-Identifier: MIT */
/* A line has some kilobytes, of which a look-up without an exact answer needs the first few fields:
 * only these are located by their brackets and parsed. Most lines are ruled out before that: the
 * members of the key are read one by one, without a tree, up to the first that differs. */
#include "db/lookup/lookup_int.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_space(*cursor->at))
        cursor->at++;
}

static bool skip_char(struct cursor *cursor, char wanted)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

/* From an opening quote to behind the closing one. */
static bool skip_string(struct cursor *cursor)
{
    for (cursor->at++; cursor->at < cursor->end; cursor->at++) {
        if (*cursor->at == '\\')
            cursor->at++;
        else if (*cursor->at == '"')
            break;
    }
    if (cursor->at >= cursor->end)
        return false;
    cursor->at++;
    return true;
}

/* Counts brackets of both kinds together; the parser checks that they match. */
static bool skip_nested(struct cursor *cursor)
{
    int depth = 0;
    while (cursor->at < cursor->end) {
        char c = *cursor->at;
        if (c == '"') {
            if (!skip_string(cursor))
                return false;
            continue;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        cursor->at++;
        if (depth == 0)
            return true;
    }
    return false;
}

static bool skip_value(struct cursor *cursor)
{
    skip_space(cursor);
    if (cursor->at == cursor->end)
        return false;
    if (*cursor->at == '"')
        return skip_string(cursor);
    if (*cursor->at == '{' || *cursor->at == '[')
        return skip_nested(cursor);
    while (cursor->at < cursor->end && !is_space(*cursor->at) && *cursor->at != ',' &&
           *cursor->at != '}' && *cursor->at != ']')
        cursor->at++;
    return true;
}

struct span {
    const char *text;
    size_t size;
};

static bool span_is(struct span span, const char *word)
{
    return span.size == strlen(word) && memcmp(span.text, word, span.size) == 0;
}

/* The next "name": value of an object. */
static bool next_field(struct cursor *cursor, struct span *name, struct span *value)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != '"')
        return false;
    name->text = cursor->at;
    if (!skip_string(cursor))
        return false;
    name->size = (size_t)(cursor->at - name->text);
    if (!skip_char(cursor, ':'))
        return false;
    skip_space(cursor);
    value->text = cursor->at;
    if (!skip_value(cursor))
        return false;
    value->size = (size_t)(cursor->at - value->text);
    return true;
}

static dt_status field_take(struct span name, struct span value, struct dt_head *head, int *left)
{
    json_t **out = span_is(name, "\"key\"")           ? &head->key
                   : span_is(name, "\"fingerprint\"") ? &head->fingerprint
                   : span_is(name, "\"plan\"")        ? &head->plan
                                                      : NULL;
    if (out == NULL && !span_is(name, "\"provisional\""))
        return DT_OK;
    --*left;
    if (out == NULL)
        head->provisional = span_is(value, "true");
    else if (*out != NULL)
        return dt_fail(DT_EUSAGE, "an entry has a field twice");
    return out != NULL ? dt_json_parse(value.text, value.size, "an entry of the store", out)
                       : DT_OK;
}

dt_status dt_head_read(const char *line, size_t size, struct dt_head *head)
{
    struct cursor cursor = {line, line + size};
    struct span name, value;
    struct dt_head parts = {0};
    int left = 4;
    dt_status status = DT_OK;
    if (!skip_char(&cursor, '{'))
        status = dt_fail(DT_EUSAGE, "an entry of the store is no object");
    while (status == DT_OK && left > 0 && next_field(&cursor, &name, &value)) {
        status = field_take(name, value, &parts, &left);
        if (!skip_char(&cursor, ','))
            break;
    }
    if (status == DT_OK && (!json_is_object(parts.key) || !json_is_object(parts.fingerprint) ||
                            !json_is_object(parts.plan)))
        status = dt_fail(DT_EUSAGE, "an entry of the store has no key, fingerprint or plan");
    if (status != DT_OK) {
        dt_head_fini(&parts);
        return status;
    }
    *head = parts;
    return DT_OK;
}

void dt_head_fini(struct dt_head *head)
{
    json_decref(head->key);
    json_decref(head->fingerprint);
    json_decref(head->plan);
    *head = (struct dt_head){0};
}

/* Texts without an escape and words are values as they stand; only parsing tells about others. */
static bool span_may_be(struct span span, const json_t *value)
{
    if (span.text[0] == '"' && memchr(span.text, '\\', span.size) == NULL)
        return json_is_string(value) && span.size == json_string_length(value) + 2 &&
               memcmp(span.text + 1, json_string_value(value), span.size - 2) == 0;
    if (span.text[0] == 't' || span.text[0] == 'f')
        return json_is_boolean(value) && json_is_true(value) == (span.text[0] == 't');
    return true;
}

/* A whole number; 0: it is none. */
static double span_count(struct span span)
{
    double count = 0;
    for (size_t i = 0; i < span.size; i++) {
        if (span.text[i] < '0' || span.text[i] > '9')
            return 0;
        count = 10 * count + (span.text[i] - '0');
    }
    return count;
}

static bool key_may_match(struct cursor cursor, const struct dt_sought *wanted)
{
    struct span name, value;
    double height = 0, width = 0;
    int missing = wanted->must;
    bool more = skip_char(&cursor, '{');
    while (more && next_field(&cursor, &name, &value)) {
        const struct span bare = {name.text + 1, name.size - 2};
        int i = 0;
        while (i < wanted->count && (wanted->at[i].size != bare.size ||
                                     memcmp(wanted->at[i].name, bare.text, bare.size) != 0))
            i++;
        if (i == wanted->count
                ? !wanted->others && memchr(bare.text, '\\', bare.size) == NULL
                : wanted->at[i].value != NULL && !span_may_be(value, wanted->at[i].value))
            return false;
        missing -= i < wanted->must;
        if (span_is(name, "\"height\""))
            height = span_count(value);
        else if (span_is(name, "\"width\""))
            width = span_count(value);
        more = skip_char(&cursor, ',');
    }
    double ratio = wanted->cells > 0 ? height * width / wanted->cells : 0;
    return missing <= 0 && (ratio == 0 || (ratio < 2.001 && ratio > 0.499));
}

bool dt_head_may_match(const char *line, size_t size, const struct dt_sought *wanted)
{
    struct cursor cursor = {line, line + size};
    struct span name, value;
    bool more = skip_char(&cursor, '{');
    while (more && next_field(&cursor, &name, &value)) {
        if (span_is(name, "\"key\""))
            return key_may_match((struct cursor){value.text, value.text + value.size}, wanted);
        more = skip_char(&cursor, ',');
    }
    return true;
}
