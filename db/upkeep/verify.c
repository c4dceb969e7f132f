/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/best_int.h"
#include "db/file_int.h"
#include "db/journal.h"
#include "db/outline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Number of lines with a right crc, which a rebuild may use although the file is damaged. */
static size_t lines_count(const struct dt_text *text)
{
    size_t n = 0, size;
    const char *at = dt_text_at(text), *stop = at + text->size, *line;
    while (dt_upkeep_line(&at, stop, &line, &size))
        n += dt_entry_is_whole(line, size);
    return n;
}

/* A file must have at most one entry per key and hardware. */
static dt_status alone_check(const struct dt_best *best, size_t i, const json_t *entry,
                             const char *name, struct dt_upkeep *upkeep)
{
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    for (long k = dt_best_find(best, best->lines[i].id); k >= 0 && (size_t)k < i;
         k = dt_best_next(best, k)) {
        json_t *other = NULL;
        dt_status status = dt_entry_read(best->text.bytes + best->lines[k].at, best->lines[k].size,
                                         "a line before", &other);
        if (status == DT_EUSAGE) /* reported with that line */
            continue;
        DT_TRY(status);
        bool same = dt_entry_match(other, json_object_get(entry, "key"), hard);
        json_decref(other);
        if (!same)
            continue;
        dt_upkeep_say(upkeep, DT_TELL_BROKEN,
                      "%s: line %zu has the key and hardware of line %ld: 'dittune db rebuild "
                      "--salvage' keeps the better of them",
                      name, i + 2, k + 2);
        break;
    }
    return DT_OK;
}

static dt_status line_check(const struct dt_best *best, size_t i, const char *name,
                            struct dt_upkeep *upkeep)
{
    const struct dt_best_line *line = &best->lines[i];
    const char *bytes = best->text.bytes + line->at;
    json_t *entry = NULL;
    char what[64];
    uint64_t id = 0;
    snprintf(what, sizeof what, "%s: line %zu", name, i + 2);
    if (!dt_entry_is_whole(bytes, line->size))
        dt_upkeep_say(upkeep, DT_TELL_BROKEN, "%s: its 'crc' is not that of its bytes", what);
    dt_status status = dt_entry_read(bytes, line->size, what, &entry);
    if (status == DT_OK && best->state != DT_BEST_READONLY) /* a later version may know better */
        status = dt_upkeep_check(entry, what);
    if (status == DT_EUSAGE) {
        dt_upkeep_say_error(upkeep, DT_TELL_BROKEN, "");
        status = DT_OK;
    } else if (status == DT_OK) {
        status = dt_entry_id(entry, &id);
        if (status == DT_OK && id != line->id)
            dt_upkeep_say(upkeep, DT_TELL_BROKEN,
                          "%s: its 'id' is %016llx, but its key and hardware give %016llx", what,
                          (unsigned long long)line->id, (unsigned long long)id);
        if (status == DT_OK)
            status = alone_check(best, i, entry, name, upkeep);
    }
    json_decref(entry);
    return status;
}

static dt_status lines_check(const struct dt_best *best, const char *name, struct dt_upkeep *upkeep)
{
    int broken = upkeep->broken;
    for (size_t i = 0; i < best->count; i++)
        DT_TRY(line_check(best, i, name, upkeep));
    if (best->state != DT_BEST_GOOD)
        dt_upkeep_say(upkeep, DT_TELL_NOTE, "%s: a newer dittune wrote it, this one only reads it",
                      name);
    if (upkeep->broken == broken)
        dt_upkeep_say(upkeep, DT_TELL_DONE, "%s: %zu entr%s, all checksums right", name,
                      best->count, best->count == 1 ? "y" : "ies");
    return DT_OK;
}

static dt_status best_check(int fd, const char *directory, const char *name,
                            struct dt_upkeep *upkeep)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    dt_status status = dt_best_load(fd, directory, name, &best);
    if (status == DT_EIO) {
        dt_upkeep_say_error(upkeep, DT_TELL_BROKEN, "");
        return DT_OK;
    }
    if (status == DT_OK && dt_best_readable(&best))
        status = lines_check(&best, name, upkeep);
    else if (status == DT_OK && best.state == DT_BEST_NEWER)
        dt_upkeep_say_error(upkeep, DT_TELL_BROKEN, "");
    else if (status == DT_OK && best.state == DT_BEST_BROKEN)
        dt_upkeep_say(upkeep, DT_TELL_BROKEN,
                      "%s; %zu of its lines are whole, 'dittune db rebuild --salvage' uses them",
                      dt_message(), lines_count(&best.text));
    dt_best_fini(&best);
    return status;
}

/* A torn end comes from a killed writer; nothing acknowledged is lost. */
static void damage_tell(struct dt_upkeep *upkeep, const char *name,
                        const struct dt_journal_reader *reader)
{
    if (reader->torn)
        dt_upkeep_say(upkeep, DT_TELL_NOTE,
                      "%s: line %d is half a record: its writer was stopped there", name,
                      reader->line);
    else
        dt_upkeep_say(upkeep, DT_TELL_BROKEN, "%s: line %d does not match its crc", name,
                      reader->line);
}

/* gc removed the file after it was listed, which is no error. */
static bool is_gone(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

struct totals {
    struct dt_upkeep *upkeep;
    int journals;
    long long records;
};

static dt_status journal_check(struct totals *totals, const char *path, const char *name)
{
    struct dt_journal_reader reader = {.path = path, .shows_damage = true};
    json_int_t last = -1;
    int records = 0;
    while (dt_journal_next(&reader)) {
        const json_t *seq = json_object_get(reader.record, "seq");
        records += reader.record != NULL;
        if (reader.record == NULL)
            damage_tell(totals->upkeep, name, &reader);
        else if (!json_is_integer(seq) || json_integer_value(seq) <= last)
            dt_upkeep_say(totals->upkeep, DT_TELL_BROKEN, "%s: record %d is out of order", name,
                          records);
        else
            last = json_integer_value(seq);
    }
    dt_status status = dt_journal_end(&reader);
    totals->records += records;
    if (status == DT_EIO && is_gone(path))
        return DT_OK;
    totals->journals++;
    if (status == DT_EIO)
        dt_upkeep_say_error(totals->upkeep, DT_TELL_BROKEN, "");
    return status == DT_EIO ? DT_OK : status;
}

static dt_status journals_check(const char *directory, struct dt_upkeep *upkeep)
{
    struct totals totals = {.upkeep = upkeep};
    struct dt_journals runs = {.directory = directory, .oldest_first = true};
    int broken = upkeep->broken;
    while (dt_journals_next(&runs))
        if (dt_journals_ours(&runs))
            runs.status = journal_check(&totals, runs.path, runs.name);
    DT_TRY(dt_journals_end(&runs));
    if (upkeep->broken == broken)
        dt_upkeep_say(upkeep, DT_TELL_DONE, "runs: %d journal%s, %lld records, all checksums right",
                      totals.journals, totals.journals == 1 ? "" : "s", totals.records);
    return DT_OK;
}

static dt_status aside_count(const char *directory, struct dt_upkeep *upkeep)
{
    struct dt_journals files = {.directory = directory, .prefix = "best.json.bad-"};
    int n = 0;
    while (dt_journals_next(&files))
        n += dt_journals_ours(&files);
    DT_TRY(dt_journals_end(&files));
    if (n > 0)
        dt_upkeep_say(upkeep, DT_TELL_NOTE,
                      "%d broken file%s set aside as best.json.bad-...: 'dittune db rebuild' "
                      "brings back what the journals know",
                      n, n == 1 ? " was" : "s were");
    return DT_OK;
}

dt_status dt_upkeep_verify(const char *directory, struct dt_upkeep *upkeep)
{
    int fd = -1;
    DT_TRY(dt_file_open_directory(directory, &fd));
    if (fd < 0) {
        dt_upkeep_say(upkeep, DT_TELL_NOTE, "there is no store at %s", directory);
        return DT_OK;
    }
    dt_status status = best_check(fd, directory, "best.json", upkeep);
    if (status == DT_OK)
        status = best_check(fd, directory, "best.json.1", upkeep);
    close(fd);
    if (status == DT_OK)
        status = journals_check(directory, upkeep);
    if (status == DT_OK)
        status = aside_count(directory, upkeep);
    if (status == DT_OK && upkeep->broken > 0)
        status = dt_fail(DT_ECORRUPT, "%d thing%s broken in the store %s", upkeep->broken,
                         upkeep->broken == 1 ? " is" : "s are", directory);
    return status;
}
