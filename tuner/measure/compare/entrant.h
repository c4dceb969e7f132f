/* SPDX-License-Identifier: MIT */
/* entrant - one plan of a comparison: its visits and its ratio to entrant 0
 *
 * Nothing here runs a plan or reads a clock: the live comparison (tuner/measure/compare/compare.h) and a recorded
 * comparison are judged by the same functions.
 */
#ifndef DT_TUNER_MEASURE_COMPARE_ENTRANT_H
#define DT_TUNER_MEASURE_COMPARE_ENTRANT_H

#include "tuner/measure/compare/judge_entrants.h"
#include "tuner/measure/compare/role.h"
#include "tuner/measure/rig.h"

#define DT_ENTRANTS    8
#define DT_VISIT_STEPS 8 /* most timed steps of a visit */

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

/* A second copy of entrant 0's plan, to measure the noise (docs/measuring.md). */
bool dt_entrant_twin(const struct dt_entrant *entrant);

/* Value of a visit: the median of its steps' slowest ranks. */
double dt_visit_seconds(const struct dt_result *result, int from, int steps);

/* Sets the ratios after a set, the final one when `last`; true when this is a look and all decisive entrants are
 * decided. */
bool dt_entrants_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                       const struct dt_sets *sets, bool last);

/* The statistics of its result: samples are the visits, the interval is over the sets. */
dt_status dt_entrant_finish(struct dt_entrant *entrant, const struct dt_sets *sets) DT_MUST_CHECK;

/* Computes the results of a live comparison again, from results without statistics, visits, out and out_set. *sets: the
 * sets made; set to those at which it stops, if earlier. */
dt_status dt_entrants_rejudge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                              struct dt_sets *sets) DT_MUST_CHECK;
#endif
