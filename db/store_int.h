/* SPDX-License-Identifier: MIT */
/* store_int - best.json is replaced as a whole, and the old one stays under another name */
#ifndef DT_DB_STORE_INT_H
#define DT_DB_STORE_INT_H

#include "db/best_int.h"
#include "db/file_int.h"

#define DT_BEST_FILE   "best.json"
#define DT_BACKUP_FILE "best.json.1"

enum dt_commit_old {
    DT_COMMIT_FIRST,  /* there is no old file */
    DT_COMMIT_BACKUP, /* it becomes best.json.1 */
    DT_COMMIT_BAD,    /* best.json.bad-<time> */
    DT_COMMIT_OLD     /* best.json.old-<time>: good, but rebuilt */
};

/* Writes text as the new best.json; bytes: contents of the old file (BACKUP only). The lock is
 * held. DT_EIO: best.json is unchanged, or (then the sentence says so) it is the new one but may
 * not survive a power loss. */
dt_status dt_commit(int fd, const char *directory, const struct dt_text *text,
                    enum dt_commit_old old, const struct dt_text *bytes) DT_MUST_CHECK;

/* Start of an edit: best.json, best.json.1 when that is damaged, or nothing. */
struct dt_edit {
    struct dt_best best;
    enum dt_commit_old old;
    const char *because; /* for BAD: the damage of best.json, a sentence */
    json_t *entries;     /* output: entries to put */
    bool *drop;          /* output if nothing is put, heap memory: lines to drop; NULL: none */
};

/* Takes the lock, loads, calls decide for entries (checked, with distinct identities), and commits
 * them or the dropped lines, if any. Refuses the same files as dt_store_put. */
dt_status dt_store_edit(const char *directory,
                        dt_status (*decide)(struct dt_edit *edit, void *context),
                        void *context) DT_MUST_CHECK;

/* Makes directory/runs and opens the directory for writing; refuses network file systems. */
dt_status dt_store_open(const char *directory, int *fd) DT_MUST_CHECK;

/* The same, under the lock, for which it waits at most 10 s. */
struct dt_store_held {
    int fd, lock; /* the directory, and its lock */
};
dt_status dt_store_lock(const char *directory, struct dt_store_held *held) DT_MUST_CHECK;
void dt_store_unlock(const struct dt_store_held *held);

#endif
