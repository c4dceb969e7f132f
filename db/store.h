/* SPDX-License-Identifier: MIT */
/* store - the best plans known, in one directory
 *
 *     best.json        one entry a line (db/best_int.h); replaced as a whole: lock, read, splice,
 *                      temp, fsync, rename, fsync of the directory; read by db/snapshot.h
 *     best.json.1      the version before
 *     lock             never renamed, never removed
 *     runs/<id>.jsonl  one journal a session, append-only (db/journal.h)
 *     private.key      the secret by which entries name a command without its text (--private)
 *
 * An entry is identified by its key (workload, objective, devices) and the fingerprint's hard
 * fields.
 */
#ifndef DT_DB_STORE_H
#define DT_DB_STORE_H

#include "base/json.h"
#include "base/siphash.h"
#include "base/status.h"

#include <stdbool.h>

/* Checks at the start of a session that results can be stored; makes the directory and runs/.
 * DT_EIO with a sentence when it cannot be written; DT_EUSAGE when it is on a network file system;
 * DT_ECORRUPT when best.json was written by a newer dittune, or is broken and so is best.json.1. */
dt_status dt_store_check(const char *directory) DT_MUST_CHECK;

/* Appends a warning when anyone may write to the directory. */
dt_status dt_store_warnings(const char *directory, struct dt_text *out) DT_MUST_CHECK;

/* entry must hold "key" (object), "fingerprint" {"hard","soft","info"} and "plan", and may hold
 * other fields. It loses its "space" where the store would be too long with it. Replaces the entry
 * of the same key and hard fingerprint; other entries and unknown fields are kept as they are.
 * Blocks for the lock at most 10 s (DT_ELOCK). A broken best.json is renamed to
 * best.json.bad-<time>; the new one is made from best.json.1 when that is good, else from an empty
 * store. DT_ECORRUPT: a newer dittune wrote it; unchanged. DT_EUSAGE: not an entry, the store would
 * exceed the limits of readers, or it is on a network file system. DT_EIO: best.json is unchanged,
 * or (then the sentence says so) is the new one but may not survive a loss of power. */
dt_status dt_store_put(const char *directory, json_t *entry) DT_MUST_CHECK;

/* The same, where no entry with better evidence is in its place (dt_stored_evidence); what there is
 * comes back in *kept, a new reference, and NULL: the entry was stored. Nothing is written between
 * the look and the change. */
dt_status dt_store_offer(const char *directory, json_t *entry, json_t **kept) DT_MUST_CHECK;

/* *entry is a new reference, or NULL with DT_OK when nothing matches key and hard exactly. Never
 * locks. A missing directory is an empty store. Reads best.json.1 when best.json is broken;
 * DT_ECORRUPT when both are, or when a newer major version wrote the file. DT_EIO. */
dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard,
                       json_t **entry) DT_MUST_CHECK;

/* Calls visit for each entry (borrowed). */
dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context),
                        void *context) DT_MUST_CHECK;

/* private.key has 32 hexadecimal digits and the mode 0600 whatever the umask: who may read the
 * store but not this file can neither read a private command nor test a guess. Entries that are
 * taken to another store are found there once the file has been copied, too. Reads the secret;
 * where there is none, makes and stores one (`make`, which makes the store's folder, too), or sets
 * *there to false. DT_EIO with a sentence: it cannot be read or made; DT_ECORRUPT: it is no secret;
 * errors of dt_store_put. */
dt_status dt_private_read(const char *directory, bool make, unsigned char secret[DT_SIPHASH_KEY],
                          bool *there) DT_MUST_CHECK;

#endif
