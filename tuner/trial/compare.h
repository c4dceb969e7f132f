/* SPDX-License-Identifier: MIT */
/* compare - several plans side by side, in turn, in fresh processes: A B C, C B A, ... (docs/measuring.md)
 *
 * Drift hits all alike, because every round visits every plan; the order of two rounds is a random one and its mirror.
 * A visit is one untimed step, to undo what the plan before left in the caches, and then enough timed steps for 20 ms.
 */
#ifndef DT_TUNER_TRIAL_COMPARE_H
#define DT_TUNER_TRIAL_COMPARE_H

#include "tuner/trial/judge.h"
#include "tuner/trial/rig.h"

#define DT_ENTRANTS    8
#define DT_VISIT_STEPS 8 /* most timed steps of a visit */

struct dt_entrant {
    const char *role; /* "default", "baseline", "against", "candidate", "twin" */
    struct dt_point point;
    struct dt_result result; /* all timed steps; its samples are the visits */
    struct dt_resident resident;
    double visits[DT_ROUNDS_MOST]; /* seconds of each round's visit; NAN where it failed */
    struct dt_ratio ratio;         /* against entrant 0: below 1 is faster by the objective */
    bool out;                      /* failed */
    bool decisive;                 /* the comparison goes on until this one is decided */
    bool rests;                    /* all is said about it: it is visited no more */
};

struct dt_compare {
    int64_t deadline_ns;
    int looks;        /* 1..DT_LOOKS: most rounds are dt_look_samples[looks - 1] */
    bool every_round; /* as many as there is time for, whatever the earlier looks say */
    uint64_t seed;
    void (*progress)(void *context, int round, int rounds);
    void *context;
    /* (optional) Decides instead of tuner/trial/judge.h, after each round; may let entrants rest. */
    bool (*decide)(void *judge, struct dt_entrant entrants[], int n, int rounds);
    void *judge;
};

/* Entrant 0 is the one others are compared with. Groups are started afresh first. *rounds: complete rounds made; below 8
 * nothing is decided (ratio.pairs is 0). Failures of a plan put it out (result.outcome says why). DT_EINTR. */
dt_status dt_compare_run(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                         const struct dt_compare *how, int *rounds) DT_MUST_CHECK;

/* What dt_compare_run says at the end, again: from results without statistics, visits and out. *rounds: those that were
 * made; where it stops when that is earlier. */
dt_status dt_compare_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                           int looks, int *rounds) DT_MUST_CHECK;

/* What a visit counts for: the median of its steps, slowest rank each. */
double dt_visit_seconds(const struct dt_result *result, int from, int steps);

void dt_entrant_fini(struct dt_entrant *entrant);

/* The order in which n entrants are visited in a round: a random one in even rounds, its mirror in the next. */
void dt_compare_order(int order[], int n, int round, uint64_t seed);

/* The interval says faster (or slower) than entrant 0. */
bool dt_entrant_faster(const struct dt_entrant *entrant);
bool dt_entrant_slower(const struct dt_entrant *entrant);

/* Entrant 0's plan once more, to know the noise (docs/measuring.md). */
bool dt_entrant_twin(const struct dt_entrant *entrant);

#endif
