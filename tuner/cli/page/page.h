/* SPDX-License-Identifier: MIT */
/* page - a session as a document: one HTML page, Markdown, or a CSV of its trials
 * (docs/report.md), and what a word of the command line names
 *
 * The page needs no network and no script: gnuplot draws its figures into it, and each has its
 * data in a table. To add a section or a figure, write a function, its row in document.c and its
 * place in page.html.
 *
 * A word is a journal's file, the id of a journal in the store, or an entry: its id or the
 * beginning of it, or part of its title or key. Of an entry it is the session that made the
 * stored result, read back from its journal and judged again, not a later one that did not replace
 * it. An entry without such a journal has only its own fields.
 */
#ifndef DT_TUNER_CLI_PAGE_PAGE_H
#define DT_TUNER_CLI_PAGE_PAGE_H

#include "db/stored.h"
#include "tuner/session/replay.h"

struct dt_page_entry {
    json_t *json;                  /* owned; NULL: none was found */
    struct dt_stored_entry fields; /* borrowed from it */
    uint64_t id;
    char hex[17]; /* the id, as it is printed */
    char title[200];
};

/* Where the answers about an entry come from. */
enum dt_page_origin {
    DT_FROM_SESSION, /* the journal of the session that made its result */
    DT_FROM_UPDATE,  /* the entry: `check --update` replaced the plan */
    DT_FROM_ENTRY    /* the entry: the journal is not in the store */
};

struct dt_page {
    const struct dt_session *session; /* replay's; NULL: there is only the entry */
    char journal[128];                /* its id, or its file's name without ".jsonl" */
    struct dt_text path;              /* the journal's */
    struct dt_replay replay;
    const char *directory;      /* the store's; borrowed */
    bool usual;                 /* it is the usual one */
    struct dt_page_entry entry; /* empty: the word names a journal */
    enum dt_page_origin origin;
    /* A sentence on a session that came later and is not stored; empty: none. */
    struct dt_text later;
    /* A command that shows the session whose plan an update replaced; empty: none. */
    struct dt_text before;
};

/* directory: of the store; usual: commands need not name it. word: NULL for the entry of
 * the newest session or result. *page must not move before dt_page_close, which is to be
 * called after errors, too.
 * DT_EUSAGE: the word names nothing, or several entries, or the file is another; DT_ECORRUPT,
 * DT_EIO, DT_ENOMEM. */
dt_status dt_page_open(const char *directory, bool usual, const char *word,
                       struct dt_page *page) DT_MUST_CHECK;
void dt_page_close(struct dt_page *page);

/* The verdict and the answers to what people ask first, of the session, or of the entry alone:
 * as text, and as a new object. */
json_t *dt_page_why(const struct dt_page *page, struct dt_text *out);
/* Appends a clause: why an entry has no trials to show. */
void dt_page_cause(const struct dt_page *page, struct dt_text *out);
/* DT_EUSAGE, with what to do instead, when there is no session to make a page of. */
dt_status dt_page_need(const struct dt_page *page) DT_MUST_CHECK;

struct dt_page_format {
    const char *name;
    /* Appends the document on the sessions, 1 or 2. NULL: the objects of --json. */
    void (*write)(const struct dt_page pages[], int n, struct dt_text *out);
};
/* "html", "md", "recipe", "csv" or "json"; NULL for another name. */
const struct dt_page_format *dt_page_format(const char *name);

#endif
