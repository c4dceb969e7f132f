/* SPDX-License-Identifier: MIT */
/* named - the entry of the store that a word names, the sessions of its work, and what it says without a journal
 *
 *     DT_TRY(dt_named_sessions_read(directory, &sessions));
 *     DT_TRY(dt_named_entry_find(directory, word, &sessions, &entry));
 *     if (entry.json != NULL)
 *         ... entry.fields.journal is the journal of the session or check that made the stored result
 */
#ifndef DT_TUNER_CLI_NAMED_NAMED_H
#define DT_TUNER_CLI_NAMED_NAMED_H

#include "db/stored.h"

/* A session, by the first record of its journal. */
struct dt_named_session {
    uint64_t entry;        /* id of the entry of its work on its machine */
    int64_t began_wall_ns; /* of that record */
    char journal[64];
};
struct dt_named_sessions {
    struct dt_named_session *at; /* owned */
    int count;
};

/* The sessions in runs/. Of each journal only the beginning is read; one that cannot be read is left out. A missing folder has
 * none. DT_EIO, DT_ENOMEM. */
dt_status dt_named_sessions_read(const char *directory,
                                 struct dt_named_sessions *sessions) DT_MUST_CHECK;
void dt_named_sessions_fini(struct dt_named_sessions *sessions);

/* Kind of a journal's first record; "": it has none, or cannot be read. */
void dt_named_journal_kind(const char *path, char kind[32]);

struct dt_named_entry {
    json_t *json;                  /* owned; NULL: none was found */
    struct dt_stored_entry fields; /* borrowed from it */
    uint64_t id;
    char hex[17]; /* the id, as it is printed */
    char title[200];
};

/* word: an id or its beginning, or part of the title or key, ignoring case; a whole id or title goes before parts. NULL: the entry
 * whose result, or whose last session, is the newest. No such entry: DT_OK, and *entry is empty. DT_EUSAGE: the word matches several,
 * which the sentence lists. DT_ECORRUPT, DT_EIO, DT_ENOMEM. */
dt_status dt_named_entry_find(const char *directory, const char *word,
                              const struct dt_named_sessions *sessions,
                              struct dt_named_entry *entry) DT_MUST_CHECK;
void dt_named_entry_fini(struct dt_named_entry *entry);

/* Newest session of the entry's work that began after its result was stored, and so did not replace it; the newest one that began
 * before; NULL: none. */
const struct dt_named_session *dt_named_session_after(const struct dt_named_entry *entry,
                                                      const struct dt_named_sessions *sessions);
const struct dt_named_session *dt_named_session_before(const struct dt_named_entry *entry,
                                                       const struct dt_named_sessions *sessions);

/* Where the answers about an entry come from. */
enum dt_named_origin {
    DT_NAMED_SESSION, /* the journal of the session that made its result */
    DT_NAMED_UPDATE,  /* the entry: `check --update` replaced the plan */
    DT_NAMED_ENTRY    /* the entry: the journal is not in the store */
};
const char *dt_named_origin_text(enum dt_named_origin origin); /* "session", "update", "entry" */

/* An entry that is to answer by itself. All borrowed. */
struct dt_named_stored {
    const struct dt_named_entry *entry;
    enum dt_named_origin origin;
    const char *directory;
    const char
        *before; /* a command that shows the session whose plan the update replaced; "": none */
    const char *later; /* a sentence; "": none */
};

/* The verdict and the answers that the entry has: as text, and as a new object. NULL: no memory. */
json_t *dt_named_stored_why(const struct dt_named_stored *stored, struct dt_text *out);
/* One clause: why there are no trials to show. */
void dt_named_stored_cause(const struct dt_named_stored *stored, struct dt_text *out);

#endif
