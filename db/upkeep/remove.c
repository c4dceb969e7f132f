/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/outline.h"
#include "db/snapshot.h"
#include "db/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- entries are removed; their journals stay, since they are evidence for other records, too */

struct removal {
    const uint64_t *ids;
    size_t count;
    bool really;
    struct dt_upkeep *upkeep;
};

static bool is_wanted(const struct removal *removal, uint64_t id)
{
    for (size_t i = 0; i < removal->count; i++)
        if (removal->ids[i] == id)
            return true;
    return false;
}

/* A line that is no entry is named by its id. */
static dt_status removal_tell(const struct removal *removal, const char *text,
                              const struct dt_best_line *line)
{
    json_t *entry = NULL;
    struct dt_text name = {0};
    dt_status status = dt_entry_read(text + line->at, line->size, "the entry", &entry);
    if (status == DT_OK)
        status = dt_upkeep_name(entry, &name);
    else if (status == DT_EUSAGE) {
        dt_text_add(&name, "the line [%016llx], which is no entry", (unsigned long long)line->id);
        status = dt_text_status(&name);
    }
    if (status == DT_OK)
        dt_upkeep_say(removal->upkeep, DT_TELL_DONE, "%s%s",
                      removal->really ? "removed " : "would remove ", dt_text_at(&name));
    json_decref(entry);
    dt_text_fini(&name);
    return status;
}

static dt_status removal_decide(struct dt_edit *edit, void *context)
{
    struct removal *removal = context;
    if (edit->old == DT_COMMIT_BAD)
        return dt_fail(DT_ECORRUPT, "%s: nothing is removed from a broken store", edit->because);
    bool *drop = calloc(edit->best.count + 1, sizeof *drop);
    if (drop == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while removing entries");
    dt_status status = DT_OK;
    for (size_t i = 0; status == DT_OK && i < edit->best.count; i++) {
        drop[i] = is_wanted(removal, edit->best.lines[i].id);
        if (drop[i])
            status = removal_tell(removal, edit->best.text.bytes, &edit->best.lines[i]);
    }
    if (status == DT_OK && removal->really && removal->upkeep->done > 0)
        edit->drop = drop;
    else
        free(drop);
    return status;
}

dt_status dt_upkeep_remove(const char *directory, const uint64_t ids[], size_t count, bool really,
                           struct dt_upkeep *upkeep)
{
    struct removal removal = {.ids = ids, .count = count, .really = really, .upkeep = upkeep};
    return dt_store_edit(directory, removal_decide, &removal);
}

/* ---- files are removed
 *
 * A journal is the evidence of an entry: one that an entry names, or whose result is an entry, is
 * kept at any age; so is one whose process still runs (an id is time-pid-random). Journals with
 * checks are kept, too: they are small, and have the only history of an entry. */

struct gc {
    const char *directory;
    time_t before; /* younger files are kept */
    bool really;
    struct dt_upkeep *upkeep;
    struct dt_pick store; /* entries of best.json */
    json_t *named;        /* object: journals that entries name */
};

static dt_status entries_learn(struct gc *gc, const struct dt_snapshot *snapshot)
{
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL;
        enum dt_offer ignored;
        dt_status status = dt_snapshot_entry(snapshot, (long)i, &entry);
        if (status == DT_ECORRUPT) /* its journal may be the only copy */
            return dt_fail(status,
                           "%s: nothing is removed beside a line that is no entry ('dittune db "
                           "rebuild --salvage' makes best.json without it)",
                           dt_message());
        DT_TRY(status);
        const char *journal = json_string_value(json_object_get(entry, "journal"));
        if (journal != NULL && json_object_set_new(gc->named, journal, json_true()) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        DT_TRY(dt_pick_offer(&gc->store, entry, true, &ignored));
    }
    return DT_OK;
}

/* Without a good best.json nothing is removed, since the entries to keep are unknown. */
static dt_status entries_load(struct gc *gc)
{
    struct dt_snapshot *snapshot = NULL;
    DT_TRY(dt_snapshot_open(gc->directory, &snapshot));
    dt_status status = entries_learn(gc, snapshot);
    if (status == DT_OK && dt_snapshot_fallback(snapshot) != NULL)
        status = dt_fail(DT_ECORRUPT, "%s: nothing is removed from a broken store",
                         dt_snapshot_fallback(snapshot));
    dt_snapshot_close(snapshot);
    return status;
}

static bool is_running(const char *name)
{
    const char *dash = strchr(name, '-');
    long pid = dash != NULL ? strtol(dash + 1, NULL, 10) : 0;
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

/* One of its results is an entry, or it has checks. */
static bool is_evidence(const struct gc *gc, const struct dt_outline *outline)
{
    bool needed = outline->checks > 0;
    for (size_t i = 0; !needed && i < json_array_size(outline->results); i++) {
        json_t *known = NULL, *bare = dt_upkeep_bare(json_array_get(outline->results, i));
        dt_status status = bare != NULL ? dt_pick_find(&gc->store, bare, &known) : DT_ENOMEM;
        needed = status != DT_OK || json_equal(bare, known);
        json_decref(bare);
    }
    return needed;
}

static dt_status file_remove(const struct gc *gc, const char *path)
{
    struct stat info;
    if (fstatat(AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_mtime >= gc->before)
        return DT_OK;
    if (gc->really && unlinkat(AT_FDCWD, path, 0) != 0)
        return dt_fail(DT_EIO, "cannot remove %s: %s", path, strerror(errno));
    gc->upkeep->bytes += info.st_size;
    dt_upkeep_say(gc->upkeep, DT_TELL_DONE, "%s%s, %lld bytes",
                  gc->really ? "removed " : "would remove ", path, (long long)info.st_size);
    return DT_OK;
}

static dt_status journal_consider(const struct gc *gc, const char *path, const char *id)
{
    struct dt_outline outline;
    if (dt_json_has(gc->named, id) || is_running(id))
        return DT_OK;
    dt_status status = dt_outline_read(path, &outline);
    bool needed = status < 0 || is_evidence(gc, &outline);
    dt_outline_fini(&outline);
    return needed ? status : file_remove(gc, path);
}

/* prefix NULL: the journals. */
static dt_status files_sweep(const struct gc *gc, const char *prefix)
{
    struct dt_journals files = {.directory = gc->directory, .prefix = prefix, .oldest_first = true};
    while (dt_journals_next(&files))
        if (dt_journals_ours(&files))
            files.status = prefix == NULL ? journal_consider(gc, files.path, files.id)
                                          : file_remove(gc, files.path);
    return dt_journals_end(&files);
}

static dt_status gc_locked(struct gc *gc)
{
    DT_TRY(entries_load(gc));
    DT_TRY(files_sweep(gc, NULL));
    DT_TRY(files_sweep(gc, "best.json.bad-"));
    return files_sweep(gc, "best.json.old-");
}

dt_status dt_upkeep_gc(const char *directory, int64_t days, bool really, struct dt_upkeep *upkeep)
{
    struct gc gc = {.directory = directory,
                    .before = time(NULL) - (time_t)days * 86400,
                    .really = really,
                    .upkeep = upkeep,
                    .named = json_object()};
    struct dt_store_held held;
    dt_status status = gc.named != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = dt_store_lock(directory, &held);
    if (status == DT_OK) {
        status = gc_locked(&gc);
        dt_store_unlock(&held);
    }
    json_decref(gc.named);
    dt_pick_fini(&gc.store);
    return status;
}
