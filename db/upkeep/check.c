/* SPDX-License-Identifier: MIT */
/* Foreign entries are untrusted: known fields must have their types. */
#include "db/upkeep/upkeep_int.h"

#include "db/canonical_int.h"
#include "db/entry_int.h"
#include "db/journal.h"

#include <stdio.h>
#include <string.h>

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_flag(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static bool is_object_or_null(const json_t *value)
{
    return json_is_object(value) || json_is_null(value);
}

static bool is_array(const json_t *value)
{
    return json_is_array(value);
}

/* A parameter's value. */
static bool are_plain(const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_object(value) || json_is_array(value) || json_is_null(value))
            return false;
    }
    return json_is_object(object);
}

/* The name of a journal, never a path. */
static bool is_file_name(const json_t *value)
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "._:+-";
    const char *name = json_string_value(value);
    return name != NULL && name[0] != '.' && strlen(name) < 200 &&
           name[strspn(name, allowed)] == '\0';
}

static const struct row {
    const char *name;
    bool (*right)(const json_t *value);
    const char *expected;
} rows[] = {
    {"plan", are_plain, "an object of numbers, words and true or false"},
    {"verdict", is_text, "a string"},
    {"provisional", is_flag, "true or false"},
    {"figures", is_object_or_null, "an object or null"},
    {"default", is_object_or_null, "an object or null"},
    {"baseline", is_object_or_null, "an object or null"},
    {"gain", is_object_or_null, "an object or null"},
    {"noise", is_object_or_null, "an object or null"},
    {"top", is_array, "an array"},
    {"pareto", is_array, "an array"},
    {"space", is_object_or_null, "an object or null"},
    {"network", is_object_or_null, "an object or null"},
    {"journal", is_file_name, "the name of a journal"},
};

static const struct row parts[] = {
    {"soft", is_object, "an object"},
    {"info", is_object, "an object"},
};

static dt_status check_rows(const json_t *object, const struct row *row, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(object, row[i].name);
        if (value != NULL && !row[i].right(value))
            return dt_fail(DT_EUSAGE, "%s: '%s' is not %s", what, row[i].name, row[i].expected);
    }
    return DT_OK;
}

dt_status dt_upkeep_check(const json_t *entry, const char *what)
{
    DT_TRY(dt_entry_check(entry, what));
    DT_TRY(check_rows(entry, rows, sizeof rows / sizeof rows[0], what));
    return check_rows(json_object_get(entry, "fingerprint"), parts, sizeof parts / sizeof parts[0],
                      what);
}

dt_status dt_upkeep_checksum(const json_t *entry, char hex[9])
{
    struct dt_text text = {0};
    json_t *bare = dt_upkeep_bare(entry);
    dt_status status =
        bare != NULL ? dt_canonical_add(bare, &text) : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        snprintf(hex, 9, "%08x", (unsigned)dt_crc32c(dt_text_at(&text), text.size));
    json_decref(bare);
    dt_text_fini(&text);
    return status;
}

/* The crc of the line that would be written: right when another program changed only white space and writes numbers in
 * the same way. */
static dt_status line_crc(const json_t *entry, char hex[9])
{
    struct dt_text line = {0};
    dt_status status = dt_entry_write(entry, &line);
    if (status == DT_OK)
        snprintf(hex, 9, "%.8s", line.bytes + line.size - 10);
    dt_text_fini(&line);
    return status;
}

dt_status dt_upkeep_seal(const json_t *entry, const char *what)
{
    bool exported = dt_json_has(entry, "checksum");
    const char *name = exported ? "checksum" : "crc";
    const char *given = json_string_value(json_object_get(entry, name));
    char hex[9] = "";
    if (!dt_json_has(entry, name))
        return DT_OK;
    DT_TRY(exported ? dt_upkeep_checksum(entry, hex) : line_crc(entry, hex));
    if (given == NULL || strcmp(given, hex) != 0)
        return dt_fail(DT_EUSAGE,
                       "%s: its '%s' is not that of its fields: it was changed or damaged (without "
                       "it, it is taken as it is)",
                       what, name);
    return DT_OK;
}

dt_status dt_upkeep_name(const json_t *entry, struct dt_text *name)
{
    const json_t *key = json_object_get(entry, "key"), *model = json_object_get(key, "model");
    const json_t *worker = json_object_get(key, "worker");
    const char *word = json_is_string(model)    ? json_string_value(model)
                       : json_is_string(worker) ? json_string_value(worker)
                                                : "entry";
    uint64_t id = 0;
    DT_TRY(dt_entry_id(entry, &id));
    dt_text_add(name, "%.80s [%016llx]", word, (unsigned long long)id);
    return dt_text_status(name);
}
