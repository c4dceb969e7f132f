/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/file_int.h"
#include "db/outline.h"
#include "db/store_int.h"

#include <string.h>

struct rebuild {
    const char *directory;
    bool salvage;
    struct dt_upkeep *upkeep;
    struct dt_pick pick;
    int results, journals;
};

static dt_status entry_offer(struct rebuild *rebuild, const json_t *entry, const char *what)
{
    enum dt_offer ignored;
    dt_status status = dt_entry_check(entry, what); /* its crc was right, so this store wrote it */
    if (status == DT_EUSAGE) {
        dt_upkeep_say_error(rebuild->upkeep, DT_TELL_NOTE, "left out: ");
        return DT_OK;
    }
    DT_TRY(status);
    DT_TRY(dt_pick_offer(&rebuild->pick, entry, true, &ignored));
    rebuild->results++;
    return DT_OK;
}

/* A killed session has no result, but may have measured a plan. */
static dt_status session_revive(struct rebuild *rebuild, const char *path, const char *name)
{
    json_t *entry = NULL;
    if (rebuild->upkeep->revive == NULL)
        return DT_OK;
    DT_TRY(rebuild->upkeep->revive(path, &entry));
    if (entry == NULL)
        return DT_OK;
    dt_upkeep_say(rebuild->upkeep, DT_TELL_NOTE,
                  "%s: its session did not end: what it measured is provisional", name);
    dt_status status = entry_offer(rebuild, entry, "a journal's session");
    json_decref(entry);
    return status;
}

static dt_status journal_read(struct rebuild *rebuild, const char *path, const char *name)
{
    struct dt_outline outline;
    dt_status status = dt_outline_read(path, &outline);
    rebuild->journals++;
    for (size_t i = 0; status == DT_OK && i < json_array_size(outline.results); i++)
        status = entry_offer(rebuild, json_array_get(outline.results, i), "a journal's result");
    if (status == DT_OK && outline.results == NULL)
        status = session_revive(rebuild, path, name);
    if (status == DT_EIO && rebuild->salvage) { /* otherwise the result would be incomplete */
        dt_upkeep_say_error(rebuild->upkeep, DT_TELL_NOTE, "left out: ");
        status = DT_OK;
    }
    if (status == DT_OK && outline.damaged > 0)
        dt_upkeep_say(rebuild->upkeep, DT_TELL_NOTE, "%s: %d damaged line%s left out", name,
                      outline.damaged, outline.damaged == 1 ? " was" : "s were");
    dt_outline_fini(&outline);
    return status;
}

static dt_status journals_read(struct rebuild *rebuild)
{
    struct dt_journals runs = {.directory = rebuild->directory, .oldest_first = true};
    while (dt_journals_next(&runs))
        if (dt_journals_ours(&runs))
            runs.status = journal_read(rebuild, runs.path, runs.name);
    return dt_journals_end(&runs);
}

/* Recovers the lines with a right crc from a damaged file. */
static dt_status salvage_lines(struct rebuild *rebuild, const struct dt_best *best,
                               const char *name)
{
    const char *at = dt_text_at(&best->text), *stop = at + best->text.size, *line;
    int before = rebuild->results;
    size_t size;
    while (dt_upkeep_line(&at, stop, &line, &size)) {
        json_t *entry = NULL;
        if (!dt_entry_is_whole(line, size))
            continue;
        dt_status status = dt_entry_read(line, size, name, &entry);
        if (status == DT_OK)
            status = entry_offer(rebuild, entry, name);
        json_decref(entry);
        if (status != DT_EUSAGE)
            DT_TRY(status);
    }
    dt_upkeep_say(rebuild->upkeep, DT_TELL_DONE, "%d lines of %s", rebuild->results - before, name);
    return DT_OK;
}

static dt_status salvage_file(int fd, struct rebuild *rebuild, const char *name)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    dt_status status = dt_best_load(fd, rebuild->directory, name, &best);
    if (status == DT_OK && best.state != DT_BEST_NEWER && best.state != DT_BEST_ABSENT)
        status = salvage_lines(rebuild, &best, name);
    dt_best_fini(&best);
    return status;
}

/* best.json comes last: of two results with one time the later one is taken. */
static dt_status salvage_files(int fd, struct rebuild *rebuild)
{
    struct dt_journals files = {
        .directory = rebuild->directory, .prefix = DT_BEST_FILE ".", .oldest_first = true};
    while (dt_journals_next(&files))
        if (dt_journals_ours(&files) && strcmp(files.name, DT_BACKUP_FILE) != 0)
            files.status = salvage_file(fd, rebuild, files.name);
    dt_status status = dt_journals_end(&files);
    if (status == DT_OK)
        status = salvage_file(fd, rebuild, DT_BACKUP_FILE);
    return status == DT_OK ? salvage_file(fd, rebuild, DT_BEST_FILE) : status;
}

/* Reports entries that only the old file has. */
static dt_status lost_tell(struct rebuild *rebuild, const struct dt_best *old)
{
    for (size_t i = 0; i < old->count; i++) {
        json_t *entry = NULL, *known = NULL;
        struct dt_text name = {0};
        if (dt_entry_read(old->text.bytes + old->lines[i].at, old->lines[i].size, "a line",
                          &entry) != DT_OK)
            continue;
        dt_status status = dt_pick_find(&rebuild->pick, entry, &known);
        if (status == DT_OK)
            status = dt_upkeep_name(entry, &name);
        if (status == DT_OK && known == NULL)
            dt_upkeep_say(
                rebuild->upkeep, DT_TELL_NOTE,
                "%s of the old file is in no journal, it was left out (--salvage keeps it)",
                dt_text_at(&name));
        json_decref(entry);
        dt_text_fini(&name);
        DT_TRY(status);
    }
    return DT_OK;
}

static dt_status best_write(int fd, struct rebuild *rebuild, const struct dt_best *old)
{
    static const enum dt_commit_old aside[] = {[DT_BEST_ABSENT] = DT_COMMIT_FIRST,
                                               [DT_BEST_GOOD] = DT_COMMIT_OLD,
                                               [DT_BEST_BROKEN] = DT_COMMIT_BAD};
    const struct dt_best empty = {.state = DT_BEST_ABSENT};
    struct dt_text text = {0};
    json_t *entries = dt_pick_array(&rebuild->pick);
    dt_status status = entries != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = dt_best_put(&empty, entries, &text);
    if (status == DT_OK)
        status = dt_commit(fd, rebuild->directory, &text, aside[old->state], NULL);
    if (status == DT_OK)
        dt_upkeep_say(rebuild->upkeep, DT_TELL_DONE, "best.json has %zu entr%s now%s",
                      json_array_size(entries), json_array_size(entries) == 1 ? "y" : "ies",
                      old->state == DT_BEST_ABSENT ? "" : ", the old one was set aside");
    json_decref(entries);
    dt_text_fini(&text);
    return status;
}

static dt_status rebuild_locked(int fd, struct rebuild *rebuild)
{
    struct dt_best old = {.state = DT_BEST_ABSENT};
    dt_file_sweep(fd);
    DT_TRY(dt_best_load(fd, rebuild->directory, DT_BEST_FILE, &old));
    dt_status status =
        old.state == DT_BEST_NEWER || old.state == DT_BEST_READONLY ? DT_ECORRUPT : DT_OK;
    if (status == DT_OK)
        status = journals_read(rebuild);
    if (status == DT_OK)
        dt_upkeep_say(rebuild->upkeep, DT_TELL_DONE, "%d result%s in %d journal%s",
                      rebuild->results, rebuild->results == 1 ? "" : "s", rebuild->journals,
                      rebuild->journals == 1 ? "" : "s");
    if (status == DT_OK && rebuild->salvage)
        status = salvage_files(fd, rebuild);
    if (status == DT_OK && rebuild->results == 0)
        status = dt_fail(DT_ECORRUPT, "no journal in %s/runs holds a result%s: nothing was changed",
                         rebuild->directory,
                         rebuild->salvage ? ", nor does a line of best.json"
                                          : " (--salvage also reads the lines of best.json)");
    if (status == DT_OK)
        status = lost_tell(rebuild, &old);
    if (status == DT_OK)
        status = best_write(fd, rebuild, &old);
    dt_best_fini(&old);
    return status;
}

dt_status dt_upkeep_rebuild(const char *directory, bool salvage, struct dt_upkeep *upkeep)
{
    struct rebuild rebuild = {.directory = directory, .salvage = salvage, .upkeep = upkeep};
    struct dt_store_held held;
    dt_status status = dt_store_lock(directory, &held);
    if (status == DT_OK) {
        status = rebuild_locked(held.fd, &rebuild);
        dt_store_unlock(&held);
    }
    dt_pick_fini(&rebuild.pick);
    return status;
}
