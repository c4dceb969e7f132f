/* SPDX-License-Identifier: MIT */
/* Version 1 was one tree, parsed whole, in any spelling: its checksum is of the canonical entries. */
#include "db/best_int.h"

#include "db/canonical_int.h"
#include "db/entry_line_int.h"
#include "db/journal.h"

#include <stdio.h>
#include <string.h>

static dt_status check_entries(const json_t *root, const char *what)
{
    const char *checksum;
    char actual[9] = "";
    json_t *entries;
    struct dt_text text = {0};
    DT_TRY(dt_json_string(root, what, "checksum", &checksum));
    DT_TRY(dt_json_array(root, what, "entries", &entries));
    dt_status status = dt_canonical_add(entries, &text);
    if (status == DT_OK)
        snprintf(actual, sizeof actual, "%08x", (unsigned)dt_crc32c(dt_text_at(&text), text.size));
    dt_text_fini(&text);
    DT_TRY(status);
    if (strcmp(checksum, actual) != 0)
        return dt_fail(DT_EUSAGE, "%s: 'checksum' is '%s', but the entries give '%s'", what,
                       checksum, actual);
    return DT_OK;
}

/* Fields this version does not know are kept, in front of the entries. */
static dt_status add_header(const json_t *root, struct dt_text *text)
{
    static const char *const made[] = {"format",   "version", "incompat", "compat",
                                       "checksum", "entries", NULL};
    const char *name;
    json_t *value;
    dt_text_add(text, "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},"
                      "\"incompat\":[],\"compat\":[]");
    json_object_foreach((json_t *)root, name, value)
    {
        bool known = false;
        for (int i = 0; made[i] != NULL && !known; i++)
            known = strcmp(made[i], name) == 0;
        if (known)
            continue;
        json_t *string = json_string(name);
        dt_text_add(text, ",");
        dt_status status = dt_json_text(string, text);
        json_decref(string);
        DT_TRY(status);
        dt_text_add(text, ":");
        DT_TRY(dt_json_text(value, text));
    }
    dt_text_add(text, ",\"entries\":[");
    return DT_OK;
}

/* Lines that are not entries could never be answers: they are left in the old file and reported. */
static dt_status add_entries(const json_t *entries, struct dt_best *best)
{
    struct dt_text *text = &best->text;
    size_t i;
    const json_t *entry;
    const char *separator = "\n";
    json_array_foreach(entries, i, entry)
    {
        char what[48];
        snprintf(what, sizeof what, "entry %zu", i + 1);
        dt_status status = dt_entry_check(entry, what);
        if (status == DT_EUSAGE) {
            dt_text_add(&best->dropped, "%s\n", dt_message());
            continue;
        }
        DT_TRY(status);
        dt_text_add(text, "%s", separator);
        DT_TRY(dt_entry_write(entry, text));
        separator = ",\n";
    }
    return DT_OK;
}

dt_status dt_best_upgrade(const json_t *root, const char *what, struct dt_best *best)
{
    struct dt_text *text = &best->text;
    DT_TRY(check_entries(root, what));
    dt_text_clear(text);
    DT_TRY(add_header(root, text));
    DT_TRY(add_entries(json_object_get(root, "entries"), best));
    dt_text_add(text, "\n]");
    DT_TRY(dt_text_status(text));
    DT_TRY(dt_text_status(&best->dropped));
    dt_text_add(text, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text->bytes, text->size));
    return dt_text_status(text);
}
