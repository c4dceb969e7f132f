/* SPDX-License-Identifier: MIT */
#include "db/entry_line_int.h"

#include "base/rng.h"
#include "db/canonical_int.h"
#include "db/journal.h"
#include "db/snapshot.h"

#include <stdio.h>
#include <string.h>

#define HEAD      "{\"id\":\""
#define HEAD_SIZE 7
#define TAIL      ",\"crc\":\"%08x\"}"
#define TAIL_SIZE 18

static const json_t *hard_of(const json_t *entry)
{
    return json_object_get(json_object_get(entry, "fingerprint"), "hard");
}

static dt_status check_depth(const json_t *value, const char *what, int depth)
{
    const char *key;
    json_t *part;
    size_t i;
    if (depth > DT_ENTRY_MAX_DEPTH)
        return dt_fail(DT_EUSAGE, "%s is nested deeper than %d levels", what, DT_ENTRY_MAX_DEPTH);
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, part) DT_TRY(check_depth(part, what, depth + 1));
    if (json_is_array(value))
        json_array_foreach(value, i, part) DT_TRY(check_depth(part, what, depth + 1));
    return DT_OK;
}

/* Checks the strings of key and fingerprint, which are compared and printed; their depth is limited. */
static dt_status check_strings(const json_t *value, const char *what)
{
    const char *key;
    json_t *part;
    size_t i;
    if (json_is_string(value) && json_string_length(value) > DT_ENTRY_MAX_STRING)
        return dt_fail(DT_EUSAGE, "%s has a string of %zu bytes, at most %d are kept", what,
                       json_string_length(value), DT_ENTRY_MAX_STRING);
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, part)
        {
            if (strlen(key) > DT_ENTRY_MAX_STRING)
                return dt_fail(DT_EUSAGE, "%s has a name of %zu bytes, at most %d are kept", what,
                               strlen(key), DT_ENTRY_MAX_STRING);
            DT_TRY(check_strings(part, what));
        }
    if (json_is_array(value))
        json_array_foreach(value, i, part) DT_TRY(check_strings(part, what));
    return DT_OK;
}

dt_status dt_entry_check(const json_t *entry, const char *what)
{
    json_t *part;
    DT_TRY(dt_json_object(entry, what, "key", &part));
    DT_TRY(dt_json_object(entry, what, "plan", &part));
    DT_TRY(dt_json_object(entry, what, "fingerprint", &part));
    if (!json_is_object(json_object_get(part, "hard")))
        return dt_fail(DT_EUSAGE, "%s: 'fingerprint' has no object 'hard'", what);
    DT_TRY(check_depth(entry, what, 1));
    DT_TRY(check_strings(json_object_get(entry, "key"), what));
    return check_strings(part, what);
}

dt_status dt_entry_match(const json_t *entry, const json_t *key, const json_t *hard, bool *match)
{
    const json_t *its_key = json_object_get(entry, "key"), *its_hard = hard_of(entry);
    bool same = its_key != NULL && its_hard != NULL;
    if (same)
        DT_TRY(dt_canonical_equal(its_key, key, &same));
    if (same)
        DT_TRY(dt_canonical_equal(its_hard, hard, &same));
    *match = same;
    return DT_OK;
}

dt_status dt_store_id(const json_t *key, const json_t *hard, uint64_t *id)
{
    struct dt_text text = {0};
    dt_text_add(&text, "{\"hard\":");
    dt_status status = dt_canonical_add(hard, &text);
    dt_text_add(&text, ",\"key\":");
    if (status == DT_OK)
        status = dt_canonical_add(key, &text);
    dt_text_add(&text, "}");
    if (status == DT_OK)
        status = dt_text_status(&text);
    if (status == DT_OK)
        *id = dt_rng_stream(dt_text_at(&text));
    dt_text_fini(&text);
    return status;
}

dt_status dt_entry_id(const json_t *entry, uint64_t *id)
{
    return dt_store_id(json_object_get(entry, "key"), hard_of(entry), id);
}

static dt_status add_field(const char *name, const json_t *value, struct dt_text *text)
{
    json_t *string = json_string(name);
    dt_text_add(text, ",");
    dt_status status = dt_json_text(string, text);
    json_decref(string);
    dt_text_add(text, ":");
    return status == DT_OK ? dt_json_text(value, text) : status;
}

dt_status dt_entry_write(const json_t *entry, struct dt_text *text)
{
    uint64_t id = 0;
    const char *name;
    json_t *value, *again = NULL;
    size_t start = text->size;
    DT_TRY(dt_entry_id(entry, &id));
    dt_text_add(text, HEAD "%016llx\"", (unsigned long long)id);
    json_object_foreach((json_t *)entry, name,
                        value) if (strcmp(name, "id") != 0 && strcmp(name, "crc") != 0)
        DT_TRY(add_field(name, value, text));
    DT_TRY(dt_text_status(text));
    dt_text_add(text, TAIL, (unsigned)dt_crc32c(text->bytes + start, text->size - start));
    DT_TRY(dt_text_status(text));
    DT_TRY(dt_entry_read(text->bytes + start, text->size - start, "the new entry", &again));
    json_decref(again);
    return DT_OK;
}

static bool hex_digits(const char *text, int n, uint64_t *value)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        char c = text[i];
        if (c >= '0' && c <= '9')
            sum = sum << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            sum = sum << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *value = sum;
    return true;
}

bool dt_entry_is_line(const char *line, size_t size, uint64_t *id)
{
    uint64_t crc;
    if (size < DT_ENTRY_LEAST)
        return false;
    const char *tail = line + size - TAIL_SIZE;
    return memcmp(line, HEAD, HEAD_SIZE) == 0 && line[HEAD_SIZE + 16] == '"' &&
           hex_digits(line + HEAD_SIZE, 16, id) && memcmp(tail, TAIL, 8) == 0 &&
           hex_digits(tail + 8, 8, &crc) && memcmp(tail + 16, "\"}", 2) == 0;
}

bool dt_entry_is_whole(const char *line, size_t size)
{
    char tail[TAIL_SIZE + 1];
    if (size < DT_ENTRY_LEAST)
        return false;
    snprintf(tail, sizeof tail, TAIL, (unsigned)dt_crc32c(line, size - TAIL_SIZE));
    return memcmp(line + size - TAIL_SIZE, tail, TAIL_SIZE) == 0;
}

dt_status dt_entry_read(const char *line, size_t size, const char *what, json_t **entry)
{
    json_t *parsed = NULL;
    DT_TRY(dt_json_parse(line, size, what, &parsed));
    dt_status status = dt_entry_check(parsed, what);
    if (status == DT_OK)
        *entry = parsed;
    else
        json_decref(parsed);
    return status;
}
