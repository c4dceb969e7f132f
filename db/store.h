/* SPDX-License-Identifier: MIT */
/* store - the best plans known, in one directory
 *
 *     best.json        one entry a key; replaced whole: lock, read, merge, temp, fsync, rename, fsync of the directory
 *     best.json.1      the version before
 *     lock             never renamed, never removed
 *     runs/<id>.jsonl  one journal a session, append-only (db/journal.h)
 *
 * A key is what was asked for (workload, objective, devices) on what (the fingerprint's hard fields).
 */
#ifndef DT_DB_STORE_H
#define DT_DB_STORE_H

#include "base/json.h"
#include "base/status.h"

/* The default directory: $DITTUNE_DB, else $XDG_DATA_HOME/dittune, else ~/.local/share/dittune. Static storage. */
const char *dt_store_default(void);

/* Makes the directory (and runs/) and a test file in it. DT_EIO with a sentence when it cannot be written. */
dt_status dt_store_check(const char *directory) DT_MUST_CHECK;

/* The fingerprint and key are objects of strings, integers and booleans; the key's text is its canonical JSON (sorted
 * keys). entry must hold "key" (object), "fingerprint" {"hard","soft","info"}, "plan" and what else the caller wants kept.
 * Replaces the entry of the same key and hard fingerprint; other entries and unknown fields are kept as they are. Blocks for
 * the lock at most 10 s (DT_ELOCK). DT_ECORRUPT: the file is broken (it is moved to best.json.bad-<time>, best.json.1 is
 * used when it is good) or of a newer major version (left alone). DT_EIO: nothing changed. */
dt_status dt_store_put(const char *directory, json_t *entry) DT_MUST_CHECK;

/* *entry is a new reference, or NULL with DT_OK when nothing matches key and hard exactly. Never locks. A missing
 * directory is an empty store. DT_ECORRUPT, DT_EIO. */
dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard, json_t **entry) DT_MUST_CHECK;

/* Calls visit for each entry (borrowed). */
dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context), void *context) DT_MUST_CHECK;

#endif
