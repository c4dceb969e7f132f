/* SPDX-License-Identifier: MIT */
/* progress - what a command that measures does now and what it has found, on standard error
 *
 * On a terminal a few lines that are redrawn in place (screen.h) four times a second at most;
 * elsewhere a line for each trial. SIGUSR1 prints the state once.
 */
#ifndef DT_TUNER_CLI_LIVE_PROGRESS_H
#define DT_TUNER_CLI_LIVE_PROGRESS_H

#include "tuner/session/tuning.h"

#define DT_CURVE_MOST 64

struct dt_counts {
    int done, failed;
    int cut; /* dropped early, as slower than the best */
};

/* The best value after each trial; of many trials some. */
struct dt_curve {
    double value[DT_CURVE_MOST];
    int count, trials;
    int every;       /* trials for a value */
    int64_t best_ns; /* when the last one improved it */
};

/* Current activity. */
struct dt_activity {
    char what[240];      /* "trial ranks=2 ulysses=2" */
    const char *phase;   /* the worker group's; NULL: none */
    const char *verbose; /* phase as last printed */
    const char *said; /* by the worker that is waited for, while its request lasts; NULL: nothing */
    struct dt_text words; /* standard error of workers that has no line feed yet */
};

struct dt_progress {
    bool quiet, verbose, live;
    int64_t began_ns, deadline_ns; /* deadline 0: none */
    int64_t drawn_ns;              /* last drawing */
    int64_t streamed_ns;           /* last event "status" */
    struct dt_counts counts;
    struct dt_curve curve;
    struct dt_activity now;
    const char *comparison;                  /* "shoot-out", "final comparison" */
    const struct dt_target *target;          /* may be NULL */
    const struct dt_chance *chance;          /* chance of a further gain; may be NULL */
    const struct dt_result *best, *fallback; /* may be NULL */
};

/* SIGUSR1 arrived: the state is printed soon. */
extern volatile int dt_progress_asked;

/* How much is shown: usually the present activity, and a line for each trial. */
enum dt_voice {
    DT_VOICE_QUIET = -1, /* nothing */
    DT_VOICE_USUAL,
    DT_VOICE_VERBOSE, /* also phases, and the standard error of workers */
};

/* target may be NULL where no plan is shown. deadline_ns 0: none. */
void dt_progress_init(struct dt_progress *progress, const struct dt_target *target,
                      enum dt_voice voice, int64_t deadline_ns);
void dt_progress_now(struct dt_progress *progress, const struct dt_point *point,
                     const char *stage);                 /* current activity */
void dt_progress_set(void *progress, int set, int sets); /* number of sets made */
void dt_progress_note(struct dt_progress *progress, const char *format, ...)
    DT_FORMAT(2, 3);                                /* a line of its own */
void dt_progress_end(struct dt_progress *progress); /* erases the lines */

/* Shows a session (struct dt_session.watch). Borrows progress. */
struct dt_watch dt_progress_watch(struct dt_progress *progress);

/* The state as lines for people (state.c). columns: lines that are longer
 * are broken; 0: none is. */
void dt_progress_text(const struct dt_progress *progress, int columns, struct dt_text *out);
/* The same for --json-stream; new reference. */
json_t *dt_progress_json(const struct dt_progress *progress);
void dt_curve_add(struct dt_curve *curve, double value, int64_t now_ns);

#endif
