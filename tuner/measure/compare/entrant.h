/* SPDX-License-Identifier: MIT */
/* entrant - one plan of a comparison: its visits and its ratio to entrant 0
 *
 * Nothing here runs a plan or reads a clock: the live comparison (tuner/measure/compare/compare.h)
 * and a recorded comparison are judged by the same functions.
 */
#ifndef DT_TUNER_MEASURE_COMPARE_ENTRANT_H
#define DT_TUNER_MEASURE_COMPARE_ENTRANT_H

#include "tuner/measure/compare/judge_entrants.h"
#include "tuner/measure/rig.h"

#define DT_ENTRANTS    8
#define DT_VISIT_STEPS 8 /* most timed steps of a visit */

/* Roles of plans in a comparison. */
enum dt_entrant_role {
#define DT_ENTRANT_ROLE(name, text) name,
#include "tuner/measure/compare/role.def"
#undef DT_ENTRANT_ROLE
    DT_ENTRANT_ROLES
};

const char *dt_entrant_role_text(enum dt_entrant_role role);

/* DT_EUSAGE with a sentence that begins with what. */
dt_status dt_entrant_role_find(const char *what, const char *text,
                               enum dt_entrant_role *role) DT_MUST_CHECK;

struct dt_entrant {
    enum dt_entrant_role role;
    struct dt_point point;
    bool apart;              /* has processes of its own, not shared with other entrants */
    struct dt_result result; /* all timed steps; its samples are the visits */
    struct dt_resident resident;
    double visits[DT_ROUNDS_MOST]; /* seconds of each round's visit; NAN where there was none */
    struct dt_ratio ratio;         /* against entrant 0: below 1 is faster by the objective */
    int failures;                  /* sets with a possibly temporary failure */
    bool out;                      /* excluded after failures */
    int out_set;                   /* the set in which it was excluded; -1: none */
    bool decisive;                 /* the comparison goes on until this one is decided */
    bool decided;                  /* its verdict is final: skipped in later sets */
};

void dt_entrant_fini(struct dt_entrant *entrant);

/* The interval shows it faster (or slower) than entrant 0. */
bool dt_entrant_faster(const struct dt_entrant *entrant);
bool dt_entrant_slower(const struct dt_entrant *entrant);

/* A second copy of entrant 0's plan, to measure the noise (docs/measuring-appendix.md). */
bool dt_entrant_twin(const struct dt_entrant *entrant);

/* Value of a visit: the median of its steps' slowest ranks. */
double dt_visit_seconds(const struct dt_result *result, int from, int steps);

/* Sets the ratios after a set, the final one when `last`; true when this is a look and all decisive
 * entrants are decided. */
bool dt_entrants_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                       const struct dt_sets *sets, bool last);

/* Entrant pair[1] over entrant pair[0], in the objective: below 1 is faster. From the sets of a
 * comparison that was judged. */
struct dt_ratio dt_entrants_ratio(const struct dt_target *target,
                                  const struct dt_entrant entrants[], const int pair[2], int n,
                                  const struct dt_sets *sets);

/* The statistics of its result: samples are the visits, the interval is over the sets. */
dt_status dt_entrant_finish(struct dt_entrant *entrant, const struct dt_sets *sets) DT_MUST_CHECK;

/* Computes the results of a live comparison again, from results without statistics, visits, out and
 * out_set. *sets: the sets made; set to those at which it stops, if earlier. */
dt_status dt_entrants_rejudge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                              struct dt_sets *sets) DT_MUST_CHECK;

#define DT_SHOOTOUT         "shoot-out"
#define DT_FINAL_COMPARISON "final comparison"

/* A comparison after its rounds. */
struct dt_compared {
    const char *name; /* DT_SHOOTOUT, DT_FINAL_COMPARISON */
    struct dt_entrant *entrants;
    int count;
    struct dt_sets sets;      /* sets of fresh processes */
    bool complete;            /* not ended by a signal */
    bool goes_on;             /* with the sets of a session that was resumed */
    struct dt_clocks *clocks; /* the session's, borrowed */
};
bool dt_compared_is_final(const struct dt_compared *compared);

/* ---- noise: a plan compared with itself
 *
 * The same plan is made resident twice and compared like two plans. The interval of their ratio is
 * the noise floor: smaller differences between plans are not evidence
 * (docs/measuring-appendix.md). */

#define DT_NOISE_MOST 0.05 /* above this margin or spread the machine is too noisy to judge */
#define DT_NOISE_LOST 1.0  /* above this margin its size says nothing more */

struct dt_noise {
    int pairs;    /* 0: unknown, all other fields are NAN or false */
    int sets;     /* sets of fresh processes; 0: one start */
    double ratio; /* twin's times over the first copy's */
    struct dt_interval interval;
    double margin; /* a factor of 1 + margin, either way, may be noise */
    double cv;     /* spread of the visits of the noisier copy: 1.4826 MAD over the median */
    bool noisy;    /* margin or cv above DT_NOISE_MOST */
    bool differs;  /* the interval excludes 1: placement or order had an effect */
};

/* first: the plan (entrant 0 of the comparison); twin: the same plan once more, with its
 * ratio against first. */
struct dt_noise dt_noise_of(const struct dt_entrant *first, const struct dt_entrant *twin);
struct dt_noise dt_noise_none(void); /* nothing is known: pairs is 0 */

/* Appends a warning about excessive noise, if any. */
void dt_noise_note(const struct dt_noise *noise, struct dt_text *out);

/* ---- levels: parts of a plan's noise from visits, residencies and starts of its processes */

/* Standard deviations of the log time, so shares of the time. NAN: too few sets. */
struct dt_levels {
    int sets;         /* sets with visits of both copies */
    double visit;     /* from visit to visit of one residency, drift within the set included */
    double residency; /* from one residency to another in the same processes */
    double start; /* from one start of the processes to the next, drift between the sets included */
};

/* Two copies of a plan, resident side by side in each set: nested analysis of variance (Searle,
 * Casella, McCulloch 1992,
 * *Variance Components*, 3.6), an estimate below 0 is 0. */
struct dt_levels dt_levels(const struct dt_entrant copies[2], const struct dt_sets *sets);

#endif
