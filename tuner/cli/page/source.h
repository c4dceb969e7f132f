/* SPDX-License-Identifier: MIT */
/* source - the session that a word of the command line names, read back from its journal and judged again
 *
 * A word is a journal's file, the id of a journal in the store, or part of the title or key of an entry, of which it is the
 * newest session.
 */
#ifndef DT_TUNER_CLI_PAGE_SOURCE_H
#define DT_TUNER_CLI_PAGE_SOURCE_H

#include "tuner/cli/page/page.h"
#include "tuner/session/history.h"

struct dt_page_source {
    struct dt_page page; /* points into this */
    struct dt_text path;
    struct dt_replay replay;
    json_t *first;  /* its first record */
    char name[128]; /* the file's, without ".jsonl" */
    dt_status status;
};

/* directory: of the store, NULL: the usual one. word: NULL for the newest session of all. *source must not move before
 * dt_page_source_close, which is to be called after errors, too. DT_EUSAGE: there is no such session, or the file is another;
 * DT_ECORRUPT, DT_EIO, DT_ENOMEM. */
dt_status dt_page_source_open(const char *directory, const char *word,
                              struct dt_page_source *source) DT_MUST_CHECK;
void dt_page_source_close(struct dt_page_source *source);

#endif
