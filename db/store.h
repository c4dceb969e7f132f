/* SPDX-License-Identifier: MIT */
/* store - the best plans known, in one directory
 *
 *     best.json        one entry a line (db/entry_int.h); replaced whole: lock, read, splice, temp, fsync, rename, fsync of the
 *                      directory; read by db/snapshot.h
 *     best.json.1      the version before
 *     lock             never renamed, never removed
 *     runs/<id>.jsonl  one journal a session, append-only (db/journal.h)
 *
 * An entry is identified by its key (workload, objective, devices) and the fingerprint's hard fields.
 */
#ifndef DT_DB_STORE_H
#define DT_DB_STORE_H

#include "base/json.h"
#include "base/status.h"

/* The default directory: $DITTUNE_DB, else $XDG_DATA_HOME/dittune, else ~/.local/share/dittune. Static storage. */
const char *dt_store_default(void);

/* Makes the directory (and runs/) and a test file in it. DT_EIO with a sentence when it cannot be written; DT_EUSAGE when
 * it is on a network file system; DT_ECORRUPT when
 * best.json was written by a newer dittune, or has version 1 of the format, or is broken with no good version before beside
 * it, so that a session learns at its start that it could not store. */
dt_status dt_store_check(const char *directory) DT_MUST_CHECK;

/* Appends a line for each thing about the directory that its owner should know: it is writable by anyone. */
dt_status dt_store_warnings(const char *directory, struct dt_text *out) DT_MUST_CHECK;

/* entry must hold "key" (object), "fingerprint" {"hard","soft","info"}, "plan" and what else the caller wants kept.
 * Replaces the entry of the same key and hard fingerprint; other entries and unknown fields are kept as they are. Blocks for
 * the lock at most 10 s (DT_ELOCK). A broken best.json is kept as best.json.bad-<time> and the commit goes on from best.json.1
 * when that is good, else from an empty store. DT_ECORRUPT: written by a newer dittune, or to be migrated; left
 * alone. DT_EUSAGE: not an entry, the store would grow beyond what is read, or it is on a network file system. DT_EIO:
 * best.json is as it was, or (the sentence says so) it is the new one but may not survive a loss of power. */
dt_status dt_store_put(const char *directory, json_t *entry) DT_MUST_CHECK;

/* *entry is a new reference, or NULL with DT_OK when nothing matches key and hard exactly. Never locks. A missing
 * directory is an empty store. A broken best.json is read as best.json.1; DT_ECORRUPT when that is not good either, or
 * when a newer major version wrote the file. DT_EIO. */
dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard,
                       json_t **entry) DT_MUST_CHECK;

/* Calls visit for each entry (borrowed). */
dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context),
                        void *context) DT_MUST_CHECK;

#endif
