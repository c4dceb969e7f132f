/* SPDX-License-Identifier: MIT */
/* search - chooses the point to try next
 *
 * A search is asked for points and told their results; it never runs anything. The caller may ask
 * again before earlier answers are in, so one search can feed many workers:
 *
 *     while (dt_search_ask(search, &trial.point) == DT_OK) {
 *         run(&trial);
 *         dt_search_tell(search, &trial);
 *     }
 *
 * To add a strategy: write search/<name>.c that defines dt_strategy_<name>, and add a
 * row to strategies.def.
 */
#ifndef DT_SEARCH_SEARCH_H
#define DT_SEARCH_SEARCH_H

#include "search/trial.h"

#include <stddef.h>

#define DT_KNOBS_MAX 16

/* One setting of a strategy, as in --search tpe:starts=20,width=0.3. */
struct dt_knob {
    const char *name, *doc;
    double fallback, low, high;
};

/* Expected values of points before anything was measured here: another machine's
 * table, or a cost estimate. */
struct dt_prior {
    const char *name;
    /* Expected objective value of the point, in any unit: only its logarithm up to scale counts.
     * NAN: nothing is known;
     * INFINITY: it failed there. */
    double (*value)(const void *context, const struct dt_point *point);
    const void *context;
};

/* The things that plans need loaded before they run, where that takes long: plans of equal numbers
 * share it. Proposals that no answer changes are made in rounds, in which the plans of a
 * group follow each other. */
struct dt_groups {
    uint64_t (*of)(const void *context, const struct dt_point *point);
    const void *context;
    int in_a_row; /* a round has so many plans for each of its groups; 1: order does not matter */
    int stay;     /* groups that can stay loaded together; 0: unknown */
};

struct dt_seen;

struct dt_search_opts {
    /* sealed, with at least one feasible point; outlives the search */
    const struct dt_space *space;
    uint64_t seed;
    const struct dt_point *start; /* (optional) the default plan: asked first unless told */
    const struct dt_point *known; /* (optional) known-good plans: asked next unless told */
    int known_count;
    const struct dt_prior *prior;   /* (optional) outlives the search */
    const struct dt_groups *groups; /* (optional) outlives the search */
    int64_t evaluations;            /* number of answers that fit the budget; 0 unknown */
    double seconds;                 /* seconds of trials that fit the budget; 0 unknown */
    int64_t capacity_bytes;         /* memory of a rank; 0 unknown */
    const double *knobs;        /* set by the core: values in the order of the strategy's knobs */
    const struct dt_seen *seen; /* set by the core: points asked for or told (search/seen.h) */
};

/* Number of fits of a model's hyper-parameters so far, and their total processor seconds. */
struct dt_refits {
    int count;
    double seconds;
};

/* Chance that a plan not yet tried is better than the best one by more than DT_GAIN. */
#define DT_GAIN 0.005
struct dt_chance {
    bool known;
    bool least; /* it may be larger */
    double share;
};

struct dt_strategy {
    const char *name, *doc;
    const char *paper; /* source of the method: author, year, title */
    size_t state_size; /* the core allocates it, zeroed, and frees it */
    /* (optional) rows, the last with name NULL; at most DT_KNOBS_MAX */
    const struct dt_knob *knobs;
    dt_status (*init)(void *state, const struct dt_search_opts *opts);
    /* Proposes a point; DT_DONE when none is left or none is worth a trial (see note); DT_WAIT when
     * an earlier answer is needed first. The core proposes start and known points itself, and
     * accepts only feasible new points: it asks again after any other, and after some refusals
     * draws a point itself, so that no strategy gets stuck. */
    dt_status (*ask)(void *state, struct dt_point *point);
    /* (optional) Takes note of an answer, failures included (value NAN); also for feasible points
     * that this strategy never proposed (first points, draws of the core, warm start, resume), and
     * for a point told again. */
    void (*tell)(void *state, const struct dt_trial *trial);
    /* (optional) How many of the next proposals do not depend on answers. Without it: all when
     * there is no tell, else none. */
    int64_t (*ahead)(void *state);
    void (*fini)(void *state); /* (optional) not called when init failed */
    /* (optional) Appends the reason to stop, or the state of the model, as part of a
     * sentence; may append nothing. */
    void (*note)(const void *state, struct dt_text *out);
    /* In place of init, ask and all others: names the strategy that takes over at the first ask
     * for other than first points, and appends why. room: trials that fit the budget, by the
     * duration of those so far; 0: unknown. */
    const char *(*choose)(const struct dt_search_opts *opts, double room, struct dt_text *why);
    /* (optional) Lets the time of fits be reported apart from that of asks and tells. */
    struct dt_refits (*refits)(const void *state);
    /* (optional) The chance of a further gain, where the strategy knows one. */
    struct dt_chance (*chance)(const void *state);
};

extern const struct dt_strategy *const dt_strategies[]; /* NULL-ended, rows of strategies.def */

/* The status that dt_search_new would return for the name. */
dt_status dt_search_check(const char *name) DT_MUST_CHECK;

struct dt_search;
/* name: "tpe", or "tpe:starts=20,width=0.3". DT_EUSAGE for an unknown name or knob, or a value
 * out of its range; the message lists the valid ones. start and known are copied. */
dt_status dt_search_new(const char *name, const struct dt_search_opts *opts,
                        struct dt_search **search) DT_MUST_CHECK;
/* Never a point that was asked for or told before. DT_DONE: none left, or no gain worth a
 * trial (see the note);
 * DT_WAIT: tell an answer first. */
dt_status dt_search_ask(struct dt_search *search, struct dt_point *point) DT_MUST_CHECK;
/* How many of the next points do not depend on answers. */
int64_t dt_search_ahead(struct dt_search *search);
/* A point outside the space is ignored. */
void dt_search_tell(struct dt_search *search, const struct dt_trial *trial);
/* Appends the strategy's note, if any. */
void dt_search_note(const struct dt_search *search, struct dt_text *out);
/* Appends the choice of strategy and its reason, "bayes: 512 plans, room for about 40 trials";
 * nothing when there is no choice, or before the first ask, which chooses. */
void dt_search_reason(const struct dt_search *search, struct dt_text *out);
struct dt_refits dt_search_refits(const struct dt_search *search);
/* The chance of a gain by plans not asked for; not known where the strategy cannot say. */
struct dt_chance dt_search_chance(const struct dt_search *search);
void dt_search_free(struct dt_search *search);
DT_FREE_AT(dt_search_free, struct dt_search)

#endif
