/* SPDX-License-Identifier: MIT */
/* history - writes a session to its journal, with every sample, and reads it back
 *
 * The journal has raw data: times, outcomes, and the compared plans. A session that is read back is judged again by the
 * code that judged it live; no computed figure comes from the journal. To keep another fact, write it in history.c and
 * read it there: `dittune analyze` then prints what `dittune tune` printed.
 */
#ifndef DT_TUNER_SESSION_HISTORY_H
#define DT_TUNER_SESSION_HISTORY_H

#include "tuner/session/session.h"

/* Each does nothing for a session without a journal. */
dt_status dt_history_begin(const struct dt_session *session, json_t *identity) DT_MUST_CHECK;
/* The search and its inputs. */
dt_status dt_history_search(const struct dt_session *session,
                            const struct dt_search_opts *opts) DT_MUST_CHECK;
/* The session that this one goes on with. */
dt_status dt_history_resumed(const struct dt_session *session) DT_MUST_CHECK;
/* All of it has been taken over. */
dt_status dt_history_taken(const struct dt_session *session) DT_MUST_CHECK;
/* A plan: its trial begins ("begin"), it ran when a session ended ("lost"), or its trial does not count any more ("undone"). */
dt_status dt_history_plan(const struct dt_session *session, const char *kind,
                          const struct dt_point *point) DT_MUST_CHECK;
/* A measurement: "trial"; "recheck", of the default plan by a session that goes on with another; "visit", of the incumbent. */
dt_status dt_history_result(const struct dt_session *session, const char *kind,
                            const struct dt_result *result) DT_MUST_CHECK;
dt_status dt_history_links(const struct dt_session *session, const struct dt_host_link *inside,
                           const struct dt_host_link *across) DT_MUST_CHECK;
dt_status dt_history_searched(const struct dt_session *session) DT_MUST_CHECK; /* its end */
/* A "comparison"; or its "sets" after each, before it is complete. */
dt_status dt_history_comparison(const struct dt_session *session, const char *kind,
                                const struct dt_compared *compared) DT_MUST_CHECK;
/* A record of another journal, as it is there. */
dt_status dt_history_copy(const struct dt_session *session, const json_t *record) DT_MUST_CHECK;
dt_status dt_history_end(const struct dt_session *session) DT_MUST_CHECK;

/* Records of `run`, whose journal may be NULL: the plan of a sweep's step (value 0: no sweep), and one measurement per
 * process, with role DT_ENTRANT_PLAN or DT_ENTRANT_BASELINE. */
dt_status dt_history_run(struct dt_journal *journal, const struct dt_target *target,
                         const struct dt_sweep *sweep, int value) DT_MUST_CHECK;
/* The step was not measured, or failed. */
dt_status dt_history_left_out(struct dt_journal *journal, const struct dt_sweep *sweep, int value,
                              const char *reason) DT_MUST_CHECK;
dt_status dt_history_measurement(struct dt_journal *journal, const struct dt_target *target,
                                 enum dt_entrant_role role,
                                 const struct dt_result *result) DT_MUST_CHECK;

/* What a record says of a session that has a target: "search", "trial", "undone", "comparison" and "end" change it, other kinds do
 * not. DT_ECORRUPT: it has no target, since the record of a session did not come. Errors name `what`. */
dt_status dt_session_apply(struct dt_session *session, const json_t *record,
                           const char *what) DT_MUST_CHECK;

/* A session read back; all zero before its first record. */
struct dt_replay {
    struct dt_session session; /* of the job and the target below */
    struct dt_job job;         /* only max_latency_ns is set */
    struct dt_target *target;
    bool ended;    /* its end was read: the session was complete */
    json_t *first; /* owned: the journal's first record */
    int damaged;   /* records that were left out */
};

/* Reads a journal and judges its session. Damaged records are left out, unless the journal may be foreign (db/journal.h). DT_OK with
 * target NULL: its first record is not a session's, or there is none. dt_replay_fini frees it, also after an error. */
dt_status dt_replay_open(const char *path, bool foreign, struct dt_replay *replay) DT_MUST_CHECK;

/* The same by hand: the next record, "session" first; and the judgement after the last one. */
dt_status dt_replay_record(struct dt_replay *replay, const json_t *record,
                           const char *what) DT_MUST_CHECK;
void dt_replay_end(struct dt_replay *replay);
void dt_replay_fini(struct dt_replay *replay);

/* The entry of a session that was killed, from its journal. *entry is a new reference, provisional; NULL: the journal
 * is not of a session, the session ended, or it measured no plan that could be stored. DT_EIO, DT_ENOMEM. */
dt_status dt_revive(const char *path, json_t **entry) DT_MUST_CHECK;

/* ---- a list: works that one command tunes one after the other, each in a session of its own (resume.c) */

/* A list that is resumed. */
struct dt_list {
    char id[64];      /* journal of its first session; "": none */
    int64_t spent_ns; /* by the sessions that came to their end */
};

/* The list of the newest session in the store, if it has `works` works and did not come to its end. DT_OK, also without one. */
dt_status dt_list_last(const char *directory, int works, struct dt_list *list) DT_MUST_CHECK;

/* Reads back the ended session of the list's work number `work`, from 0, that has this key. *found: there is one, and *replay is to be freed by
 * dt_replay_fini; a journal that cannot be read counts as none. */
dt_status dt_list_done(const char *directory, const struct dt_list *list, int work,
                       const json_t *key, struct dt_replay *replay, bool *found) DT_MUST_CHECK;

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
    struct dt_result *parts; /* of each process, owned */
    int count;
    struct dt_result one;
    struct dt_sweep sweep;
};

/* The next record, "run" first. */
dt_status dt_replay_run_record(struct dt_replay_run *run, const json_t *record,
                               const char *what) DT_MUST_CHECK;
/* Call after the last record: judges the last plan. An outcome other than ok is an error, as in `run`. */
dt_status dt_replay_run_end(struct dt_replay_run *run) DT_MUST_CHECK;
void dt_replay_run_fini(struct dt_replay_run *run);

#endif
