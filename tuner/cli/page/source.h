/* SPDX-License-Identifier: MIT */
/* source - what a word of the command line names: a session, read back from its journal and judged again, or an entry of the store
 *
 * A word is a journal's file, the id of a journal in the store, or an entry: its id or the beginning of it, or part of its title or
 * key. Of an entry it is the session that made the stored result, not a later one that did not replace it. An entry without such a
 * journal has only its own fields: dt_page_source_stored().
 */
#ifndef DT_TUNER_CLI_PAGE_SOURCE_H
#define DT_TUNER_CLI_PAGE_SOURCE_H

#include "tuner/cli/named/named.h"
#include "tuner/cli/page/page.h"
#include "tuner/session/history.h"

struct dt_page_source {
    struct dt_page page; /* points into this; session NULL: there is only the entry */
    struct dt_text path; /* of the journal */
    struct dt_replay replay;
    json_t *first;  /* its first record */
    char name[128]; /* the file's, without ".jsonl" */
    dt_status status;
    const char *directory;       /* of the store; borrowed */
    bool usual;                  /* it is the usual one */
    struct dt_named_entry entry; /* empty: the word names a journal */
    enum dt_named_origin origin;
    struct dt_text later, before; /* a sentence; a command: struct dt_named_stored */
};

/* directory: of the store, NULL: the usual one. word: NULL for the entry of the newest session or result. *source must not move
 * before dt_page_source_close, which is to be called after errors, too. DT_EUSAGE: the word names nothing, or several entries, or the
 * file is another; DT_ECORRUPT, DT_EIO, DT_ENOMEM. */
dt_status dt_page_source_open(const char *directory, const char *word,
                              struct dt_page_source *source) DT_MUST_CHECK;
void dt_page_source_close(struct dt_page_source *source);

/* What an entry without a session says. Borrows from source. */
struct dt_named_stored dt_page_source_stored(const struct dt_page_source *source);
/* DT_EUSAGE, with what to do instead, when there is no session to make a page of. */
dt_status dt_page_source_need(const struct dt_page_source *source) DT_MUST_CHECK;

#endif
