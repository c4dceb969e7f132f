/* SPDX-License-Identifier: MIT */
/* tuning - finding the best plan of one target within a deadline
 *
 *     reference -> default, baseline (on GPUs the other way round), --against -> search (explore.c)
 *               -> shoot-out of the top three -> final comparison, with trials between its sets
 *               -> trials in the time that it did not need; one that looks faster is compared in the same way
 *
 * The default plan is first, so that an interrupted session never stores a slower plan. The final
 * comparison runs in fresh processes, and every published figure comes from it.
 *
 * What was measured so far is a session (session.h): whatever changes it is written as a
 * record first (log.h).
 */
#ifndef DT_TUNER_SESSION_TUNING_H
#define DT_TUNER_SESSION_TUNING_H

#include "db/engines/engines.h"
#include "model/predict.h"
#include "model/workload.h"
#include "search/landscape/landscape.h"
#include "search/search.h"
#include "tuner/session/log.h"

/* How the time is shared: trials end at 60 %, the shoot-out at 75 %, the final comparison at the
 * end less the time to stop the last groups. */
#define DT_TRIALS_SHARE 0.60
#define DT_SEARCH_LEAST                                                                            \
    (DT_TRIALS_SHARE / 3) /* the trials' share where the comparison needs long */
#define DT_SHOOTOUT_SHARE 0.75

/* The prior of a session's search:
 *
 *     --prior FILE      a table that another machine recorded (docs/search.md)
 *     --prior cost      predicted times (model/predict.h): of the built-in network, and of an engine's published model on GPUs that
 *                       have a card; the default
 *     --prior none
 */
struct dt_belief {
    const struct dt_target *target;
    struct dt_machine_card machine; /* that is predicted for */
    struct dt_workload workload;    /* the built-in network's */
    bool on_gpus; /* the built-in network runs on the machine; otherwise on cores */
    struct {
        struct dt_card card;
        struct dt_predict_job job; /* points to card and machine; card NULL: the built-in network */
        struct dt_engine_ways ways;
    } engine;
    struct dt_landscape *source;  /* owned; NULL: predictions are used */
    struct dt_transfer transfer;  /* from the source */
    char name[160];               /* "" when there is none */
    struct dt_prior prior, order; /* point into the belief, which must not move */
};

/* DT_EUSAGE, DT_EIO: the file is no table, or has no plan of the target. */
dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option) DT_MUST_CHECK;
void dt_belief_fini(struct dt_belief *belief);

/* The expected value of the objective; NULL: none. */
const struct dt_prior *dt_belief_prior(const struct dt_belief *belief);

/* The same for dt_search_opts: a plan that is predicted to lack memory is worse by a factor, so
 * that it is tried late. */
const struct dt_prior *dt_belief_order(const struct dt_belief *belief);

/* The expected step of the plan's batch; NAN: only a ratio is believed, or nothing. */
double dt_belief_seconds(const struct dt_belief *belief, const struct dt_point *point);

/* How many times as long as the slowest of the session's trials that ran the plan is
 * expected to take, 1 to 8. */
double dt_belief_slower(const struct dt_belief *belief, const struct dt_session *session,
                        const struct dt_point *point);

/* Callbacks for the display of a running session, until dt_tuning_run returns. */
struct dt_watch {
    void *context;                                               /* given to each */
    void (*begins)(void *context, const struct dt_point *point); /* before a trial of the point */
    void (*ended)(void *context, const struct dt_session *session, const struct dt_result *result);
    void (*compares)(void *context, const char *name); /* "shoot-out", "final comparison" */
    void (*set)(void *context, int set, int sets);     /* number of sets made, and their limit */
    void (*note)(void *context, const char *sentence);
};

struct dt_tuning_clock {
    int64_t began_ns, deadline_ns;
    int64_t search_deadline_ns; /* the budget beyond it is for the final comparison */
    int64_t paused_ns;          /* the part of dt_clock_skipped_ns that was reported */
    double elapsed_seconds;     /* at the end */
    double need_seconds;        /* the one --budget that it says would decide; 0: none */
};

/* The machine's pace, by visits of the incumbent. */
struct dt_tuning_pace {
    double level;        /* times as long as at first that its steps take now; 0: no visit so far */
    int from, since;     /* trials before this level began, and before the last visit */
    int64_t at_ns;       /* when that visit ended, or the search began */
    double cost_seconds; /* cost of the last visit; 0: none */
};

/* The search that runs. */
struct dt_tuning_search {
    struct dt_search *running;       /* owned; NULL: not begun */
    struct dt_groups groups;         /* groups of its plans */
    struct dt_point next;            /* the plan that it asked for last */
    bool asked;                      /* that plan was not tried yet */
    char name[160], why[240];        /* the texts for the record of the search */
    char note[240];                  /* the strategy's final note; "": none */
    bool stopped;                    /* it ended before the time for trials */
    bool planned;                    /* its starts were noted (explore.c) */
    struct dt_chance chance;         /* chance of a further gain */
    struct dt_point known[DT_KNOWN]; /* best plans of other sessions */
    int known_count;
    struct dt_belief belief;
};

/* The final comparison that runs. */
struct dt_tuning_finals {
    struct dt_entrant entrants[DT_ENTRANTS];
    int count;  /* 0: none runs */
    int tried;  /* trials before it, or before its shoot-out */
    bool later; /* it is not the first one */
};

enum dt_store_result {
    DT_STORE_NOTHING,
    DT_STORE_STORED,
    /* the store has a better one (dt_stored_evidence): decided; or as provisional, and
     * of more plans or sets */
    DT_STORE_KEPT_DECIDED,
    DT_STORE_KEPT_MORE
};

/* Files of the session. */
struct dt_tuning_store {
    enum dt_store_result result;
    int64_t unstored_ns; /* since when a better plan is not in the store; 0: stored */
};

/* The session that this one goes on with. */
struct dt_tuning_resume {
    char id[64]; /* its journal's; "": none */
    int64_t spent_ns;
    bool searched;                      /* its search was over */
    bool more_time;                     /* this one has a larger budget */
    struct dt_compared shootout, final; /* its comparisons; entrants: owned, NULL: none */
};

/* The request for a session. Texts are borrowed while it lives. An option of a session is a field
 * here, a row in tuner/cli/options.c, and the line that obeys it. */
struct dt_session_opts {
    const struct dt_job *job;
    const struct dt_target *target;
    const char *directory;       /* the store's; NULL: nothing is written */
    const char *strategy;        /* the search's */
    const char *prior, *against; /* the options' values; NULL: not given */
    bool resume;                 /* goes on with the last session of the same work */
    int64_t began_ns, deadline_ns;
    struct dt_session_list list; /* works is 0 or 1: alone */
};

/* A session that runs. */
struct dt_tuning {
    struct dt_session_opts opts;
    const struct dt_session *session; /* the session of the log */
    struct dt_log *log;               /* owned */
    const struct dt_target *target;   /* opts.target */
    const struct dt_watch *watch;     /* NULL: no display */
    struct dt_rig rig;
    struct dt_tuning_clock clock;
    struct dt_tuning_pace pace;
    struct dt_tuning_search search;
    struct dt_tuning_finals finals;
    struct dt_tuning_store store;
    struct dt_tuning_resume resume;
};

/* Fails, and leaves nothing to be freed, when the target has no plan, or --against
 * or --prior name none. */
dt_status dt_tuning_open(struct dt_tuning *tuning,
                         const struct dt_session_opts *opts) DT_MUST_CHECK;

/* Begins the journal, and reads what other sessions found. With resume: looks for the last session
 * of the same key on this machine, with the same software, that was killed, interrupted, or had too
 * little time, and takes its spent time from this one's; dt_tuning_run takes its trials over.
 * Without one that can be resumed the session is a new one, and a note says why. Without resume a
 * note says that the last session of this work was cut short, within a day. */
dt_status dt_tuning_begin(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Runs it, and stores the result. DT_OK (also with failures of plans), DT_EPROVISIONAL,
 * DT_EALLFAILED, DT_EINFEASIBLE (no plan keeps the limits), DT_EINTR, and errors of the store;
 * tuning->session has the results so far. */
dt_status dt_tuning_run(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Sends a sentence to the display. */
void dt_tuning_note(const struct dt_tuning *tuning, const char *format, ...) DT_FORMAT(2, 3);
void dt_tuning_fini(struct dt_tuning *tuning);

/* ---- what a session would do (explore.c) */

/* A plan of a preview, and what it is tried as: "default", "baseline", "against", "stored" (by
 * another session), "search". */
struct dt_preview_plan {
    const char *role;
    struct dt_point point;
};

#define DT_PREVIEW_MOST 16

/* A session's first trials, before any answer. */
struct dt_preview {
    struct dt_preview_plan plans[DT_PREVIEW_MOST];
    int count;
    bool more;            /* further plans do not depend on answers either */
    double trial_seconds; /* supposed time of a trial */
    double trials_until;  /* seconds from the start until trials end */
    double classes;       /* classes of plans that share a load */
};

/* A usual trial of a plan with this step time, without its load. */
double dt_session_trial_seconds(double step);

/* Runs nothing and writes nothing. trial_seconds: of a trial, on which the choice of the search
 * depends. The session is open, and has no journal; its search's name and reason are set. */
dt_status dt_tuning_preview(struct dt_tuning *tuning, double trial_seconds,
                            struct dt_preview *preview) DT_MUST_CHECK;

/* Sets known and known_count of the search from the store: the same work, perhaps under another
 * objective, limit or batch, with other devices or on another machine; nearest first, and only
 * feasible ones. Empty if the store is unreadable: saving the session reports the error. */
void dt_known_read(struct dt_tuning *tuning, const char *directory);

#endif
