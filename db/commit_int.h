/* SPDX-License-Identifier: MIT */
/* commit - best.json replaced whole, the old one kept by another name */
#ifndef DT_DB_COMMIT_INT_H
#define DT_DB_COMMIT_INT_H

#include "db/best_int.h"
#include "db/file_int.h"

#define DT_BEST_FILE   "best.json"
#define DT_BACKUP_FILE "best.json.1"

enum dt_commit_old {
    DT_COMMIT_FIRST,  /* there is no old file */
    DT_COMMIT_BACKUP, /* it becomes best.json.1 */
    DT_COMMIT_BAD,    /* best.json.bad-<time> */
    DT_COMMIT_OLD,    /* best.json.old-<time>: good, but made anew */
    DT_COMMIT_V1      /* best.json.v1 */
};

/* Writes text as the new best.json; bytes are those of the old one (of BACKUP). The lock is held. DT_EIO: best.json is as it
 * was, or (the sentence says so) it is the new one but may not survive a loss of power. */
dt_status dt_commit(int fd, const char *directory, const struct dt_text *text,
                    enum dt_commit_old old, const struct dt_text *bytes) DT_MUST_CHECK;

/* What an edit starts from: best.json, best.json.1 when that is broken, or nothing. */
struct dt_edit {
    struct dt_best best;
    enum dt_commit_old old;
    const char *because; /* of BAD: the sentence that says what is wrong with best.json */
    json_t *entries;     /* to fill: what is put */
    bool *drop; /* to fill where nothing is put, of the heap: the lines that go; NULL: none */
};

/* Takes the lock, loads, asks decide for entries (checked ones, no two of one identity), and commits when there are any, or lines to drop. As
 * dt_store_put in what it refuses. */
dt_status dt_store_edit(const char *directory,
                        dt_status (*decide)(struct dt_edit *edit, void *context),
                        void *context) DT_MUST_CHECK;

/* Makes directory/runs and opens the directory, for writing: not on a network file system. */
dt_status dt_store_open(const char *directory, int *fd) DT_MUST_CHECK;

#define DT_STORE_WAIT_NS INT64_C(10000000000) /* for the lock */

#endif
