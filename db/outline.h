/* SPDX-License-Identifier: MIT */
/* outline - the journals of a store, and what each says as a whole */
#ifndef DT_DB_OUTLINE_H
#define DT_DB_OUTLINE_H

#include "base/json.h"
#include "base/status.h"
#include "db/stored.h"

#include <dirent.h>

/* The journals of a store, from the newest to the oldest by their names:
 *
 *     struct dt_journals runs = {.directory = directory};
 *     while (dt_journals_next(&runs))
 *         ... runs.path, runs.id ...
 *     DT_TRY(dt_journals_end(&runs));
 */
struct dt_journals {
    const char *directory; /* the store's */
    const char *since;     /* a time as names begin: older journals are left out; NULL: none is */
    const char *prefix;    /* instead of journals: files beside runs/ whose names begin so; NULL */
    bool oldest_first;     /* the other way round */
    /* DT_EIO: the folder is there, and cannot be read; any but DT_OK, also the
     * caller's, ends the walk */
    dt_status status;
    const char *path;      /* the current file's, borrowed until the next call */
    const char *name;      /* the file's name, in its path */
    char id[256];          /* the journal's name without ".jsonl" */
    struct dirent **files; /* the rest is the walk's own */
    int count, next;
    bool open;
    struct dt_text text;
};

#define DT_JOURNALS_TIME 16 /* bytes of a journal's name that are a time: "20261124T004824Z" */

bool dt_journals_next(struct dt_journals *runs) DT_MUST_CHECK;
/* The current file is regular and no link, and its name has only plain letters, as those of a
 * store. False, and the walk ends: it cannot be looked at (DT_EIO). */
bool dt_journals_ours(struct dt_journals *runs) DT_MUST_CHECK;
/* Ends the walk, at any time; returns its status. */
dt_status dt_journals_end(struct dt_journals *runs) DT_MUST_CHECK;

/* Appends the path of a store's journal. */
void dt_journals_path(const char *directory, const char *id, struct dt_text *path);

/* A journal as a whole. */
struct dt_outline {
    char kind[16]; /* its first record's: "session", "check", "run", ..; "": there is none */
    char id[64];   /* the session's; "": there is none, and the fields below are not set */
    json_t *key, *fingerprint; /* owned; NULL: the record has none */
    /* the starter of its ranks: engine or program, arguments; owned; NULL: it has none */
    json_t *worker;
    char list[64];       /* the list of works that the session belongs to; "": to none */
    int64_t work, works; /* its place there */
    int64_t began_ns;    /* wall clock */
    int64_t budget_ns;
    int64_t spent_ns;  /* time that passed between its records */
    int64_t before_ns; /* spent before it, where it was resumed itself */
    int trials;
    bool copying;  /* it was resumed itself, and ended before it had all of that session */
    bool compared; /* its final comparison began */
    bool ended;
    enum dt_verdict verdict; /* where it ended */
    json_t *results; /* its entries, records of kind "best", in an array; owned; NULL: none */
    int checks;      /* records of entries that were checked */
    int damaged;     /* records that were left out */
    int version; /* its records' version; that of a newer program, if one has another than ours */
};

#define DT_JOURNAL_VERSION 1

/* A journal of the store is a file of its own: a link may lead to one that its owner did not put
 * there, and is refused. DT_EIO, DT_ENOMEM; the caller frees *outline, also after an error. */
dt_status dt_outline_read(const char *path, struct dt_outline *outline) DT_MUST_CHECK;
/* Reads the first record only, which sets the fields down to budget_ns; a journal that cannot be
 * read has none. The caller frees *outline. */
void dt_outline_first(const char *path, struct dt_outline *outline);
void dt_outline_fini(struct dt_outline *outline);
/* It ended with a result that is not provisional. */
bool dt_outline_decided(const struct dt_outline *outline);

#endif
