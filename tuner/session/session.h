/* SPDX-License-Identifier: MIT */
/* session - finding the best plan of one target within a deadline
 *
 *     reference -> default, baseline (on GPUs the other way round), --against -> search (explore.c)
 *               -> shoot-out of the top three -> final comparison, with trials between its sets
 *               -> trials in the time that it did not need; one that looks faster is compared in the same way
 *
 * The default plan is first, so that an interrupted session never stores a slower plan. The final comparison runs in
 * fresh processes, and every published figure comes from it.
 */
#ifndef DT_TUNER_SESSION_SESSION_H
#define DT_TUNER_SESSION_SESSION_H

#include "db/journal.h"
#include "db/stored.h"
#include "model/workload.h"
#include "search/landscape/landscape.h"
#include "search/search.h"
#include "tuner/measure/measure.h"

/* How the time is shared: trials end at 60 %, the shoot-out at 75 %, the final comparison at the end less the time to
 * stop the last groups. */
#define DT_TRIALS_SHARE   0.60
#define DT_SEARCH_LEAST   (DT_TRIALS_SHARE / 3) /* what trials keep where the comparison needs long */
#define DT_SHOOTOUT_SHARE 0.75

#define DT_HIDDEN_GAIN_MOST 0.25 /* a tie in which a larger gain may hide decides nothing */

#define DT_KNOWN 4 /* most plans taken from the store */
#define DT_SHOTS 4 /* most plans of a shoot-out: the default and its challengers */

/* The prior of a session's search:
 *
 *     --prior FILE      a table that another machine recorded (docs/search.md)
 *     --prior cost      operations and bytes of each plan (model/cost.h); the built-in network's default
 *     --prior none
 */
struct dt_belief {
    const struct dt_target *target;
    struct dt_workload workload; /* of the built-in network */
    struct dt_landscape *source; /* owned; NULL: the cost model is used */
    struct dt_transfer transfer; /* from the source */
    char name[160];              /* "" when there is none */
    struct dt_prior prior;       /* points into the belief, which must not move */
};

/* DT_EUSAGE, DT_EIO: the file is no table, or has no plan of the target. */
dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option) DT_MUST_CHECK;
void dt_belief_fini(struct dt_belief *belief);

/* For dt_search_opts; NULL: none. */
const struct dt_prior *dt_belief_prior(const struct dt_belief *belief);

/* Figures of a plan after its samples were freed. */
struct dt_shot {
    struct dt_point point;
    double value;               /* of the objective, smaller is better */
    struct dt_measured figures; /* as entries have them; plan: NULL */
};

/* Callbacks for the display of a running session, until dt_session_run returns. */
struct dt_session;
struct dt_watch {
    void *context;                                               /* given to each */
    void (*begins)(void *context, const struct dt_point *point); /* before a trial of the point */
    void (*ended)(void *context, const struct dt_session *session, const struct dt_result *result);
    void (*compares)(void *context, const char *name); /* "shoot-out", "final comparison" */
    void (*set)(void *context, int set, int sets);     /* number of sets made, and their limit */
    void (*note)(void *context, const char *sentence);
};

struct dt_session_clock {
    int64_t began_ns, deadline_ns;
    int64_t search_deadline_ns; /* the budget beyond it is for the final comparison */
    int64_t paused_ns;          /* the part of dt_clock_skipped_ns that was reported */
    double elapsed_seconds;
    double need_seconds; /* the one --budget that it says would decide; 0: none */
};

/* The machine's pace, by visits of the incumbent. */
struct dt_session_pace {
    double level;        /* times as long as at first that its steps take now; 0: no visit so far */
    int from, since;     /* trials before this level began, and before the last visit */
    int64_t at_ns;       /* when that visit ended, or the search began */
    double cost_seconds; /* of the last visit; 0: none */
};

/* The search of a session. */
struct dt_session_search {
    struct dt_search *running; /* owned; NULL: not begun */
    struct dt_groups groups;   /* of its plans */
    struct dt_point next;      /* the plan that it asked for last */
    bool asked;                /* that plan was not tried yet */
    /* the strategy and the reason of the choice; "" before the search */
    char name[160], why[240];
    char note[240];                  /* the strategy's final note; "": none */
    bool stopped;                    /* it ended before the time for trials */
    bool planned;                    /* its starts were noted (explore.c) */
    struct dt_chance chance;         /* of a further gain */
    struct dt_point known[DT_KNOWN]; /* best plans of other sessions */
    int known_count;
    struct dt_belief belief;
    /* at the end: what each axis alone explains, by the search's model (search/bayes/importance.h) */
    double importance[DT_AXES_MAX];
    bool weighed; /* it is known */
};

/* The last shoot-out and final comparison. */
struct dt_session_finals {
    struct dt_entrant entrants[DT_ENTRANTS]; /* of the final comparison */
    int entrant_count;
    struct dt_sets sets;     /* sets of fresh processes of the final comparison */
    int best;                /* index of an entrant; -1: none */
    struct dt_point ties[3]; /* candidates that tie with the winner of the shoot-out */
    int tie_count;
    struct dt_shot shots[DT_SHOTS]; /* of the shoot-out */
    int shot_count;
    int tried; /* trials before the shoot-out */
    enum dt_verdict verdict;
};

/* Files of the session. */
struct dt_session_store {
    struct dt_journal *journal; /* NULL: none */
    char id[64];                /* of the journal; "" without one */
    bool stored;                /* the result is in the store */
    /* the store has a decided result, which a provisional one does not replace */
    bool outranked;
    int64_t unstored_ns; /* since when a better plan is not in the store; 0: stored */
};

/* The trials by their plans, kept up to date by dt_session_keep (trials.c). */
struct dt_session_tried {
    int *slots; /* owned: 1 + the trial that counts for its plan; 0: free */
    int room;   /* a power of two; 0: no trial */
    int leader; /* 1 + the best eligible trial; 0: none */
};

/* The session that this one goes on with. */
struct dt_session_resume {
    char id[64]; /* of its journal; "": none */
    int64_t spent_ns;
    bool searched;                      /* its search was over */
    bool more_time;                     /* this one has a larger budget */
    struct dt_compared shootout, final; /* its comparisons; entrants: owned, NULL: none */
};

/* The place of this session in a list of works (history.h). */
struct dt_session_list {
    char id[64]; /* of the list; "": this session begins it */
    int work, works;
};

/* What a session is asked for. Texts are borrowed while it lives. An option of a session is a field here, a row in tuner/cli/options.c, and
 * the line that obeys it. */
struct dt_session_opts {
    const struct dt_job *job;
    const struct dt_target *target;
    const char *directory;       /* of the store; NULL: the session is read back */
    const char *strategy;        /* of the search */
    const char *prior, *against; /* as the options; NULL: not given */
    bool resume;                 /* goes on with the last session of the same work */
    int64_t began_ns, deadline_ns;
    struct dt_session_list list; /* works is 0 or 1: alone */
};

struct dt_session {
    struct dt_session_opts opts;
    const struct dt_job *job;
    const struct dt_target *target;
    const struct dt_watch *watch; /* NULL: no display */
    struct dt_rig rig;
    struct dt_point against;
    bool has_against;
    struct dt_session_clock clock;
    struct dt_session_pace pace;
    struct dt_session_search search;
    struct dt_session_finals finals;
    /* of a session that compared twice: what it found before (dt_verdict_settle); entrant_count 0: nothing */
    struct dt_session_finals earlier;
    struct dt_session_store store;
    struct dt_session_resume resume;
    struct dt_result *trials; /* owned */
    int count;
    struct dt_session_tried tried;
    int64_t slowest_ns; /* cost of the slowest trial that ran; 0: none ran */
    /* of the machine, owned; all zero before the session is recorded */
    struct dt_fingerprint fingerprint;
    enum dt_verdict verdict;
    bool limit_broken; /* no plan keeps --max-latency, or a --limit */
};

/* Fails, and leaves nothing to be freed, when the target has no plan, or --against or --prior name none. */
dt_status dt_session_open(struct dt_session *session,
                          const struct dt_session_opts *opts) DT_MUST_CHECK;

/* Begins the journal, and reads what other sessions found. With resume: looks for the last session of the same key on this machine,
 * with the same software, that was killed, interrupted, or had too little time, and takes its spent time from this one's;
 * dt_session_run takes its trials over. Without one that can be resumed the session is a new one, and a note says why. Without
 * resume a note says that the last session of this work was cut short, within a day. */
dt_status dt_session_begin(struct dt_session *session) DT_MUST_CHECK;

/* Runs it, and stores the result. DT_OK (also with failures of plans), DT_EPROVISIONAL, DT_EALLFAILED, DT_EINFEASIBLE (no plan
 * keeps the limits), DT_EINTR, and errors of the store; *session has the results so far. */
dt_status dt_session_run(struct dt_session *session) DT_MUST_CHECK;

/* Sends a sentence to the display. */
void dt_session_note(const struct dt_session *session, const char *format, ...) DT_FORMAT(2, 3);
void dt_session_fini(struct dt_session *session);

/* The point's trial decides nothing until its plan is tried again. */
void dt_session_undo(struct dt_session *session, const struct dt_point *point);

/* Appends a trial, which the session then owns. */
dt_status dt_session_keep(struct dt_session *session, const struct dt_result *result) DT_MUST_CHECK;

/* The point's trial; NULL: it was not tried. Of several attempts (trials.c) the last one not interrupted. */
const struct dt_result *dt_session_trial(const struct dt_session *session,
                                         const struct dt_point *point);
/* Trial i is the one that counts for its point, not an earlier attempt. */
bool dt_session_counts(const struct dt_session *session, int i);

/* Results to publish: from the final comparison, or, without one, from the trials; NULL when there is none. */
const struct dt_result *dt_session_best(const struct dt_session *session);
const struct dt_result *dt_session_role(const struct dt_session *session,
                                        enum dt_entrant_role role);
/* The final comparison has figures: two sets. */
bool dt_session_compared(const struct dt_session *session);
/* The comparison's first entrant is the default plan, so ratios are relative to it. */
bool dt_session_against_default(const struct dt_session *session);
const struct dt_entrant *dt_session_entrant(const struct dt_session *session,
                                            enum dt_entrant_role role);
/* The plan that challenged the default and was compared with it, when it did not become the best; NULL: none. */
const struct dt_entrant *dt_session_candidate(const struct dt_session *session);
/* The fastest trial, where the default stays and no round compared the two; NULL: none. */
const struct dt_result *dt_session_uncompared(const struct dt_session *session);

/* ---- judged from its samples (verdict.c, trials.c) */

/* The result is ok, was not undone, and keeps --max-latency. */
bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result);

/* Plans of the space whose last attempt was not interrupted; *failed: how many of them failed. */
int dt_session_tried_count(const struct dt_session *session, int *failed);

/* Appends what was left out for want of time, without a stop: "260 of 272 plans; the shoot-out of the best". Nothing: all was done. */
void dt_session_skipped(const struct dt_session *session, struct dt_text *out);

/* The best eligible trial so far; NULL: none. */
const struct dt_result *dt_session_leader(const struct dt_session *session);

/* Enough sets of fresh processes for a verdict. */
bool dt_session_enough(const struct dt_session *session);

/* The result is provisional, replaceable by any decided one: there was no final comparison, or it did not decide. */
bool dt_session_provisional(const struct dt_session *session);

/* Appends the reason, without a stop at its end, for which the result is provisional whatever the final comparison shows:
 *   - all plans of several ranks, two at least, differ from the 1-rank plan by the same error (within a factor of two), so
 *     that the reference may be the one that is wrong;
 *   - all plans but the default, two at least, failed in the same way, and not for memory;
 *   - plans of the final comparison were not verified, since their reference could not be run;
 *   - no plan was tried but those that a session must try, and there are others;
 *   - other programs kept cores busy in so many sets that too few quiet ones are left;
 *   - the first entrant's time differs between sets as only load explains that cannot be seen;
 *   - the comparison with the challenger has no noise floor, or is a tie so wide that a gain of DT_HIDDEN_GAIN_MOST may hide in it.
 * Nothing: there is no such reason. */
void dt_session_doubt(const struct dt_session *session, struct dt_text *out);

/* Appends the reason, a clause, for which a session that measured plans decided nothing: its doubt, or what its final comparison lacks. */
void dt_session_undecided(const struct dt_session *session, struct dt_text *out);

/* Appends `before` and "a decided answer needs about --budget 12m"; nothing where the session lacks no time. */
void dt_session_need(const struct dt_session *session, const char *before, struct dt_text *out);

/* Appends a clause on why the default plan is no choice, "it failed (crashed: ..)"; nothing: it is one. */
void dt_session_unusable(const struct dt_session *session, struct dt_text *out);

/* The objective's value, smaller is better; NAN: none. */
double dt_session_value(const struct dt_session *session, const struct dt_result *result);

/* The smallest gain of the challenger that the final comparison could have taken for noise, as a share: by the noise floor, and, where
 * the default stays, by the interval. NAN: not known. */
double dt_session_resolution(const struct dt_session *session);

/* The noise floor from the default's twin in the final comparison; pairs is 0 without a twin. */
struct dt_noise dt_session_noise(const struct dt_session *session);
/* Appends the reason for a missing twin, or a warning about noise, if any. */
void dt_session_noise_note(const struct dt_session *session, struct dt_text *out);

/* The worker ran out of memory, possibly because of other programs; not: the plan exceeds --max-bytes. */
bool dt_session_lacks_memory(const struct dt_session *session, const struct dt_result *result);

/* Bytes of the first clause of the search's note, its reason to stop; --json has the rest. */
size_t dt_explore_clause(const char *note);

/* ---- what a session would do (explore.c) */

/* A plan of a preview, and what it is tried as: "default", "baseline", "against", "stored" (by another session), "search". */
struct dt_preview_plan {
    const char *role;
    struct dt_point point;
};

#define DT_PREVIEW_MOST 16

/* What a session tries first, before any answer. */
struct dt_preview {
    struct dt_preview_plan plans[DT_PREVIEW_MOST];
    int count;
    bool more;            /* further plans do not depend on answers either */
    double trial_seconds; /* of a trial, as was supposed */
    double trials_until;  /* seconds from the start until trials end */
    double classes;       /* of plans that share a load */
};

/* A usual trial of a plan with this step time, without its load. */
double dt_session_trial_seconds(double step);

/* Runs nothing and writes nothing. trial_seconds: of a trial, on which the choice of the search depends. The session is open,
 * and has no journal; its search's name and reason are set. */
dt_status dt_session_preview(struct dt_session *session, double trial_seconds,
                             struct dt_preview *preview) DT_MUST_CHECK;

/* ---- the store and the journal */

/* Sets known and known_count of the session from the store: the same work, perhaps under another objective, limit or
 * batch, with other devices or on another machine; nearest first, and only feasible ones. Empty if the store is
 * unreadable: saving the session reports the error. */
void dt_known_read(struct dt_session *session, const char *directory);

/* The object of `tune --json` (docs/json.md), new reference. */
json_t *dt_session_json(const struct dt_session *session);

/* Figures in the form of an entry (db/entry.def). Those of a plan own the plan, and are unknown when nothing was measured (or
 * result is NULL); those of a front are fewer. A gain is the default's value over an entrant's, unknown when ratio is NULL or has
 * no interval. */
struct dt_measured dt_measured_of(const struct dt_result *result, const struct dt_target *target);
struct dt_measured dt_front_figures(const struct dt_result *result, const struct dt_target *target);
struct dt_gain dt_gain_of(const struct dt_ratio *ratio);
/* Of the session's best plan over its default; not known without a comparison with it. */
struct dt_gain dt_session_gain(const struct dt_session *session);
struct dt_noise_floor dt_noise_floor_of(const struct dt_noise *noise);
/* Not known where no load was watched. The program is borrowed from sets. */
struct dt_stored_load dt_load_of_sets(const struct dt_sets *sets);
/* The same of the final comparison, else of the trials. */
struct dt_stored_load dt_session_load(const struct dt_session *session);

#endif
