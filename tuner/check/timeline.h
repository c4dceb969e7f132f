/* SPDX-License-Identifier: MIT */
/* timeline - the history of each entry from a store's journals: its sessions and checks
 *
 *     DT_TRY(dt_timelines_read(directory, &selection, &lines));
 *     DT_TRY(dt_timelines_judge(&lines));
 *
 * A moment is a session that found a plan (`best`) or a check of it (`check`). Nothing is measured
 * or written. Damaged records are skipped and counted. To add a format: one function in
 * tuner/cli/report/, and a row in tuner/cli/commands/history.c.
 */
#ifndef DT_TUNER_CHECK_TIMELINE_H
#define DT_TUNER_CHECK_TIMELINE_H

#include "base/json.h"
#include "stats/changes/changes.h"

enum dt_moment_kind {
    DT_MOMENT_SESSION,
    DT_MOMENT_CHECK,
    DT_MOMENT_UPDATE /* a check replaced the plan in the store (--update) */
};
const char *dt_moment_text(enum dt_moment_kind kind); /* "session", "check", "update" */

struct dt_moment {
    int64_t t_wall_ns;
    enum dt_moment_kind kind;
    char run[64]; /* the journal's id; "" where the entry names none */
    char verdict[40];
    bool provisional;       /* not judged: too few measurements */
    bool stamped;           /* by a later check: the versions may be the check's */
    double tuned, fallback; /* seconds a step of the plan and of the default; NAN */
    double gain, low, high; /* the default's value over the plan's, above 1 is a gain; NAN */
    json_t *plan;           /* owned; may be NULL */
    json_t *soft;           /* the fingerprint's; owned; NULL where the record has none */
    bool dropped;           /* a copy of another moment */
};

enum dt_series_of { DT_OF_TUNED, DT_OF_DEFAULT, DT_OF_GAIN, DT_SERIES_COUNT };

/* One of the three series with its steps and drifts. */
struct dt_course {
    int *at; /* owned: moment of each point */
    int count;
    struct dt_changes changes; /* changes of logarithms; indices of points */
};

struct dt_entry_timeline {
    uint64_t id;
    char title[200];
    json_t *key, *hard;        /* owned */
    struct dt_moment *moments; /* owned, in the order of time */
    int count;
    json_t *stored; /* owned: the plan in the store now; NULL: no entry */
    struct dt_course courses[DT_SERIES_COUNT];
};

struct dt_timelines {
    struct dt_entry_timeline *lines; /* owned, by title */
    int count;
    int journals;          /* number of journals read */
    int damaged, spoiled;  /* skipped records; journals with such records, or unreadable ones */
    struct dt_text unread; /* owned: for each unreadable journal a line with the cause */
    struct dt_error store; /* why best.json could not be read; the journals were still read */
};

struct dt_moment_filter {
    const char *text;   /* (optional) part of the title or of the key, ignoring case */
    const char *engine; /* (optional) of the hardware's part of the fingerprint, ignoring case */
    int64_t since_ns;   /* wall time */
    bool checks;        /* moments of checks alone, for which sessions are not read */
};

/* DT_EIO when runs/ exists and cannot be read. A missing folder is an empty history. Unreadable
 * files are listed in lines. */
dt_status dt_timelines_read(const char *directory, const struct dt_moment_filter *filter,
                            struct dt_timelines *lines) DT_MUST_CHECK;
/* Fills the courses. */
dt_status dt_timelines_judge(struct dt_timelines *lines) DT_MUST_CHECK;
void dt_timelines_fini(struct dt_timelines *lines);
/* It is of the entry with this key and hard fingerprint. */
bool dt_timeline_is_of(const struct dt_entry_timeline *line, const json_t *key, const json_t *hard);

/* "tuned time", "default's time", "gain" */
const char *dt_series_text(enum dt_series_of series);

/* Moment of a point of a series. */
const struct dt_moment *dt_course_at(const struct dt_entry_timeline *line, enum dt_series_of series,
                                     int point);
/* Appends versions, settings and plans that changed together with a series, as in "mpi 4.1.4 ->
 * 5.0.1 at the same time", if any. change: index. */
void dt_course_news(const struct dt_entry_timeline *line, enum dt_series_of series, int change,
                    struct dt_text *out);
/* The plan as in "ranks=2 ulysses=2"; safe to print. */
void dt_plan_words(const json_t *plan, struct dt_text *out);

#endif
