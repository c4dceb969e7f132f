/* SPDX-License-Identifier: MIT */
#include "db/best_int.h"

#include "db/canonical_int.h"
#include "db/file_int.h"
#include "db/journal.h"

#include <stdio.h>
#include <string.h>

#define MAJOR 1
#define MINOR 0

static dt_status checksum_of(const json_t *entries, char hex[9])
{
    struct dt_text text = {0};
    dt_status status = dt_canonical_add(entries, &text);
    if (status == DT_OK)
        snprintf(hex, 9, "%08x", (unsigned)dt_crc32c(dt_text_at(&text), text.size));
    dt_text_fini(&text);
    return status;
}

/* Version before checksum: a newer major version may define the rest differently. */
static dt_status check_version(const json_t *root, const char *what, enum dt_best_state *state)
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
    if (major == MAJOR && json_array_size(incompat) == 0) {
        *state = minor == MINOR && json_array_size(compat) == 0 ? DT_BEST_GOOD : DT_BEST_READONLY;
        return DT_OK;
    }
    *state = DT_BEST_NEWER;
    return DT_OK;
}

static dt_status check_entries(const json_t *root, const char *what)
{
    const char *checksum;
    char actual[9];
    json_t *entries;
    DT_TRY(dt_json_string(root, what, "checksum", &checksum));
    DT_TRY(dt_json_array(root, what, "entries", &entries));
    DT_TRY(checksum_of(entries, actual));
    if (strcmp(checksum, actual) != 0)
        return dt_fail(DT_EUSAGE, "%s: 'checksum' is '%s', but the entries give '%s'", what,
                       checksum, actual);
    return DT_OK;
}

/* DT_EUSAGE: broken. */
static dt_status parse(const struct dt_text *text, const char *what, json_t **root,
                       enum dt_best_state *state)
{
    json_t *tree = NULL;
    dt_status status = dt_json_parse(dt_text_at(text), text->size, what, &tree);
    if (status == DT_OK)
        status = check_version(tree, what, state);
    if (status == DT_OK && *state != DT_BEST_NEWER)
        status = check_entries(tree, what);
    if (status == DT_OK && *state != DT_BEST_GOOD)
        dt_fail(DT_ECORRUPT, "%s was written by a newer dittune: use that one, or another --db",
                what);
    if (status != DT_OK || *state == DT_BEST_NEWER) {
        json_decref(tree);
        tree = NULL;
    }
    *root = tree;
    return status;
}

dt_status dt_best_load(int directory, const char *path, const char *name, struct dt_best *best)
{
    struct dt_best loaded = {.state = DT_BEST_ABSENT};
    struct dt_text what = {0};
    bool there = false;
    dt_status status = dt_file_read(directory, path, name, DT_JSON_MAX_BYTES, &loaded.text, &there);
    if (status == DT_OK && there) {
        dt_text_add(&what, "the store %s/%s", path, name);
        status = parse(&loaded.text, dt_text_at(&what), &loaded.root, &loaded.state);
        if (status == DT_EUSAGE) {
            loaded.state = DT_BEST_BROKEN;
            status = DT_OK;
        }
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
    json_decref(best->root);
    dt_text_fini(&best->text);
    *best = (struct dt_best){.state = DT_BEST_ABSENT};
}

json_t *dt_best_new(void)
{
    return json_pack("{s:s, s:{s:i, s:i}, s:[], s:[], s:s, s:[]}", "format", "dittune-best",
                     "version", "major", MAJOR, "minor", MINOR, "incompat", "compat", "checksum",
                     "", "entries");
}

static dt_status add_entries(const json_t *entries, struct dt_text *text)
{
    size_t i;
    const json_t *entry;
    dt_text_add(text, "[");
    json_array_foreach(entries, i, entry)
    {
        dt_text_add(text, i > 0 ? ",\n" : "\n");
        DT_TRY(dt_json_text(entry, text));
    }
    dt_text_add(text, "\n]");
    return DT_OK;
}

/* Fields this version does not know are written as they were read. */
static dt_status add_field(const char *key, const json_t *value, struct dt_text *text)
{
    json_t *name = json_string(key);
    dt_status status = dt_json_text(name, text);
    json_decref(name);
    DT_TRY(status);
    dt_text_add(text, ":");
    return strcmp(key, "entries") == 0 ? add_entries(value, text) : dt_json_text(value, text);
}

static dt_status add_root(json_t *root, struct dt_text *text)
{
    char checksum[9];
    const char *key, *comma = "{";
    json_t *value;
    DT_TRY(checksum_of(json_object_get(root, "entries"), checksum));
    if (json_object_set_new(root, "checksum", json_string(checksum)) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while writing JSON");
    json_object_foreach(root, key, value)
    {
        dt_text_add(text, "%s", comma);
        DT_TRY(add_field(key, value, text));
        comma = ",";
    }
    dt_text_add(text, "}\n");
    return dt_text_status(text);
}

dt_status dt_best_text(json_t *root, struct dt_text *text)
{
    json_t *again = NULL;
    enum dt_best_state state;
    dt_text_clear(text);
    DT_TRY(add_root(root, text));
    DT_TRY(parse(text, "the new best.json", &again, &state));
    json_decref(again);
    return DT_OK;
}

dt_status dt_best_match(const json_t *entry, const json_t *key, const json_t *hard, bool *match)
{
    const json_t *its_key = json_object_get(entry, "key");
    const json_t *its_hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    bool same = its_key != NULL && its_hard != NULL;
    if (same)
        DT_TRY(dt_canonical_equal(its_key, key, &same));
    if (same)
        DT_TRY(dt_canonical_equal(its_hard, hard, &same));
    *match = same;
    return DT_OK;
}

dt_status dt_best_check_entry(const json_t *entry)
{
    json_t *part;
    DT_TRY(dt_json_object(entry, "the entry", "key", &part));
    DT_TRY(dt_json_object(entry, "the entry", "plan", &part));
    DT_TRY(dt_json_object(entry, "the entry", "fingerprint", &part));
    return dt_json_object(part, "the entry's fingerprint", "hard", &part);
}
