/* SPDX-License-Identifier: MIT */
/* snapshot - one version of best.json, for any number of threads without a lock
 *
 *     DT_TRY(dt_snapshot_open(directory, &snapshot));
 *     DT_TRY(dt_store_id(key, hard, &id));
 *     for (long i = dt_snapshot_find(snapshot, id); i >= 0; i = dt_snapshot_next(snapshot, i))
 *         if (dt_snapshot_entry(snapshot, i, &entry) == DT_OK)
 *             ... compare key and hard: an id is only a hash ...
 *
 * It never changes: a writer replaces the file, and a new snapshot shows it. Opening checks the
 * whole file's checksum and finds the lines; an entry is parsed at its first use, and stays parsed.
 */
#ifndef DT_DB_SNAPSHOT_H
#define DT_DB_SNAPSHOT_H

#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_snapshot;
struct dt_stores;

/* Reads directory/best.json, or best.json.1 when that is damaged (see dt_snapshot_fallback).
 * Without the directory or both files: an empty snapshot. DT_ECORRUPT: both are damaged, or a newer
 * dittune wrote the file. DT_EIO, DT_ENOMEM. */
dt_status dt_snapshot_open(const char *directory, struct dt_snapshot **snapshot) DT_MUST_CHECK;

/* The same of each store of a list, for look-ups: lines of an earlier store come first, and two
 * stores may have lines of one id. Here best.json may be a symbolic link, as a mounted ConfigMap
 * has it: nothing is written. One store that cannot be read fails the call. */
dt_status dt_snapshot_open_stores(const struct dt_stores *stores,
                                  struct dt_snapshot **snapshot) DT_MUST_CHECK;

/* Parses a file's bytes, which are copied; error messages begin with `what`.
 * DT_ECORRUPT, DT_ENOMEM. */
dt_status dt_snapshot_parse(const char *text, size_t size, const char *what,
                            struct dt_snapshot **snapshot) DT_MUST_CHECK;

/* Invalidates everything borrowed from it. NULL is fine. */
void dt_snapshot_close(struct dt_snapshot *snapshot);
DT_FREE_AT(dt_snapshot_close, struct dt_snapshot)

/* Why best.json.1 was read instead of best.json; NULL when it was not. */
const char *dt_snapshot_fallback(const struct dt_snapshot *snapshot);

/* How many stores were opened, and the folder of the i-th one (NULL: a text); and whether
 * it has no best.json. */
int dt_snapshot_stores(const struct dt_snapshot *snapshot);
const char *dt_snapshot_folder(const struct dt_snapshot *snapshot, int store);
bool dt_snapshot_is_absent(const struct dt_snapshot *snapshot, int store);

/* The store of line i. */
int dt_snapshot_store(const struct dt_snapshot *snapshot, long i);

/* A best.json is no longer the file that was opened: one stat a store. */
bool dt_snapshot_is_outdated(const struct dt_snapshot *snapshot);

/* Entries of it. */
size_t dt_snapshot_count(const struct dt_snapshot *snapshot);

/* The name of an identity: FNV-1a of the canonical text of {"hard":hard,"key":key}. DT_EUSAGE when
 * it is nested too deep; DT_ENOMEM. */
dt_status dt_store_id(const json_t *key, const json_t *hard, uint64_t *id) DT_MUST_CHECK;

/* The first entry with that id, and the next one with the same id as entry i; -1: none. */
long dt_snapshot_find(const struct dt_snapshot *snapshot, uint64_t id);
long dt_snapshot_next(const struct dt_snapshot *snapshot, long i);

/* The id of line i, 0 to count-1. */
uint64_t dt_snapshot_id(const struct dt_snapshot *snapshot, long i);

/* *entry is borrowed until the snapshot is closed, and must not be changed. DT_ECORRUPT when line
 * i, though its checksum is right, is no entry; DT_ENOMEM. */
dt_status dt_snapshot_entry(const struct dt_snapshot *snapshot, long i,
                            const json_t **entry) DT_MUST_CHECK;

/* The bytes of line i, without comma and line feed; borrowed. */
const char *dt_snapshot_line(const struct dt_snapshot *snapshot, long i, size_t *size);

/* Data that a reader caches beside an entry: a struct that begins with this one. */
struct dt_snapshot_note {
    void (*free)(struct dt_snapshot_note *note);
};

/* The note of entry i, or NULL. */
const struct dt_snapshot_note *dt_snapshot_note(const struct dt_snapshot *snapshot, long i);

/* Publishes a note, which the snapshot then owns, and returns it; when another thread was first,
 * frees it and returns the other's. */
const struct dt_snapshot_note *dt_snapshot_keep(const struct dt_snapshot *snapshot, long i,
                                                struct dt_snapshot_note *note);

#endif
