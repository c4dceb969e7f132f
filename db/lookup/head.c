/* SPDX-License-Identifier: MIT */
/* A line has some kilobytes, of which a look-up without an exact answer needs the first few fields: only these are
 * located by their brackets and parsed. Most lines are ruled out before that, by the bytes of their key. */
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

static bool ends_word(char c)
{
    return is_space(c) || c == ',' || c == '}' || c == ']';
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
    while (cursor->at < cursor->end && !ends_word(*cursor->at))
        cursor->at++;
    return true;
}

struct span {
    const char *text;
    size_t size;
};

static bool is(struct span span, const char *word)
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

static dt_status parse(struct span value, json_t **out)
{
    if (*out != NULL)
        return dt_fail(DT_EUSAGE, "an entry has a field twice");
    return dt_json_parse(value.text, value.size, "an entry of the store", out);
}

static dt_status take(struct span name, struct span value, struct dt_head *head, int *left)
{
    json_t **out = is(name, "\"key\"")           ? &head->key
                   : is(name, "\"fingerprint\"") ? &head->fingerprint
                   : is(name, "\"plan\"")        ? &head->plan
                                                 : NULL;
    if (out == NULL && !is(name, "\"provisional\""))
        return DT_OK;
    --*left;
    if (out != NULL)
        return parse(value, out);
    head->provisional = is(value, "true");
    return DT_OK;
}

dt_status dt_head_read(const char *line, size_t size, struct dt_head *head)
{
    struct cursor cursor = {line, line + size};
    struct span name, value;
    struct dt_head read = {0};
    int left = 4;
    dt_status status = DT_OK;
    if (!skip_char(&cursor, '{'))
        status = dt_fail(DT_EUSAGE, "an entry of the store is no object");
    while (status == DT_OK && left > 0 && next_field(&cursor, &name, &value)) {
        status = take(name, value, &read, &left);
        if (!skip_char(&cursor, ','))
            break;
    }
    if (status == DT_OK && (!json_is_object(read.key) || !json_is_object(read.fingerprint) ||
                            !json_is_object(read.plan)))
        status = dt_fail(DT_EUSAGE, "an entry of the store has no key, fingerprint or plan");
    if (status != DT_OK) {
        dt_head_fini(&read);
        return status;
    }
    *head = read;
    return DT_OK;
}

void dt_head_fini(struct dt_head *head)
{
    json_decref(head->key);
    json_decref(head->fingerprint);
    json_decref(head->plan);
    *head = (struct dt_head){0};
}

/* No other spelling of these bytes has the same meaning. */
static bool is_plain(struct span span)
{
    for (size_t i = 0; i < span.size; i++)
        if (span.text[i] == '\\' || is_space(span.text[i]))
            return false;
    return true;
}

static double number(struct span span)
{
    double value = 0;
    for (size_t i = 0; i < span.size; i++) {
        if (span.text[i] < '0' || span.text[i] > '9')
            return 0;
        value = 10 * value + (span.text[i] - '0');
    }
    return value;
}

static bool is_asked(const struct dt_asked *asked, struct span name, struct span value)
{
    for (int i = 0; i < asked->fixed.count; i++)
        if (is(name, asked->fixed.name[i]))
            return is(value, asked->fixed.value[i]) || !is_plain(value);
    return !is_plain(name);
}

static bool is_carried(struct span name)
{
    static const char *const names[] = {
        "\"model\"",          "\"batch\"",  "\"devices\"", "\"max_bytes\"",
        "\"max_latency_ns\"", "\"worker\"", "\"space\"",   "\"job\""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is(name, names[i]))
            return true;
    return false;
}

/* Twice the tokens or half of them at most, with room for rounding. */
static bool is_near(const struct dt_asked *asked, double height, double width)
{
    double ratio = height * width / ((double)asked->workload.height * asked->workload.width);
    return !(height > 0) || !(width > 0) || (ratio < 2.001 && ratio > 0.499);
}

static bool key_may_match(struct cursor cursor, const struct dt_asked *asked)
{
    struct span name, value;
    double height = 0, width = 0;
    if (!skip_char(&cursor, '{'))
        return true;
    while (next_field(&cursor, &name, &value)) {
        if (is(name, "\"height\""))
            height = number(value);
        else if (is(name, "\"width\""))
            width = number(value);
        else if (!is_carried(name) && !is_asked(asked, name, value))
            return false;
        if (!skip_char(&cursor, ','))
            break;
    }
    return asked->foreign || is_near(asked, height, width);
}

bool dt_head_may_match(const char *line, size_t size, const struct dt_asked *asked)
{
    struct cursor cursor = {line, line + size};
    struct span name, value;
    if (!skip_char(&cursor, '{'))
        return false;
    while (next_field(&cursor, &name, &value)) {
        if (is(name, "\"key\""))
            return asked->any.worker
                       ? memmem(value.text, value.size, "\"worker\"", 8) != NULL
                       : key_may_match((struct cursor){value.text, value.text + value.size}, asked);
        if (!skip_char(&cursor, ','))
            break;
    }
    return true;
}
