/* SPDX-License-Identifier: MIT */
/* log - a session's records: written to its journal, applied to the session, read back
 *
 *     struct dt_log *log;
 *     DT_TRY(dt_log_new(&log));
 *     const struct dt_session *session = dt_log_session(log);      -- what the records so far say
 *     DT_TRY(dt_log_add(log, &(struct dt_log_record){.kind = DT_LOG_UNDONE, .plan = point}));
 *
 * Records have raw data: times, outcomes, and the compared plans. Figures are computed when a
 * record is applied or read, by the functions that judged it live. To add a fact, add it to the
 * record's struct here, write and read it (record/codec.c), and keep it (apply.c): docs/adding.md.
 */
#ifndef DT_TUNER_SESSION_LOG_H
#define DT_TUNER_SESSION_LOG_H

#include "db/journal.h"
#include "tuner/session/session.h"

enum dt_log_kind {
#define DT_LOG_KIND(NAME, text, codec, apply, doc) DT_LOG_##NAME,
#include "tuner/session/log.def"
#undef DT_LOG_KIND
    DT_LOG_KINDS, /* any other record */
};

/* The record of a session. */
struct dt_begun {
    const char *id; /* the journal's */
    const struct dt_target *target;
    struct dt_target *read;            /* where the record was read, the same: owned */
    const struct dt_job *job;          /* written, not read back */
    struct dt_session_list list;       /* works is 0 or 1: alone; written, not read back */
    struct dt_fingerprint fingerprint; /* borrowed */
    int64_t wall_ns, budget_ns, max_latency_ns;
    struct dt_point against;
    bool has_against;
};

struct dt_taken {
    const char *of;   /* id of the other session */
    int64_t spent_ns; /* by it */
    int trials;       /* that were taken over */
};

struct dt_link_speeds {
    struct dt_host_link inside, across;
};

struct dt_searching {
    const char *name, *why, *prior; /* see struct dt_session_search */
    struct dt_point known[DT_KNOWN];
    int known_count;
    /* its limits: evaluations and time that remain, a rank's memory (0: not known),
     * plans of a group in a row */
    int64_t evaluations, left_ns, capacity_bytes;
    int in_a_row;
};

struct dt_searched {
    const char *note;
    bool stopped;
};

struct dt_session_ended {
    struct dt_searched searched;
    struct dt_closing closing;
    enum dt_verdict verdict; /* for readers; written, not read back */
    double importance[DT_AXES_MAX];
    bool weighed;
    /* read from a session of an older program, which has them at its end instead of records of
     * their own; not written */
    struct dt_unverified unverified[DT_RIG_REFERENCES];
    int unverified_count;
};

/* A plan of a run, or a step of a sweep that was left out. */
struct dt_run_step {
    const struct dt_target *target;
    struct dt_target *read; /* where the record was read, the same: owned */
    bool sweeps, ranks;     /* there is a sweep; its values are rank counts, else batches */
    int value;
    const char *reason; /* why it was left out; NULL: it is measured */
};

/* Texts are borrowed: of a record that was read they belong to its JSON. */
struct dt_log_record {
    enum dt_log_kind kind;
    /* role of a run's trial: DT_ENTRANT_PLAN or DT_ENTRANT_BASELINE; else DT_ENTRANT_ROLES */
    enum dt_entrant_role role;
    union {
        struct dt_begun begun;
        struct dt_taken taken;
        struct dt_link_speeds links;
        struct dt_point plan;
        struct dt_result result; /* owned */
        struct dt_unverified unverified;
        struct dt_searching search;
        struct dt_searched searched;
        struct dt_compared compared; /* owned: entrants, where it was read */
        struct dt_session_ended ended;
        struct dt_run_step run;
    };
};

/* The name in journals. */
const char *dt_log_kind_text(enum dt_log_kind kind);
enum dt_log_kind dt_log_kind_of(const char *text); /* DT_LOG_KINDS: of none of these */

/* Frees what the record owns; twice is fine. */
void dt_log_record_fini(struct dt_log_record *record);

/* Reads the reader's current record and judges its samples; dt_log_record_fini frees it, also after
 * an error. target: of its session or run, NULL before its first record; clocks: of ranks, before
 * it. `what` is for errors. */
dt_status dt_log_decode(const struct dt_journal_reader *reader, const char *what,
                        const struct dt_target *target, const struct dt_clocks *clocks,
                        struct dt_log_record *record) DT_MUST_CHECK;

/* Copies a record of a measurement or a comparison, by writing and reading it; the copy owns
 * what it has. DT_ENOMEM. */
dt_status dt_log_copy(const struct dt_log_record *record, const struct dt_target *target,
                      const struct dt_clocks *clocks, struct dt_log_record *copy) DT_MUST_CHECK;

/* Changes the session by what the record says. It takes the result of a trial, and the entrants of
 * a comparison. A record of a kind that log.def does not have changes nothing. Pure: no clock, no
 * rig, no JSON. DT_ENOMEM. */
dt_status dt_session_apply(struct dt_session *session, struct dt_log_record *record) DT_MUST_CHECK;
void dt_session_fini(struct dt_session *session);

/* A session and the journal that its records are written to. */
struct dt_log;
dt_status dt_log_new(struct dt_log **log) DT_MUST_CHECK;
/* Closes the journal. NULL is fine. */
void dt_log_free(struct dt_log *log);
const struct dt_session *dt_log_session(const struct dt_log *log); /* borrowed */

/* From now on records are written to the journal, which the log owns. */
void dt_log_attach(struct dt_log *log, struct dt_journal *journal);
/* Writes the record, and applies it, which takes what the record owns. It is applied
 * also where it could not be written: what was measured is known. DT_EIO, DT_ENOMEM: the
 * first error of the two. */
dt_status dt_log_add(struct dt_log *log, struct dt_log_record *record) DT_MUST_CHECK;
/* Reads the reader's current record and applies it. DT_ECORRUPT: one of a session,
 * before the session's own. */
dt_status dt_log_read(struct dt_log *log, const struct dt_journal_reader *reader,
                      const char *what) DT_MUST_CHECK;
/* After the last record that was read: judges a session that did not come to its end. */
void dt_log_read_end(struct dt_log *log);

struct dt_journal *dt_log_journal(const struct dt_log *log); /* borrowed; NULL: none */
/* Writes a record as it is, without applying it; nothing where journal is NULL. */
dt_status dt_log_record_write(struct dt_journal *journal, const struct dt_log_record *record,
                              const struct dt_target *target) DT_MUST_CHECK;

#endif
