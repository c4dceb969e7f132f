/* SPDX-License-Identifier: MIT */
/* A new version is the old one's bytes with some lines replaced: only lines that may be replaced are parsed. */
#include "db/best_int.h"

#include "db/entry_line_int.h"
#include "db/journal.h"

#include <stdlib.h>
#include <string.h>

#define HEADER                                                                                     \
    "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},\"incompat\":[],"          \
    "\"compat\":[],\"entries\":[\n"
#define CHECKSUM      ",\"checksum\":\"%08x\"}\n"
#define CHECKSUM_SIZE 24

#define KEEP (-1L)
#define DROP (-2L)

/* For each old line the entry that replaces it, or KEEP or DROP; for each entry whether it replaces a line. */
struct plan {
    long *line;
    bool *placed;
};

static dt_status place(const struct dt_best *best, const json_t *entry, long number,
                       struct plan *plan)
{
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    uint64_t id = 0;
    DT_TRY(dt_entry_id(entry, &id));
    for (long i = dt_best_find(best, id); i >= 0; i = dt_best_next(best, i)) {
        json_t *old = NULL;
        bool match = false;
        const struct dt_best_line *line = &best->lines[i];
        dt_status status = dt_entry_read(best->text.bytes + line->at, line->size,
                                         "the stored entry of the same id", &old);
        if (status == DT_EUSAGE)
            status = dt_fail(DT_ECORRUPT,
                             "%s ('dittune db rebuild --salvage' makes best.json without it)",
                             dt_message());
        if (status == DT_OK)
            status = dt_entry_match(old, json_object_get(entry, "key"), hard, &match);
        json_decref(old);
        DT_TRY(status);
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

static dt_status add(struct output *out, const char *line, size_t size, const json_t *entry)
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

static dt_status add_lines(const struct dt_best *best, const json_t *entries,
                           const struct plan *plan, struct output *out)
{
    for (size_t i = 0; i < best->count; i++)
        if (plan->line[i] == KEEP)
            DT_TRY(add(out, best->text.bytes + best->lines[i].at, best->lines[i].size, NULL));
        else if (plan->line[i] != DROP)
            DT_TRY(add(out, NULL, 0, json_array_get(entries, (size_t)plan->line[i])));
    for (size_t i = 0; i < json_array_size(entries); i++)
        if (!plan->placed[i])
            DT_TRY(add(out, NULL, 0, json_array_get(entries, i)));
    return DT_OK;
}

static dt_status add_file(const struct dt_best *best, const json_t *entries,
                          const struct plan *plan, struct dt_text *text)
{
    struct output out = {.text = text};
    bool old = best->text.size > 0;
    size_t start = text->size;
    dt_text_add_bytes(text, old ? best->text.bytes : HEADER, old ? best->header : strlen(HEADER));
    DT_TRY(add_lines(best, entries, plan, &out));
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

static int by_size(const void *a, const void *b)
{
    const struct spaced *one = a, *other = b;
    return (one->size < other->size) - (one->size > other->size);
}

/* Removes the largest spaces until the text is as many bytes shorter: the key has their hash, and the journal has them. False: there
 * was none. */
static bool drop_spaces(const json_t *entries, size_t bytes)
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
    qsort(spaced, i, sizeof *spaced, by_size);
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
        status = place(best, json_array_get(entries, i), (long)i, &plan);
    if (status == DT_OK)
        status = add_file(best, entries, &plan, text);
    while (status == DT_EUSAGE && text->size - start > DT_BEST_MAX_BYTES &&
           drop_spaces(entries, text->size - start - DT_BEST_MAX_BYTES)) {
        text->size = start;
        status = add_file(best, entries, &plan, text);
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
    dt_status status = add_file(best, NULL, &plan, text);
    free(plan.line);
    return status;
}
