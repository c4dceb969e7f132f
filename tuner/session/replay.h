/* SPDX-License-Identifier: MIT */
/* replay - sessions and runs read back from their journals
 *
 *     struct dt_replay replay;
 *     DT_TRY(dt_replay_open(path, false, &replay));
 *     if (replay.session != NULL && replay.session->target != NULL) ...
 *     dt_replay_fini(&replay);
 *
 * A session that is read back is judged again by the code that judged it live; no computed figure
 * comes from the journal.
 */
#ifndef DT_TUNER_SESSION_REPLAY_H
#define DT_TUNER_SESSION_REPLAY_H

#include "tuner/session/log.h"

/* A session read back. */
struct dt_replay {
    const struct dt_session *session; /* the log's; target NULL: the journal is no session's */
    struct dt_log *log;               /* owned */
    char kind[16];                    /* the first record's; "": there is none */
    int damaged;                      /* records that were left out */
};

/* Damaged records are left out, unless the journal may be foreign (db/journal.h). DT_OK with kind
 * "": there is no record. dt_replay_fini frees it, also after an error. */
dt_status dt_replay_open(const char *path, bool foreign, struct dt_replay *replay) DT_MUST_CHECK;
void dt_replay_fini(struct dt_replay *replay);
/* The session's target; NULL: none was read. */
const struct dt_target *dt_replay_target(const struct dt_replay *replay);

/* ---- a list: works that one command tunes one after the other, each in a session
 * of its own (resume.c) */

/* A list that is resumed. */
struct dt_list {
    char id[64];      /* journal of its first session; "": none */
    int64_t spent_ns; /* by the sessions that came to their end */
};

/* The list of the newest session in the store, if it has `works` works and did not come to its end.
 * DT_OK, also without one. */
dt_status dt_list_last(const char *directory, int works, struct dt_list *list) DT_MUST_CHECK;

/* Reads back the ended session of the list's work number `work`, from 0, of this target.
 * *found: there is one, and *replay is to be freed by dt_replay_fini; a journal that cannot be
 * read counts as none. */
dt_status dt_list_done(const char *directory, const struct dt_list *list, int work,
                       const struct dt_target *target, struct dt_replay *replay,
                       bool *found) DT_MUST_CHECK;

/* A recorded table, or a session's journal read as one: dt_landscape_open with that format, too. */
struct dt_landscape;
dt_status dt_session_landscape(const char *path, struct dt_landscape **landscape) DT_MUST_CHECK;

/* A run read back; all zero except the functions before its first record. */
struct dt_replay_run {
    void *context; /* given to both */
    /* A plan and the 1-rank plan beside it (n is 0: none), judged again. */
    void (*measured)(void *context, const struct dt_result *result, const struct dt_result *one,
                     const struct dt_target *target);
    void (*left_out)(void *context, const struct dt_sweep *sweep, int value, const char *reason);
    bool any;                 /* one of them was called */
    struct dt_target *target; /* target of the current plan; NULL: none */
    struct dt_clocks clocks;
    struct dt_result *parts; /* one for each process, owned */
    int count;
    struct dt_result one;
    struct dt_sweep sweep;
};

/* Reads the reader's current record, "run" first. `what` is for errors. */
dt_status dt_replay_run_read(struct dt_replay_run *run, const struct dt_journal_reader *reader,
                             const char *what) DT_MUST_CHECK;
/* Call after the last record: judges the last plan. An outcome other than ok is
 * an error, as in `run`. */
dt_status dt_replay_run_end(struct dt_replay_run *run) DT_MUST_CHECK;
void dt_replay_run_fini(struct dt_replay_run *run);

#endif
