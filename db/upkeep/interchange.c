/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/best_int.h"
#include "db/entry_line_int.h"
#include "db/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAJOR       1
#define MOST_VALUES ((size_t)4 << 20) /* some 100 bytes each once parsed */

dt_status dt_upkeep_export(const json_t *entries, struct dt_text *text)
{
    size_t i;
    const json_t *entry;
    dt_text_add(text,
                "{\"format\":\"dittune-export\",\"version\":{\"major\":%d,\"minor\":0},"
                "\"entries\":[",
                MAJOR);
    json_array_foreach(entries, i, entry)
    {
        char checksum[9];
        DT_TRY(dt_upkeep_checksum(entry, checksum));
        json_t *sealed = dt_upkeep_bare(entry);
        json_object_set_new(sealed, "checksum", json_string(checksum));
        dt_text_add(text, i > 0 ? ",\n" : "\n");
        dt_status status = dt_json_text(sealed, text);
        json_decref(sealed);
        DT_TRY(status);
    }
    dt_text_add(text, "\n]}\n");
    return dt_text_status(text);
}

static dt_status check_format(const json_t *root, const char *what)
{
    const char *format;
    json_t *version;
    int64_t major;
    enum dt_best_state state = DT_BEST_GOOD;
    DT_TRY(dt_json_string(root, what, "format", &format));
    if (strcmp(format, "dittune-best") == 0) {
        DT_TRY(dt_best_version(root, what, &state));
    } else if (strcmp(format, "dittune-export") == 0) {
        DT_TRY(dt_json_object(root, what, "version", &version));
        DT_TRY(dt_json_int(version, what, "major", 1, INT64_MAX, &major));
        state = major > MAJOR ? DT_BEST_NEWER : DT_BEST_GOOD;
    } else {
        return dt_fail(DT_EUSAGE,
                       "%s: 'format' is '%.80s', expected 'dittune-export' or 'dittune-best'", what,
                       format);
    }
    if (state == DT_BEST_NEWER)
        return dt_fail(DT_ECORRUPT, "%s was written by a newer dittune: use that one", what);
    return DT_OK;
}

bool dt_upkeep_line(const char **at, const char *stop, const char **line, size_t *size)
{
    while (*at < stop) {
        uint64_t id;
        const char *end = memchr(*at, '\n', (size_t)(stop - *at));
        end = end != NULL ? end : stop;
        *line = *at;
        *size = (size_t)(end - *at);
        *size -= *size > 0 && end[-1] == ',';
        *at = end < stop ? end + 1 : stop;
        if (dt_entry_is_line(*line, *size, &id))
            return true;
    }
    return false;
}

/* Removes the crc from entries whose line confirms it; false: the file does not have one line per entry. */
static bool compare_lines(const struct dt_text *text, const json_t *entries)
{
    const char *at = dt_text_at(text), *stop = at + text->size, *line;
    size_t size, n = 0;
    while (dt_upkeep_line(&at, stop, &line, &size))
        n++;
    if (n != json_array_size(entries))
        return false;
    at = dt_text_at(text);
    for (size_t i = 0; i < n && dt_upkeep_line(&at, stop, &line, &size); i++)
        if (dt_entry_is_whole(line, size))
            json_object_del(json_array_get(entries, i), "crc");
    return true;
}

/* A crc covers bytes, which are lost when another program laid the file out. It is still confirmed when dittune would
 * write the same bytes, but a program that writes 1.4 instead of 1.3999999999999999 damaged nothing. */
static dt_status drop_crcs(const json_t *entries, const char *what, struct dt_upkeep *upkeep)
{
    size_t i, n = 0;
    json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        dt_status status = dt_upkeep_check(entry, what);
        if (status == DT_EUSAGE || !dt_json_has(entry, "crc")) /* reported when it is merged */
            continue;
        if (status == DT_OK)
            status = dt_upkeep_seal(entry, what);
        if (status != DT_EUSAGE)
            DT_TRY(status);
        else if (json_object_del(entry, "crc") == 0)
            n++;
    }
    if (n > 0)
        dt_upkeep_say(upkeep, DT_TELL_NOTE,
                      "%s: another program laid it out, so the 'crc' of %zu of its %zu entries "
                      "cannot be compared: they are checked for their types alone",
                      what, n, json_array_size(entries));
    return DT_OK;
}

static dt_status check_crcs(const char *path, const json_t *root, const char *what,
                            struct dt_upkeep *upkeep)
{
    const json_t *entries = json_object_get(root, "entries");
    const char *format = json_string_value(json_object_get(root, "format"));
    struct dt_text text = {0};
    bool there = false;
    if (strcmp(format, "dittune-best") != 0)
        return DT_OK;
    dt_status status = dt_file_read(AT_FDCWD, ".", path, DT_BEST_MAX_BYTES, &text, &there);
    if (status == DT_OK && !compare_lines(&text, entries))
        status = drop_crcs(entries, what, upkeep);
    dt_text_fini(&text);
    return status;
}

dt_status dt_upkeep_read(const char *path, struct dt_upkeep *upkeep, json_t **entries)
{
    const struct dt_json_limits limits = {.bytes = DT_BEST_MAX_BYTES, .values = MOST_VALUES};
    json_t *root = NULL, *array = NULL;
    struct dt_text what = {0};
    dt_text_add(&what, "the file %s", path);
    DT_TRY(dt_text_status(&what));
    dt_status status = dt_json_read_within(path, limits, "the file", &root);
    if (status == DT_OK)
        status = check_format(root, dt_text_at(&what));
    if (status == DT_OK)
        status = dt_json_array(root, dt_text_at(&what), "entries", &array);
    if (status == DT_OK && json_array_size(array) > DT_BEST_MAX_ENTRIES)
        status = dt_fail(DT_EUSAGE, "%s has more than the %d entries allowed", dt_text_at(&what),
                         DT_BEST_MAX_ENTRIES);
    if (status == DT_OK)
        status = check_crcs(path, root, dt_text_at(&what), upkeep);
    if (status == DT_OK)
        *entries = json_incref(array);
    json_decref(root);
    dt_text_fini(&what);
    return status;
}
