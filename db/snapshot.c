/* SPDX-License-Identifier: MIT */
/* An entry's tree is published by compare-and-exchange: two threads that ask for it first at the same time both parse it,
 * and one of the trees is thrown away. */
#include "db/snapshot.h"

#include "base/read.h"
#include "db/best_int.h"
#include "db/file_int.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cell {
    _Atomic(json_t *) entry;
    _Atomic(struct dt_snapshot_note *) note;
};

struct dt_snapshot {
    struct dt_best best;
    struct cell *cells;     /* one for each line */
    struct dt_text what;    /* opens each sentence */
    struct dt_text because; /* set when best.json.1 was read */
};

/* What was made becomes the caller's. */
static dt_status snapshot_finish(struct dt_snapshot **made, struct dt_snapshot **snapshot)
{
    struct dt_snapshot *fresh = *made;
    fresh->cells = calloc(fresh->best.count + 1, sizeof *fresh->cells);
    if (fresh->cells == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a store");
    DT_TRY(dt_text_status(&fresh->because));
    DT_TRY(dt_text_status(&fresh->what));
    *snapshot = fresh;
    *made = NULL;
    return DT_OK;
}

/* DT_ECORRUPT with the sentence about best.json when the previous version cannot replace it. */
static dt_status backup_load(int fd, const char *directory, struct dt_snapshot *fresh)
{
    dt_text_add(&fresh->because, "%s", dt_message());
    dt_best_fini(&fresh->best);
    DT_TRY(dt_best_load(fd, directory, "best.json.1", &fresh->best));
    if (dt_best_readable(&fresh->best))
        return DT_OK;
    return dt_fail(DT_ECORRUPT,
                   "%s, and there is no good best.json.1 beside it: 'dittune db rebuild' makes it "
                   "anew from the journals",
                   dt_text_at(&fresh->because));
}

static dt_status snapshot_load(const char *directory, struct dt_snapshot *fresh)
{
    DT_CLEANUP(dt_close_at) int fd = -1;
    DT_TRY(dt_file_open_directory(directory, &fd));
    if (fd < 0)
        return DT_OK;
    DT_TRY(dt_best_load(fd, directory, "best.json", &fresh->best));
    if (fresh->best.state == DT_BEST_NEWER)
        return DT_ECORRUPT;
    return fresh->best.state == DT_BEST_BROKEN ? backup_load(fd, directory, fresh) : DT_OK;
}

static dt_status snapshot_allocate(struct dt_snapshot **snapshot)
{
    *snapshot = calloc(1, sizeof **snapshot);
    return *snapshot != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory while reading a store");
}

dt_status dt_snapshot_open(const char *directory, struct dt_snapshot **snapshot)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *fresh = NULL;
    DT_TRY(snapshot_allocate(&fresh));
    dt_text_add(&fresh->what, "the store %s", directory);
    DT_TRY(snapshot_load(directory, fresh));
    return snapshot_finish(&fresh, snapshot);
}

dt_status dt_snapshot_parse(const char *text, size_t size, const char *what,
                            struct dt_snapshot **snapshot)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *fresh = NULL;
    DT_TRY(snapshot_allocate(&fresh));
    dt_text_add(&fresh->what, "%s", what);
    dt_text_add_bytes(&fresh->best.text, text, size);
    DT_TRY(dt_text_status(&fresh->best.text));
    DT_TRY(dt_best_parse(what, &fresh->best));
    if (!dt_best_readable(&fresh->best))
        return DT_ECORRUPT;
    return snapshot_finish(&fresh, snapshot);
}

void dt_snapshot_close(struct dt_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (size_t i = 0; snapshot->cells != NULL && i < snapshot->best.count; i++) {
        struct dt_snapshot_note *note = atomic_load(&snapshot->cells[i].note);
        json_decref(atomic_load(&snapshot->cells[i].entry));
        if (note != NULL)
            note->free(note);
    }
    free(snapshot->cells);
    dt_best_fini(&snapshot->best);
    dt_text_fini(&snapshot->what);
    dt_text_fini(&snapshot->because);
    free(snapshot);
}

const char *dt_snapshot_fallback(const struct dt_snapshot *snapshot)
{
    return snapshot->because.size > 0 ? dt_text_at(&snapshot->because) : NULL;
}

size_t dt_snapshot_count(const struct dt_snapshot *snapshot)
{
    return snapshot->best.count;
}

long dt_snapshot_find(const struct dt_snapshot *snapshot, uint64_t id)
{
    return dt_best_find(&snapshot->best, id);
}

long dt_snapshot_next(const struct dt_snapshot *snapshot, long i)
{
    return dt_best_next(&snapshot->best, i);
}

uint64_t dt_snapshot_id(const struct dt_snapshot *snapshot, long i)
{
    return snapshot->best.lines[i].id;
}

const char *dt_snapshot_line(const struct dt_snapshot *snapshot, long i, size_t *size)
{
    *size = snapshot->best.lines[i].size;
    return snapshot->best.text.bytes + snapshot->best.lines[i].at;
}

static dt_status entry_read(const struct dt_snapshot *snapshot, long i, json_t **entry)
{
    size_t size;
    const char *line = dt_snapshot_line(snapshot, i, &size);
    dt_auto_text what = {0};
    dt_text_add(&what, "%s, entry %ld", dt_text_at(&snapshot->what), i + 1);
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
