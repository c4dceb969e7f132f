/* SPDX-License-Identifier: MIT */
/* A new version is the old one's bytes with some lines replaced: only lines that may be replaced
 * are parsed. */
#include "db/best_int.h"

#include "base/array.h"
#include "base/rng.h"
#include "db/canonical_int.h"
#include "db/file_int.h"
#include "db/journal.h"
#include "db/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an entry and its line */

#define LINE_HEAD      "{\"id\":\""
#define LINE_HEAD_SIZE 7
#define LINE_TAIL      ",\"crc\":\"%08x\"}"
#define LINE_TAIL_SIZE 18

static const json_t *hard_of(const json_t *entry)
{
    return json_object_get(json_object_get(entry, "fingerprint"), "hard");
}

/* The depth is limited; of key and fingerprint, which are compared and
 * printed, the strings, too. */
static dt_status values_check(const json_t *value, const char *what, int depth, bool strings)
{
    const char *key;
    json_t *part;
    size_t i;
    if (depth > DT_ENTRY_MAX_DEPTH)
        return dt_fail(DT_EUSAGE, "%s is nested deeper than %d levels", what, DT_ENTRY_MAX_DEPTH);
    if (strings && json_is_string(value) && json_string_length(value) > DT_ENTRY_MAX_STRING)
        return dt_fail(DT_EUSAGE, "%s has a string of %zu bytes, at most %d are kept", what,
                       json_string_length(value), DT_ENTRY_MAX_STRING);
    if (json_is_object(value))
        json_object_foreach((json_t *)value, key, part)
        {
            if (strings && strlen(key) > DT_ENTRY_MAX_STRING)
                return dt_fail(DT_EUSAGE, "%s has a name of %zu bytes, at most %d are kept", what,
                               strlen(key), DT_ENTRY_MAX_STRING);
            DT_TRY(values_check(part, what, depth + 1, strings));
        }
    if (json_is_array(value))
        json_array_foreach(value, i, part) DT_TRY(values_check(part, what, depth + 1, strings));
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
    DT_TRY(values_check(entry, what, 1, false));
    DT_TRY(values_check(json_object_get(entry, "key"), what, 2, true));
    return values_check(part, what, 2, true);
}

bool dt_entry_match(const json_t *entry, const json_t *key, const json_t *hard)
{
    return json_equal(json_object_get(entry, "key"), key) && json_equal(hard_of(entry), hard);
}

dt_status dt_store_id(const json_t *key, const json_t *hard, uint64_t *id)
{
    dt_auto_text text = {0};
    dt_text_add(&text, "{\"hard\":");
    DT_TRY(dt_canonical_add(hard, &text));
    dt_text_add(&text, ",\"key\":");
    DT_TRY(dt_canonical_add(key, &text));
    dt_text_add(&text, "}");
    DT_TRY(dt_text_status(&text));
    *id = dt_rng_stream(dt_text_at(&text));
    return DT_OK;
}

dt_status dt_entry_id(const json_t *entry, uint64_t *id)
{
    return dt_store_id(json_object_get(entry, "key"), hard_of(entry), id);
}

static dt_status field_add(const char *name, const json_t *value, struct dt_text *text)
{
    json_auto_t *string = json_string(name);
    dt_text_add(text, ",");
    DT_TRY(dt_json_text(string, text));
    dt_text_add(text, ":");
    return dt_json_text(value, text);
}

dt_status dt_entry_write(const json_t *entry, struct dt_text *text)
{
    uint64_t id = 0;
    const char *name;
    json_auto_t *again = NULL;
    json_t *value;
    size_t start = text->size;
    DT_TRY(dt_entry_id(entry, &id));
    dt_text_add(text, LINE_HEAD "%016llx\"", (unsigned long long)id);
    json_object_foreach((json_t *)entry, name,
                        value) if (strcmp(name, "id") != 0 && strcmp(name, "crc") != 0)
        DT_TRY(field_add(name, value, text));
    DT_TRY(dt_text_status(text));
    dt_text_add(text, LINE_TAIL, (unsigned)dt_crc32c(text->bytes + start, text->size - start));
    DT_TRY(dt_text_status(text));
    DT_TRY(dt_entry_read(text->bytes + start, text->size - start, "the new entry", &again));
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
    const char *tail = line + size - LINE_TAIL_SIZE;
    return memcmp(line, LINE_HEAD, LINE_HEAD_SIZE) == 0 && line[LINE_HEAD_SIZE + 16] == '"' &&
           hex_digits(line + LINE_HEAD_SIZE, 16, id) && memcmp(tail, LINE_TAIL, 8) == 0 &&
           hex_digits(tail + 8, 8, &crc) && memcmp(tail + 16, "\"}", 2) == 0;
}

bool dt_entry_is_whole(const char *line, size_t size)
{
    char tail[LINE_TAIL_SIZE + 1];
    if (size < DT_ENTRY_LEAST)
        return false;
    snprintf(tail, sizeof tail, LINE_TAIL, (unsigned)dt_crc32c(line, size - LINE_TAIL_SIZE));
    return memcmp(line + size - LINE_TAIL_SIZE, tail, LINE_TAIL_SIZE) == 0;
}

dt_status dt_entry_read(const char *line, size_t size, const char *what, json_t **entry)
{
    json_auto_t *parsed = NULL;
    DT_TRY(dt_json_parse(line, size, what, &parsed));
    DT_TRY(dt_entry_check(parsed, what));
    *entry = json_incref(parsed);
    return DT_OK;
}

/* ---- a version is read */

#define MAJOR         2
#define MINOR         0
#define FORMAT        "{\"format\":\"dittune-best\",\"version\":{\"major\":"
#define OPENING       "\"entries\":[\n"
#define CHECKSUM      ",\"checksum\":\"%08x\"}\n"
#define CHECKSUM_SIZE 24

/* Version and incompat are at a fixed place in files that dittune wrote. BROKEN: undecided. */
static enum dt_best_state version_glance(const struct dt_text *text)
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

static dt_status checksum_check(const struct dt_text *text, const char *what)
{
    char tail[CHECKSUM_SIZE + 1];
    if (text->size < CHECKSUM_SIZE)
        return dt_fail(DT_EUSAGE, "%s is cut short: it has %zu bytes", what, text->size);
    size_t body = text->size - CHECKSUM_SIZE;
    snprintf(tail, sizeof tail, CHECKSUM, (unsigned)dt_crc32c(text->bytes, body));
    if (memcmp(text->bytes + body, tail, 13) != 0 || text->bytes[text->size - 1] != '\n')
        return dt_fail(DT_EUSAGE, "%s is cut short: it does not end with a checksum", what);
    if (memcmp(text->bytes + body, tail, CHECKSUM_SIZE) != 0)
        return dt_fail(DT_EUSAGE, "%s is damaged: its 'checksum' is not that of its %zu bytes",
                       what, body);
    return DT_OK;
}

/* Header and footer joined are the file without its entries. */
static dt_status frame_check(const struct dt_best *best, const char *what,
                             enum dt_best_state *state)
{
    dt_auto_text frame = {0};
    json_auto_t *root = NULL;
    json_t *entries;
    dt_text_add_bytes(&frame, best->text.bytes, best->header);
    dt_text_add_bytes(&frame, best->text.bytes + best->footer, best->text.size - best->footer);
    DT_TRY(dt_text_status(&frame));
    DT_TRY(dt_json_parse(dt_text_at(&frame), frame.size, what, &root));
    DT_TRY(dt_best_version(root, what, state));
    return dt_json_array(root, what, "entries", &entries);
}

/* The lines between header and footer, each but the last with a comma at its end. */
static dt_status lines_find(struct dt_best *best, const char *what)
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
static dt_status table_make(struct dt_best *best)
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

static long slot_probe(const struct dt_best *best, size_t slot, uint64_t id)
{
    for (; best->slots[slot] != 0; slot = (slot + 1) & best->mask)
        if (best->lines[best->slots[slot] - 1].id == id)
            return (long)best->slots[slot] - 1;
    return -1;
}

long dt_best_find(const struct dt_best *best, uint64_t id)
{
    return best->count > 0 ? slot_probe(best, slot_of(best, id), id) : -1;
}

long dt_best_next(const struct dt_best *best, long i)
{
    uint64_t id = best->lines[i].id;
    size_t slot = slot_of(best, id);
    while (best->slots[slot] != (uint32_t)i + 1)
        slot = (slot + 1) & best->mask;
    return slot_probe(best, (slot + 1) & best->mask, id);
}

static dt_status lines_parse(const char *what, struct dt_best *best)
{
    enum dt_best_state state = DT_BEST_BROKEN;
    if (best->text.size > DT_BEST_MAX_BYTES)
        return dt_fail(DT_EUSAGE, "%s is %zu bytes long, more than the %d allowed", what,
                       best->text.size, DT_BEST_MAX_BYTES);
    DT_TRY(checksum_check(&best->text, what));
    DT_TRY(lines_find(best, what));
    DT_TRY(frame_check(best, what, &state));
    DT_TRY(table_make(best));
    best->state = state;
    return DT_OK;
}

static void lines_forget(struct dt_best *best)
{
    free(best->lines);
    free(best->slots);
    best->lines = NULL;
    best->slots = NULL;
    best->count = 0;
}

/* A file of another form may be of a later version. */
static dt_status other_parse(const char *what, struct dt_best *best)
{
    struct dt_error error = {DT_OK, ""};
    json_auto_t *root = NULL;
    enum dt_best_state state = DT_BEST_BROKEN;
    dt_error_keep(&error, DT_EUSAGE);
    dt_status status = dt_json_parse(dt_text_at(&best->text), best->text.size, what, &root);
    if (status == DT_OK)
        status = dt_best_version(root, what, &state);
    if ((status == DT_OK && state != DT_BEST_NEWER) ||
        (status == DT_EUSAGE && (best->text.size == 0 || best->text.bytes[0] == '{')))
        status = dt_error_raise(&error); /* more useful than the position of a JSON error */
    if (status == DT_OK)
        best->state = state;
    return status;
}

dt_status dt_best_parse(const char *what, struct dt_best *best)
{
    dt_status status = DT_OK;
    enum dt_best_state seen = version_glance(&best->text);
    best->state = seen;
    if (seen != DT_BEST_NEWER)
        status = lines_parse(what, best);
    if (status == DT_EUSAGE && seen == DT_BEST_BROKEN) {
        lines_forget(best);
        status = other_parse(what, best);
    }
    if (status == DT_EUSAGE) {
        best->state = DT_BEST_BROKEN;
        status = DT_OK;
    } else if (status == DT_OK && best->state != DT_BEST_GOOD) {
        dt_fail(DT_ECORRUPT, "%s was written by a newer dittune: use that one, or another --db",
                what);
    }
    if (!dt_best_readable(best))
        lines_forget(best);
    return status;
}

bool dt_best_readable(const struct dt_best *best)
{
    return best->state == DT_BEST_GOOD || best->state == DT_BEST_READONLY;
}

dt_status dt_best_load(int directory, const char *path, const char *name, struct dt_best *best)
{
    struct dt_best loaded = {.state = DT_BEST_ABSENT};
    dt_auto_text what = {0};
    bool there = false;
    dt_text_add(&what, "the store %s/%s", path, name);
    dt_status status = dt_text_status(&what);
    if (status == DT_OK)
        status = dt_file_read(directory, path, name, DT_BEST_MAX_BYTES, &loaded.text, &there);
    if (status == DT_OK && there)
        status = dt_best_parse(dt_text_at(&what), &loaded);
    if (status == DT_OK)
        *best = loaded;
    else
        dt_best_fini(&loaded);
    return status;
}

void dt_best_fini(struct dt_best *best)
{
    lines_forget(best);
    dt_text_fini(&best->text);
    *best = (struct dt_best){.state = DT_BEST_ABSENT};
}

/* ---- a new version */

#define HEADER                                                                                     \
    "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},\"incompat\":[],"          \
    "\"compat\":[],\"entries\":[\n"
#define KEEP (-1L)
#define DROP (-2L)

/* For each old line the entry that replaces it, or KEEP or DROP; for each entry whether it replaces
 * a line. */
struct plan {
    long *line;
    bool *placed;
};

static dt_status entry_place(const struct dt_best *best, const json_t *entry, long number,
                             struct plan *plan)
{
    uint64_t id = 0;
    DT_TRY(dt_entry_id(entry, &id));
    for (long i = dt_best_find(best, id); i >= 0; i = dt_best_next(best, i)) {
        json_auto_t *old = NULL;
        const struct dt_best_line *line = &best->lines[i];
        dt_status status = dt_entry_read(best->text.bytes + line->at, line->size,
                                         "the stored entry of the same id", &old);
        if (status == DT_EUSAGE)
            status = dt_fail(DT_ECORRUPT,
                             "%s ('dittune db rebuild --salvage' makes best.json without it)",
                             dt_message());
        DT_TRY(status);
        bool match = dt_entry_match(old, json_object_get(entry, "key"), hard_of(entry));
        if (!match)
            continue;
        plan->line[i] = plan->placed[number] ? DROP : number;
        plan->placed[number] = true;
    }
    return DT_OK;
}

struct output {
    struct dt_text *text;
    size_t count;
};

static dt_status line_add(struct output *out, const char *line, size_t size, const json_t *entry)
{
    if (out->count == DT_BEST_MAX_ENTRIES)
        return dt_fail(DT_EUSAGE, "the new best.json has more than the %d entries allowed",
                       DT_BEST_MAX_ENTRIES);
    if (out->count++ > 0)
        dt_text_add(out->text, ",\n");
    if (entry != NULL)
        return dt_entry_write(entry, out->text);
    dt_text_add_bytes(out->text, line, size);
    return DT_OK;
}

static dt_status lines_add(const struct dt_best *best, const json_t *entries,
                           const struct plan *plan, struct output *out)
{
    for (size_t i = 0; i < best->count; i++)
        if (plan->line[i] == KEEP)
            DT_TRY(line_add(out, best->text.bytes + best->lines[i].at, best->lines[i].size, NULL));
        else if (plan->line[i] != DROP)
            DT_TRY(line_add(out, NULL, 0, json_array_get(entries, (size_t)plan->line[i])));
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (!plan->placed[i])
            DT_TRY(line_add(out, NULL, 0, json_array_get(entries, i)));
    return DT_OK;
}

static dt_status file_add(const struct dt_best *best, const json_t *entries,
                          const struct plan *plan, struct dt_text *text)
{
    struct output out = {.text = text};
    bool old = best->text.size > 0;
    size_t start = text->size;
    dt_text_add_bytes(text, old ? best->text.bytes : HEADER, old ? best->header : strlen(HEADER));
    DT_TRY(lines_add(best, entries, plan, &out));
    dt_text_add(text, out.count > 0 ? "\n" : "");
    if (old)
        dt_text_add_bytes(text, best->text.bytes + best->footer,
                          best->text.size - CHECKSUM_SIZE - best->footer);
    else
        dt_text_add(text, "]");
    DT_TRY(dt_text_status(text));
    dt_text_add(text, CHECKSUM, (unsigned)dt_crc32c(text->bytes + start, text->size - start));
    DT_TRY(dt_text_status(text));
    if (text->size - start > DT_BEST_MAX_BYTES)
        return dt_fail(DT_EUSAGE, "the new best.json is %zu bytes long, more than the %d allowed",
                       text->size - start, DT_BEST_MAX_BYTES);
    return DT_OK;
}

struct spaced {
    json_t *entry; /* borrowed */
    size_t size;   /* bytes of its space */
};

static int by_space(const void *a, const void *b)
{
    const struct spaced *one = a, *other = b;
    return (one->size < other->size) - (one->size > other->size);
}

/* Removes the largest spaces until the text is as many bytes shorter: the key has their hash, and
 * the journal has them. False: there was none. */
static bool spaces_drop(const json_t *entries, size_t bytes)
{
    struct spaced *spaced = calloc(json_array_size(entries) + 1, sizeof *spaced);
    size_t i, dropped = 0, gone = 0;
    json_t *entry;
    if (spaced == NULL)
        return false;
    json_array_foreach(entries, i, entry)
    {
        const json_t *space = json_object_get(entry, "space");
        spaced[i] =
            (struct spaced){entry, space != NULL ? json_dumpb(space, NULL, 0, JSON_COMPACT) : 0};
    }
    qsort(spaced, i, sizeof *spaced, by_space);
    for (; gone < bytes && dropped < i && spaced[dropped].size > 0; dropped++) {
        gone += spaced[dropped].size;
        json_object_del(spaced[dropped].entry, "space");
    }
    free(spaced);
    return dropped > 0;
}

dt_status dt_best_put(const struct dt_best *best, const json_t *entries, struct dt_text *text)
{
    size_t n = json_array_size(entries), start = text->size;
    struct plan plan = {.line = calloc(best->count + 1, sizeof *plan.line),
                        .placed = calloc(n + 1, sizeof *plan.placed)};
    dt_status status = DT_OK;
    if (plan.line == NULL || plan.placed == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory while storing an entry");
    for (size_t i = 0; status == DT_OK && i < best->count; i++)
        plan.line[i] = KEEP;
    for (size_t i = 0; status == DT_OK && i < n; i++)
        status = entry_place(best, json_array_get(entries, i), (long)i, &plan);
    if (status == DT_OK)
        status = file_add(best, entries, &plan, text);
    while (status == DT_EUSAGE && text->size - start > DT_BEST_MAX_BYTES &&
           spaces_drop(entries, text->size - start - DT_BEST_MAX_BYTES)) {
        text->size = start;
        status = file_add(best, entries, &plan, text);
    }
    free(plan.line);
    free(plan.placed);
    return status;
}

dt_status dt_best_drop(const struct dt_best *best, const bool drop[], struct dt_text *text)
{
    bool none = false; /* is placed */
    struct plan plan = {.line = calloc(best->count + 1, sizeof *plan.line), .placed = &none};
    if (plan.line == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while removing an entry");
    for (size_t i = 0; i < best->count; i++)
        plan.line[i] = drop[i] ? DROP : KEEP;
    dt_status status = file_add(best, NULL, &plan, text);
    free(plan.line);
    return status;
}
