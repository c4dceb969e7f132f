/* SPDX-License-Identifier: MIT */
/* An entry's tree is published by compare-and-exchange: two threads that ask for it first at the
 * same time both parse it, and one of the trees is thrown away. */
#include "db/snapshot.h"

#include "base/read.h"
#include "db/best_int.h"
#include "db/file_int.h"
#include "db/stores.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct cell {
    _Atomic(json_t *) entry;
    _Atomic(struct dt_snapshot_note *) note;
};

/* Identity of a file that was opened: a writer replaces best.json by another inode. */
struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct part {
    struct dt_best best;
    size_t first;          /* line of the snapshot that is its line 0 */
    struct dt_text folder; /* empty for a text */
    struct dt_text path;   /* path of best.json */
    struct dt_text what;   /* opens each sentence */
    struct identity opened;
};

struct dt_snapshot {
    struct part *parts; /* owned; in the order of the list */
    int stores;
    size_t count;
    struct cell *cells;     /* one for each line */
    struct dt_text because; /* set when a best.json.1 was read */
};

static struct identity identity_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return (struct identity){0};
    return (struct identity){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

/* Gives the snapshot that was made to the caller. */
static dt_status snapshot_finish(struct dt_snapshot **made, struct dt_snapshot **snapshot)
{
    struct dt_snapshot *fresh = *made;
    for (int i = 0; i < fresh->stores; i++) {
        DT_TRY(dt_text_status(&fresh->parts[i].what));
        fresh->parts[i].first = fresh->count;
        fresh->count += fresh->parts[i].best.count;
    }
    fresh->cells = calloc(fresh->count + 1, sizeof *fresh->cells);
    if (fresh->cells == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a store");
    DT_TRY(dt_text_status(&fresh->because));
    *snapshot = fresh;
    *made = NULL;
    return DT_OK;
}

/* DT_ECORRUPT with the sentence about best.json when the previous version cannot replace it. */
static dt_status backup_load(int fd, struct part *part, struct dt_text *because)
{
    dt_auto_text why = {0};
    dt_text_add(&why, "%s", dt_message());
    dt_best_fini(&part->best);
    DT_TRY(dt_best_load(fd, dt_text_at(&part->folder), "best.json.1", &part->best));
    if (!dt_best_readable(&part->best))
        return dt_fail(DT_ECORRUPT,
                       "%s, and there is no good best.json.1 beside it: 'dittune db rebuild' makes "
                       "it anew from the journals",
                       dt_text_at(&why));
    dt_text_add(because, "%s%s", because->size > 0 ? "; " : "", dt_text_at(&why));
    return dt_text_status(because);
}

/* The folder where best.json is when it is a link to a file of that name: a ConfigMap is mounted as
 * links into a folder that changes. */
static char *linked_folder(const struct part *part)
{
    struct stat info;
    char *path = NULL, *slash;
    if (lstat(dt_text_at(&part->path), &info) == 0 && S_ISLNK(info.st_mode))
        path = realpath(dt_text_at(&part->path), NULL);
    slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash != NULL && strcmp(slash, "/best.json") == 0) {
        *slash = '\0';
        return path;
    }
    free(path);
    return NULL;
}

static dt_status part_load(const char *directory, bool links, struct part *part,
                           struct dt_text *because)
{
    DT_CLEANUP(dt_close_at) int fd = -1;
    dt_text_add(&part->folder, "%s", directory);
    dt_text_add(&part->path, "%s/best.json", directory);
    dt_text_add(&part->what, "the store %s", directory);
    DT_TRY(dt_text_status(&part->folder));
    DT_TRY(dt_text_status(&part->path));
    /* before reading, so that a change in between is detected */
    part->opened = identity_of(dt_text_at(&part->path));
    dt_auto_free char *linked = links ? linked_folder(part) : NULL;
    DT_TRY(dt_file_open_directory(linked != NULL ? linked : directory, &fd));
    if (fd < 0)
        return DT_OK;
    DT_TRY(dt_best_load(fd, directory, "best.json", &part->best));
    if (part->best.state == DT_BEST_NEWER)
        return DT_ECORRUPT;
    return part->best.state == DT_BEST_BROKEN ? backup_load(fd, part, because) : DT_OK;
}

static dt_status snapshot_allocate(int stores, struct dt_snapshot **snapshot)
{
    struct dt_snapshot *fresh = calloc(1, sizeof *fresh);
    if (fresh != NULL)
        fresh->parts = calloc((size_t)stores, sizeof *fresh->parts);
    if (fresh == NULL || fresh->parts == NULL) {
        free(fresh);
        return dt_fail(DT_ENOMEM, "out of memory while reading a store");
    }
    fresh->stores = stores;
    *snapshot = fresh;
    return DT_OK;
}

dt_status dt_snapshot_open(const char *directory, struct dt_snapshot **snapshot)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *fresh = NULL;
    DT_TRY(snapshot_allocate(1, &fresh));
    DT_TRY(part_load(directory, false, &fresh->parts[0], &fresh->because));
    return snapshot_finish(&fresh, snapshot);
}

dt_status dt_snapshot_open_stores(const struct dt_stores *stores, struct dt_snapshot **snapshot)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *fresh = NULL;
    DT_TRY(snapshot_allocate(stores->count, &fresh));
    for (int i = 0; i < stores->count; i++)
        DT_TRY(part_load(stores->at[i], true, &fresh->parts[i], &fresh->because));
    return snapshot_finish(&fresh, snapshot);
}

dt_status dt_snapshot_parse(const char *text, size_t size, const char *what,
                            struct dt_snapshot **snapshot)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *fresh = NULL;
    DT_TRY(snapshot_allocate(1, &fresh));
    struct part *part = &fresh->parts[0];
    dt_text_add(&part->what, "%s", what);
    dt_text_add_bytes(&part->best.text, text, size);
    DT_TRY(dt_text_status(&part->best.text));
    DT_TRY(dt_best_parse(what, &part->best));
    if (!dt_best_readable(&part->best))
        return DT_ECORRUPT;
    return snapshot_finish(&fresh, snapshot);
}

void dt_snapshot_close(struct dt_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (size_t i = 0; snapshot->cells != NULL && i < snapshot->count; i++) {
        struct dt_snapshot_note *note = atomic_load(&snapshot->cells[i].note);
        json_decref(atomic_load(&snapshot->cells[i].entry));
        if (note != NULL)
            note->free(note);
    }
    for (int i = 0; i < snapshot->stores; i++) {
        struct part *part = &snapshot->parts[i];
        dt_best_fini(&part->best);
        dt_text_fini(&part->folder);
        dt_text_fini(&part->path);
        dt_text_fini(&part->what);
    }
    free(snapshot->cells);
    free(snapshot->parts);
    dt_text_fini(&snapshot->because);
    free(snapshot);
}

const char *dt_snapshot_fallback(const struct dt_snapshot *snapshot)
{
    return snapshot->because.size > 0 ? dt_text_at(&snapshot->because) : NULL;
}

int dt_snapshot_stores(const struct dt_snapshot *snapshot)
{
    return snapshot->stores;
}

const char *dt_snapshot_folder(const struct dt_snapshot *snapshot, int store)
{
    const struct dt_text *folder = &snapshot->parts[store].folder;
    return folder->size > 0 ? dt_text_at(folder) : NULL;
}

bool dt_snapshot_is_absent(const struct dt_snapshot *snapshot, int store)
{
    return snapshot->parts[store].best.state == DT_BEST_ABSENT;
}

int dt_snapshot_store(const struct dt_snapshot *snapshot, long i)
{
    int store = snapshot->stores - 1;
    while (store > 0 && (size_t)i < snapshot->parts[store].first)
        store--;
    return store;
}

bool dt_snapshot_is_outdated(const struct dt_snapshot *snapshot)
{
    for (int i = 0; i < snapshot->stores; i++) {
        const struct part *part = &snapshot->parts[i];
        if (part->path.size == 0)
            continue;
        const struct identity now = identity_of(dt_text_at(&part->path)), *then = &part->opened;
        if (now.device != then->device || now.inode != then->inode || now.size != then->size ||
            now.changed.tv_sec != then->changed.tv_sec ||
            now.changed.tv_nsec != then->changed.tv_nsec)
            return true;
    }
    return false;
}

size_t dt_snapshot_count(const struct dt_snapshot *snapshot)
{
    return snapshot->count;
}

/* The first line with that id in this store or one behind it; -1: none. */
static long line_find(const struct dt_snapshot *snapshot, int store, uint64_t id)
{
    for (; store < snapshot->stores; store++) {
        const struct part *part = &snapshot->parts[store];
        long line = dt_best_find(&part->best, id);
        if (line >= 0)
            return (long)part->first + line;
    }
    return -1;
}

long dt_snapshot_find(const struct dt_snapshot *snapshot, uint64_t id)
{
    return line_find(snapshot, 0, id);
}

long dt_snapshot_next(const struct dt_snapshot *snapshot, long i)
{
    int store = dt_snapshot_store(snapshot, i);
    const struct part *part = &snapshot->parts[store];
    long line = dt_best_next(&part->best, i - (long)part->first);
    return line >= 0 ? (long)part->first + line
                     : line_find(snapshot, store + 1, dt_snapshot_id(snapshot, i));
}

/* Line i, and the bytes that it is in. */
static const struct dt_best_line *line_at(const struct dt_snapshot *snapshot, long i,
                                          const struct part **part)
{
    *part = &snapshot->parts[dt_snapshot_store(snapshot, i)];
    return &(*part)->best.lines[(size_t)i - (*part)->first];
}

uint64_t dt_snapshot_id(const struct dt_snapshot *snapshot, long i)
{
    const struct part *part;
    return line_at(snapshot, i, &part)->id;
}

const char *dt_snapshot_line(const struct dt_snapshot *snapshot, long i, size_t *size)
{
    const struct part *part;
    const struct dt_best_line *line = line_at(snapshot, i, &part);
    *size = line->size;
    return part->best.text.bytes + line->at;
}

static dt_status entry_read(const struct dt_snapshot *snapshot, long i, json_t **entry)
{
    size_t size;
    const struct part *part;
    line_at(snapshot, i, &part);
    const char *line = dt_snapshot_line(snapshot, i, &size);
    dt_auto_text what = {0};
    dt_text_add(&what, "%s, entry %ld", dt_text_at(&part->what), i - (long)part->first + 1);
    DT_TRY(dt_text_status(&what));
    dt_status status = dt_entry_read(line, size, dt_text_at(&what), entry);
    return status == DT_EUSAGE ? DT_ECORRUPT : status;
}

dt_status dt_snapshot_entry(const struct dt_snapshot *snapshot, long i, const json_t **entry)
{
    _Atomic(json_t *) *cell = &snapshot->cells[i].entry;
    json_t *known = atomic_load_explicit(cell, memory_order_acquire), *read = NULL;
    if (known == NULL) {
        DT_TRY(entry_read(snapshot, i, &read));
        if (atomic_compare_exchange_strong(cell, &known, read))
            known = read;
        else
            json_decref(read);
    }
    *entry = known;
    return DT_OK;
}

const struct dt_snapshot_note *dt_snapshot_note(const struct dt_snapshot *snapshot, long i)
{
    return atomic_load_explicit(&snapshot->cells[i].note, memory_order_acquire);
}

const struct dt_snapshot_note *dt_snapshot_keep(const struct dt_snapshot *snapshot, long i,
                                                struct dt_snapshot_note *note)
{
    struct dt_snapshot_note *known = NULL;
    if (atomic_compare_exchange_strong(&snapshot->cells[i].note, &known, note))
        return note;
    note->free(note);
    return known;
}
