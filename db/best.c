/* SPDX-License-Identifier: MIT */
#include "db/best_int.h"

#include "base/array.h"
#include "db/entry_line_int.h"
#include "db/file_int.h"
#include "db/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAJOR     2
#define MINOR     0
#define FORMAT    "{\"format\":\"dittune-best\",\"version\":{\"major\":"
#define OPENING   "\"entries\":[\n"
#define TAIL      ",\"checksum\":\"%08x\"}\n"
#define TAIL_SIZE 24

/* Version and incompat are at a fixed place in files that dittune wrote. BROKEN: undecided. */
static enum dt_best_state glance(const struct dt_text *text)
{
    char start[256];
    long long major = 0, minor;
    char word = '\0';
    snprintf(start, sizeof start, "%.*s", (int)sizeof start - 1, dt_text_at(text));
    int n = sscanf(start, FORMAT "%lld,\"minor\":%lld},\"incompat\":[%c", &major, &minor, &word);
    if (n >= 1 && major > MAJOR)
        return DT_BEST_NEWER;
    if (n < 3 || major < MAJOR)
        return DT_BEST_BROKEN;
    return word == ']' ? DT_BEST_GOOD : DT_BEST_NEWER;
}

dt_status dt_best_version(const json_t *root, const char *what, enum dt_best_state *state)
{
    const char *format;
    json_t *version, *incompat, *compat;
    int64_t major, minor;
    DT_TRY(dt_json_string(root, what, "format", &format));
    if (strcmp(format, "dittune-best") != 0)
        return dt_fail(DT_EUSAGE, "%s: 'format' is '%s', expected 'dittune-best'", what, format);
    DT_TRY(dt_json_object(root, what, "version", &version));
    DT_TRY(dt_json_int(version, what, "major", MAJOR, INT64_MAX, &major));
    DT_TRY(dt_json_int(version, what, "minor", 0, INT64_MAX, &minor));
    DT_TRY(dt_json_array(root, what, "incompat", &incompat));
    DT_TRY(dt_json_array(root, what, "compat", &compat));
    if (major > MAJOR || json_array_size(incompat) > 0)
        *state = DT_BEST_NEWER;
    else
        *state = minor == MINOR && json_array_size(compat) == 0 ? DT_BEST_GOOD : DT_BEST_READONLY;
    return DT_OK;
}

static dt_status check_checksum(const struct dt_text *text, const char *what)
{
    char tail[TAIL_SIZE + 1];
    if (text->size < TAIL_SIZE)
        return dt_fail(DT_EUSAGE, "%s is cut short: it has %zu bytes", what, text->size);
    size_t body = text->size - TAIL_SIZE;
    snprintf(tail, sizeof tail, TAIL, (unsigned)dt_crc32c(text->bytes, body));
    if (memcmp(text->bytes + body, tail, 13) != 0 || text->bytes[text->size - 1] != '\n')
        return dt_fail(DT_EUSAGE, "%s is cut short: it does not end with a checksum", what);
    if (memcmp(text->bytes + body, tail, TAIL_SIZE) != 0)
        return dt_fail(DT_EUSAGE, "%s is damaged: its 'checksum' is not that of its %zu bytes",
                       what, body);
    return DT_OK;
}

/* Header and footer joined are the file without its entries. */
static dt_status check_frame(const struct dt_best *best, const char *what,
                             enum dt_best_state *state)
{
    struct dt_text frame = {0};
    json_t *root = NULL, *entries;
    dt_text_add_bytes(&frame, best->text.bytes, best->header);
    dt_text_add_bytes(&frame, best->text.bytes + best->footer, best->text.size - best->footer);
    dt_status status = dt_text_status(&frame);
    if (status == DT_OK)
        status = dt_json_parse(dt_text_at(&frame), frame.size, what, &root);
    if (status == DT_OK)
        status = dt_best_version(root, what, state);
    if (status == DT_OK)
        status = dt_json_array(root, what, "entries", &entries);
    json_decref(root);
    dt_text_fini(&frame);
    return status;
}

/* The lines between header and footer, each but the last with a comma at its end. */
static dt_status find_lines(struct dt_best *best, const char *what)
{
    const char *bytes = best->text.bytes, *opening = strstr(bytes, OPENING);
    const char *first = memchr(bytes, '\n', best->text.size), *at = first + 1, *end;
    bool more = true; /* another line must follow, or may */
    if (opening == NULL || opening + strlen(OPENING) != at)
        return dt_fail(DT_EUSAGE, "%s: its first line does not end with '\"entries\":['", what);
    best->header = (size_t)(at - bytes);
    for (; *at != ']' || (more && best->count > 0); at = end + 1) {
        struct dt_best_line line = {.at = (size_t)(at - bytes)};
        end = memchr(at, '\n', best->text.size - line.at);
        size_t size = end != NULL ? (size_t)(end - at) : 0;
        bool comma = size > 0 && at[size - 1] == ',';
        line.size = size - comma;
        if (end == NULL || !more || !dt_entry_is_line(at, line.size, &line.id))
            return dt_fail(DT_EUSAGE, "%s: line %zu is not an entry", what, best->count + 2);
        if (best->count == DT_BEST_MAX_ENTRIES)
            return dt_fail(DT_EUSAGE, "%s has more than the %d entries allowed", what,
                           DT_BEST_MAX_ENTRIES);
        DT_TRY(DT_GROW(best->lines, best->count, 1));
        best->lines[best->count++] = line;
        more = comma;
    }
    best->footer = (size_t)(at - bytes);
    return DT_OK;
}

static size_t slot_of(const struct dt_best *best, uint64_t id)
{
    return (size_t)(id ^ id >> 32) & best->mask;
}

/* Open addressing; lines with one id are in file order. */
static dt_status make_table(struct dt_best *best)
{
    size_t slots = 16;
    while (slots < 2 * best->count)
        slots *= 2;
    best->mask = slots - 1;
    best->slots = calloc(slots, sizeof *best->slots);
    if (best->slots == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a store");
    for (size_t i = 0; i < best->count; i++) {
        size_t slot = slot_of(best, best->lines[i].id);
        while (best->slots[slot] != 0)
            slot = (slot + 1) & best->mask;
        best->slots[slot] = (uint32_t)i + 1;
    }
    return DT_OK;
}

static long probe(const struct dt_best *best, size_t slot, uint64_t id)
{
    for (; best->slots[slot] != 0; slot = (slot + 1) & best->mask)
        if (best->lines[best->slots[slot] - 1].id == id)
            return (long)best->slots[slot] - 1;
    return -1;
}

long dt_best_find(const struct dt_best *best, uint64_t id)
{
    return best->count > 0 ? probe(best, slot_of(best, id), id) : -1;
}

long dt_best_next(const struct dt_best *best, long i)
{
    uint64_t id = best->lines[i].id;
    size_t slot = slot_of(best, id);
    while (best->slots[slot] != (uint32_t)i + 1)
        slot = (slot + 1) & best->mask;
    return probe(best, (slot + 1) & best->mask, id);
}

static dt_status parse_lines(const char *what, struct dt_best *best)
{
    enum dt_best_state state = DT_BEST_BROKEN;
    if (best->text.size > DT_BEST_MAX_BYTES)
        return dt_fail(DT_EUSAGE, "%s is %zu bytes long, more than the %d allowed", what,
                       best->text.size, DT_BEST_MAX_BYTES);
    DT_TRY(check_checksum(&best->text, what));
    DT_TRY(find_lines(best, what));
    DT_TRY(check_frame(best, what, &state));
    DT_TRY(make_table(best));
    best->state = state;
    return DT_OK;
}

static void forget_lines(struct dt_best *best)
{
    free(best->lines);
    free(best->slots);
    best->lines = NULL;
    best->slots = NULL;
    best->count = 0;
}

/* A file of another form may be of a later version. */
static dt_status parse_other(const char *what, struct dt_best *best)
{
    struct dt_error error = {DT_OK, ""};
    json_t *root = NULL;
    enum dt_best_state state = DT_BEST_BROKEN;
    dt_error_keep(&error, DT_EUSAGE);
    dt_status status = dt_json_parse(dt_text_at(&best->text), best->text.size, what, &root);
    if (status == DT_OK)
        status = dt_best_version(root, what, &state);
    if ((status == DT_OK && state != DT_BEST_NEWER) ||
        (status == DT_EUSAGE && (best->text.size == 0 || best->text.bytes[0] == '{')))
        status = dt_error_raise(&error); /* more useful than the position of a JSON error */
    json_decref(root);
    if (status == DT_OK)
        best->state = state;
    return status;
}

dt_status dt_best_parse(const char *what, struct dt_best *best)
{
    dt_status status = DT_OK;
    enum dt_best_state seen = glance(&best->text);
    best->state = seen;
    if (seen != DT_BEST_NEWER)
        status = parse_lines(what, best);
    if (status == DT_EUSAGE && seen == DT_BEST_BROKEN) {
        forget_lines(best);
        status = parse_other(what, best);
    }
    if (status == DT_EUSAGE) {
        best->state = DT_BEST_BROKEN;
        status = DT_OK;
    } else if (status == DT_OK && best->state != DT_BEST_GOOD) {
        dt_fail(DT_ECORRUPT, "%s was written by a newer dittune: use that one, or another --db",
                what);
    }
    if (!dt_best_readable(best))
        forget_lines(best);
    return status;
}

bool dt_best_readable(const struct dt_best *best)
{
    return best->state == DT_BEST_GOOD || best->state == DT_BEST_READONLY;
}

dt_status dt_best_load(int directory, const char *path, const char *name, struct dt_best *best)
{
    struct dt_best loaded = {.state = DT_BEST_ABSENT};
    struct dt_text what = {0};
    bool there = false;
    dt_status status = dt_file_read(directory, path, name, DT_BEST_MAX_BYTES, &loaded.text, &there);
    if (status == DT_OK && there) {
        dt_text_add(&what, "the store %s/%s", path, name);
        status = dt_text_status(&what);
        if (status == DT_OK)
            status = dt_best_parse(dt_text_at(&what), &loaded);
    }
    dt_text_fini(&what);
    if (status == DT_OK)
        *best = loaded;
    else
        dt_best_fini(&loaded);
    return status;
}

void dt_best_fini(struct dt_best *best)
{
    forget_lines(best);
    dt_text_fini(&best->text);
    *best = (struct dt_best){.state = DT_BEST_ABSENT};
}
