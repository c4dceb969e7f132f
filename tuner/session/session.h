/* SPDX-License-Identifier: MIT */
/* session - what a session's records say: its trials, its comparisons, what they decide
 *
 * A session changes by dt_session_apply alone (log.h), one record after the other, so that one
 * that runs, one that is resumed and one that is read back are the same, but for what a result
 * has for the program that measures it (result.h). Its owner is a struct dt_log; everybody else
 * has a const pointer.
 * Nothing here runs a plan or reads a clock; what runs is a struct dt_tuning (tuning.h).
 */
#ifndef DT_TUNER_SESSION_SESSION_H
#define DT_TUNER_SESSION_SESSION_H

#include "db/stored.h"
#include "tuner/measure/measure.h"

#define DT_HIDDEN_GAIN_MOST 0.25 /* a tie in which a larger gain may hide decides nothing */

#define DT_KNOWN 4 /* most plans taken from the store */
#define DT_SHOTS 4 /* most plans of a shoot-out: the default and its challengers */

/* Figures of a plan after its samples were freed. */
struct dt_shot {
    struct dt_point point;
    double value;               /* the objective's, smaller is better */
    struct dt_measured figures; /* the figures that entries have; plan: NULL */
};

/* The search of a session. */
struct dt_session_search {
    /* the strategy, the reason of the choice, the prior; "": none */
    char name[160], why[240], prior[160];
    char note[240];                  /* the strategy's final note; "": none */
    bool stopped;                    /* it ended before the time for trials */
    struct dt_point known[DT_KNOWN]; /* best plans of other sessions */
    int known_count;
    /* at the end: what each axis alone explains, by the search's model
     * (search/bayes/importance.h) */
    double importance[DT_AXES_MAX];
    bool weighed; /* it is known */
};

/* A shoot-out and the final comparison after it. */
struct dt_session_finals {
    struct dt_entrant entrants[DT_ENTRANTS]; /* the final comparison's, owned */
    int entrant_count;
    struct dt_sets sets; /* sets of fresh processes of the final comparison */
    int best;            /* index of an entrant; -1: none */
    /* index of the entrant that a gain is told over: the better of default and documented plan;
     * -1: neither can be used */
    int opponent;
    enum dt_verdict verdict; /* verdict of the comparison alone */
    bool limit_broken;       /* no entrant keeps --max-latency */
    /* the shoot-out's */
    struct dt_shot shots[DT_SHOTS];
    int shot_count;
    int chosen;              /* 1 + the index of its winner among its entrants; 0: none */
    struct dt_point winner;  /* where one was chosen */
    struct dt_point ties[3]; /* candidates that tie with the winner */
    int tie_count;
};

/* The trials by their plans (apply.c). */
struct dt_session_tried {
    int *slots; /* owned: 1 + the trial that counts for its plan; 0: free */
    int room;   /* a power of two; 0: no trial */
    int leader; /* 1 + the best eligible trial; 0: none */
};

/* A batch whose outputs could not be verified. */
struct dt_unverified {
    int batch;
    char cause[200];
};

/* The place of a session in a list of works (replay.h). */
struct dt_session_list {
    char id[64]; /* the list's; "": this session begins it */
    int work, works;
};

struct dt_session {
    const struct dt_target *target; /* NULL: the record of the session did not come */
    char id[64];                    /* its journal's; "" without one */
    int64_t began_wall_ns, budget_ns, max_latency_ns;
    struct dt_point against; /* --against */
    bool has_against;
    struct dt_fingerprint fingerprint; /* the machine's, owned */
    char host[128], boot_id[64];       /* the fingerprint's */
    struct dt_session_search search;
    const struct dt_result *trials; /* owned; changed in apply.c alone */
    int count;
    struct dt_session_tried tried;
    int64_t slowest_ns;      /* cost of the slowest trial that ran; 0: none ran */
    struct dt_clocks clocks; /* clocks of ranks, to tell throttled samples */
    struct dt_unverified unverified[DT_RIG_REFERENCES];
    int unverified_count;
    struct dt_session_finals finals;
    struct dt_session_finals next; /* a shoot-out whose final comparison did not end yet */
    /* the comparison before this one, while this one lost its first entrant
     * and is not repeated yet */
    struct dt_session_finals before;
    struct dt_closing closing; /* at its end */
    enum dt_verdict verdict;
    bool ended; /* its end was recorded: the session was complete */
};

/* The point's trial; NULL: it was not tried. Of several attempts the last one not interrupted. */
const struct dt_result *dt_session_trial(const struct dt_session *session,
                                         const struct dt_point *point);
/* Trial i is the one that counts for its point, not an earlier attempt. */
bool dt_session_counts(const struct dt_session *session, int i);

/* Results to publish: from the final comparison, or, without one, from the trials;
 * NULL when there is none. */
const struct dt_result *dt_session_best(const struct dt_session *session);
const struct dt_result *dt_session_role(const struct dt_session *session,
                                        enum dt_entrant_role role);
/* The final comparison has figures: two sets. */
bool dt_session_compared(const struct dt_session *session);
/* The comparison's first entrant is the default plan, so ratios are relative to it. */
bool dt_session_against_default(const struct dt_session *session);
const struct dt_entrant *dt_session_entrant(const struct dt_session *session,
                                            enum dt_entrant_role role);
/* Whether gains are told over the documented plan, which is not the default. */
bool dt_session_over_documented(const struct dt_session *session);
/* An entrant of the final comparison over that opponent: below 1 is faster; of the opponent itself,
 * over the first entrant. */
struct dt_ratio dt_session_ratio(const struct dt_session *session, int entrant);
/* The plan that challenged the default and was compared with it, when it did not become
 * the best; NULL: none. */
const struct dt_entrant *dt_session_candidate(const struct dt_session *session);
/* The fastest trial, where the default stays and no round compared the two; NULL: none. */
const struct dt_result *dt_session_uncompared(const struct dt_session *session);

/* Both ends of what replicas may be: the most of the plans with the fewest ranks, and one of the
 * plan with the most; of plans alike in that the best at the batch. */
struct dt_extremes {
    /* at the smallest batch that both have; NULL: there is none */
    const struct dt_result *many, *single;
    /* batches that both have, one behind the other, between which the other one makes more images a
     * second, whatever the objective; 0: there are none */
    int before, after;
};
struct dt_extremes dt_session_extremes(const struct dt_session *session);

/* No plan keeps --max-latency, or a --limit. */
bool dt_session_limit_broken(const struct dt_session *session);

/* ---- judged from its samples (verdict.c, doubts.c) */

/* The result is ok, was not undone, and keeps --max-latency. */
bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result);

/* Plans of the space whose last attempt was not interrupted; *failed: how many of them failed. */
int dt_session_tried_count(const struct dt_session *session, int *failed);

/* Appends what was left out for want of time, without a stop: "260 of 272 plans; the shoot-out of
 * the best". Nothing: all was done. */
void dt_session_skipped(const struct dt_session *session, struct dt_text *out);

/* The best eligible trial so far; NULL: none. */
const struct dt_result *dt_session_leader(const struct dt_session *session);

/* Enough sets of fresh processes for a verdict. */
bool dt_session_enough(const struct dt_session *session);

/* The result is provisional, replaceable by any decided one: there was no final comparison,
 * or it did not decide. */
bool dt_session_provisional(const struct dt_session *session);

/* Appends the reason, without a stop at its end, for which the result is provisional whatever the
 * final comparison shows:
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

/* Appends the reason, a clause, for which a session that measured plans decided nothing: its doubt,
 * or what its final comparison lacks. */
void dt_session_undecided(const struct dt_session *session, struct dt_text *out);

/* Appends `before` and "a decided answer needs about --budget 12m"; nothing where the
 * session lacks no time. */
void dt_session_need(const struct dt_session *session, const char *before, struct dt_text *out);

/* Appends a clause on why the default plan is no choice, "it failed (crashed:
 * ..)"; nothing: it is one. */
void dt_session_unusable(const struct dt_session *session, struct dt_text *out);

/* The objective's value, smaller is better; NAN: none. */
double dt_session_value(const struct dt_session *session, const struct dt_result *result);

/* The smallest gain of the challenger that the final comparison could have taken for noise, as a
 * share: by the noise floor, and, where the default stays, by the interval. NAN: not known. */
double dt_session_resolution(const struct dt_session *session);

/* The noise floor from the default's twin in the final comparison; pairs is 0 without a twin. */
struct dt_noise dt_session_noise(const struct dt_session *session);
/* Appends the reason for a missing twin, or a warning about noise, if any. */
void dt_session_noise_note(const struct dt_session *session, struct dt_text *out);

/* The worker ran out of memory, possibly because of other programs; not: the plan exceeds
 * --max-bytes or --reserve. */
bool dt_session_lacks_memory(const struct dt_session *session, const struct dt_result *result);

/* Bytes of the first clause of the search's note, its reason to stop; --json has the rest. */
size_t dt_explore_clause(const char *note);

/* The verdict that the session would have if it ended now. */
enum dt_verdict dt_session_verdict(const struct dt_session *session);

/* ---- as the store and programs have it (record/entry.c) */

/* Figures in the form of an entry (db/entry.def). Those of a plan own the plan, and are unknown
 * when nothing was measured (or result is NULL); those of a front are fewer. A gain is the
 * default's value over an entrant's, unknown when ratio is NULL or has no interval. */
struct dt_measured dt_measured_of(const struct dt_result *result, const struct dt_target *target);
/* Where the documented plan is written, borrowed from the target. */
struct dt_documentation dt_documentation_of(const struct dt_target *target);
struct dt_measured dt_front_figures(const struct dt_result *result, const struct dt_target *target);
struct dt_gain dt_gain_of(const struct dt_ratio *ratio);
/* The gain of the session's best plan: where the verdict is that it is faster, over the better of
 * default and documented plan; else over the default, also of the documented plan and of the
 * default itself. Not known without a comparison with that plan; nor, but where the best plan is
 * unopposed, over a default that cannot be used. */
struct dt_gain dt_session_gain(const struct dt_session *session);
struct dt_noise_floor dt_noise_floor_of(const struct dt_noise *noise);
/* Not known where no load was watched. The program is borrowed from sets. */
struct dt_stored_load dt_load_of_sets(const struct dt_sets *sets);
/* The same of the final comparison, else of the trials. */
struct dt_stored_load dt_session_load(const struct dt_session *session);

#endif
