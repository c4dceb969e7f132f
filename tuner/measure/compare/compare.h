/* SPDX-License-Identifier: MIT */
/* compare - several plans side by side, in turn, in several sets of fresh processes
 * (docs/measuring-appendix.md)
 *
 * Effects that are constant while a plan is resident differ in the next start, so plans are made
 * resident again for each set, in another order, and the spread between sets is part of every
 * interval (tuner/measure/compare/judge_entrants.h). Within a set the plans are visited in rounds,
 * A B C, C B A, ...: drift affects all plans alike, because every round visits every plan, and the
 * order of two rounds is a random one and its mirror. Where plans do not fit beside each other, a
 * set makes each resident beside entrant 0 in turn, with rounds of these two: entrant 0 is what all
 * ratios are against. Where not even two fit, a set visits one plan after the other; drift then
 * cancels between sets only. A visit is one untimed step, to undo the previous plan's effect on the
 * caches, and then enough timed steps for 20 ms.
 */
#ifndef DT_TUNER_MEASURE_COMPARE_COMPARE_H
#define DT_TUNER_MEASURE_COMPARE_COMPARE_H

#include "tuner/measure/compare/entrant.h"
#include "tuner/measure/rig.h"

#define DT_ATTEMPTS       2 /* for an entrant with possibly temporary failures */
#define DT_ATTEMPTS_FIRST 3 /* attempts of entrant 0, without which there is no comparison */

struct dt_compare {
    int64_t deadline_ns;
    int sets; /* most sets: 1..DT_SETS_MOST */
    /* each plan starts once before the first set, as the caches may be those of another session */
    bool warms;
    bool every_set; /* make as many as time allows, even when decided */
    uint64_t seed;
    void (*progress)(void *context, int set, int sets);
    void *context;
    /* (optional) After each set, before it is judged: what was measured so far is in
     * the entrants and sets. */
    dt_status (*keep)(void *keeper);
    /* (optional) Between two sets: may use the time until then for something else; DT_DONE ends
     * the comparison. The sets are then spread over the time that is left, as others' load
     * lasts minutes and sets that follow each other at once all meet it; without waiting where
     * others are not known. */
    dt_status (*between)(void *keeper, int64_t until_ns);
    void *keeper;
    /* *sets and the entrants hold sets that were made before, read back from a record: the
     * next ones follow them. */
    bool goes_on;
    /* (optional) Decides instead of tuner/measure/compare/judge_entrants.h, after each set; may
     * mark entrants as decided. */
    bool (*decide)(void *judge, struct dt_entrant entrants[], int n, const struct dt_sets *sets);
    void *judge;
};

/* Entrant 0 is the one others are compared with. *sets: the sets made; fewer than DT_SETS_LEAST
 * decide nothing. An entrant that crashes, hangs, breaks the protocol or runs out of memory is
 * tried again in the next set, DT_ATTEMPTS times in all (entrant 0: three times); then, and after
 * any other failure, it is out (result.outcome says why). Plans that do not fit beside each other
 * are made resident in pairs with entrant 0 from then on, or one at a time (dt_sets.company).
 * DT_EINTR, and errors of keep. */
dt_status dt_compare_run(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                         const struct dt_compare *how, struct dt_sets *sets) DT_MUST_CHECK;

/* The failure may be temporary: like dt_outcome_may_pass, or out of memory, which another
 * program may have caused. */
bool dt_compare_may_pass(enum dt_outcome outcome);

/* The order of n entrants in a round: a random one in even rounds, its
 * mirror in the next (ABBA). */
void dt_compare_order(int order[], int n, int round, uint64_t seed);

#endif
