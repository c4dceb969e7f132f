/* SPDX-License-Identifier: MIT */
/* page - a session as a document: one HTML page, Markdown, or a CSV of its trials
 * (docs/report.md)
 *
 * The page needs no network and no script: gnuplot draws its figures into it, and each has its
 * data in a table. To add a section or a figure, write a function, its row in document.c and its
 * place in page.html.
 */
#ifndef DT_TUNER_CLI_PAGE_PAGE_H
#define DT_TUNER_CLI_PAGE_PAGE_H

#include "tuner/session/session.h"

/* A session that was read back. All borrowed. */
struct dt_page {
    const struct dt_session *session;
    const char *journal; /* its id, or its file's name */
    const char
        *entry; /* id of the entry that this session's result is; NULL: a journal was named */
    const char
        *later; /* a sentence on a session that came later and is not stored; "" or NULL: none */
};

struct dt_page_format {
    const char *name;
    /* Appends the document on the sessions, 1 or 2. NULL: the objects of --json. */
    void (*write)(const struct dt_page pages[], int n, struct dt_text *out);
};
/* "html", "md", "csv" or "json"; NULL for another name. */
const struct dt_page_format *dt_page_format(const char *name);

#endif
