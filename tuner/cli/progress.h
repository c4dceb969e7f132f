/* SPDX-License-Identifier: MIT */
/* progress - one live line on a terminal, one line a trial elsewhere; on standard error
 *
 * The live line is drawn at events and once a second while waiting for a worker. It is cut to the width of the
 * terminal. All other output is written only between runs.
 */
#ifndef DT_TUNER_CLI_PROGRESS_H
#define DT_TUNER_CLI_PROGRESS_H

#include "tuner/session/session.h"

struct dt_progress {
    bool quiet, live;              /* live: standard error is a terminal that understands \r */
    int64_t began_ns, deadline_ns; /* deadline 0: none */
    int done, failed;
    bool drawn;       /* there is a line on the screen */
    int64_t drawn_ns; /* when */
    const char *said; /* by the worker that is waited for, while the line is drawn; NULL: nothing */
    char what[200];   /* current activity, as last drawn */
    const char *comparison; /* "shoot-out", "final comparison" */
    const struct dt_target *target;
    const struct dt_result *best, *fallback; /* may be NULL */
};

void dt_progress_init(struct dt_progress *progress, const struct dt_target *target, bool quiet,
                      int64_t deadline_ns);
void dt_progress_now(struct dt_progress *progress, const struct dt_point *point,
                     const char *stage); /* current activity */
void dt_progress_trial(struct dt_progress *progress,
                       const struct dt_result *result);  /* result of a finished trial */
void dt_progress_set(void *progress, int set, int sets); /* number of sets made */
void dt_progress_note(struct dt_progress *progress, const char *format, ...)
    DT_FORMAT(2, 3);                                /* a line of its own */
void dt_progress_end(struct dt_progress *progress); /* clears the line */

/* Shows a session (struct dt_session.watch). Borrows progress. */
struct dt_watch dt_progress_watch(struct dt_progress *progress);

#endif
