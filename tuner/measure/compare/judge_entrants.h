/* SPDX-License-Identifier: MIT */
/* judge_entrants - the ratio of each entrant to entrant 0, and whether further
 * measurements are needed
 *
 * Numbers in, numbers out: no worker, no clock, any number of entrants. The live comparison
 * (tuner/measure/compare/compare.h) and the recomputation of a recorded one call the same
 * functions in the same order. Sessions compare in sets of fresh processes, whose spread is
 * part of every interval:
 *
 *     while (sets.count < most) {
 *         sets.rounds[sets.count++] = one_set();
 *         if (dt_judge_set_look(judged, n, &sets))
 *             break;                             -- decided at a look
 *     }
 *     dt_judge_set_end(judged, n, &sets);        -- sets since the last look
 */
#ifndef DT_TUNER_MEASURE_COMPARE_JUDGE_ENTRANTS_H
#define DT_TUNER_MEASURE_COMPARE_JUDGE_ENTRANTS_H

#include "stats/stats.h"

#include <stdint.h>

#define DT_SET_ROUNDS  8 /* most rounds of a set */
#define DT_ROUNDS_MOST (DT_SETS_MOST * DT_SET_ROUNDS)

/* Which entrants are resident at the same time: all; each beside entrant 0, in
 * rounds of these two; one. */
enum dt_company { DT_ALL_TOGETHER, DT_IN_PAIRS, DT_ONE_ALONE };
const char *dt_company_text(enum dt_company company); /* "all", "pairs", "one" */

/* Rounds that were made in each set of fresh processes, in order. Round k of set s has index k
 * plus all rounds before. */
struct dt_sets {
    int count;
    int rounds[DT_SETS_MOST];
    /* mean cores that other programs kept busy in each; NAN: not known */
    double others[DT_SETS_MOST];
    double stolen[DT_SETS_MOST];  /* the part of it that a hypervisor gave to other machines; NAN */
    double stalled[DT_SETS_MOST]; /* share of the time in which threads waited for a core; NAN */
    double gpus[DT_SETS_MOST];    /* GPUs that other programs used; NAN: not watched */
    char disturber[17];           /* a program that did in a disturbed set; "": not known */
    enum dt_company company;      /* in the set in which the fewest were resident together */
    int loads;                    /* times that a plan was made resident */
    int64_t setup_ns, round_ns,
        set_ns; /* longest: until the plans were resident, a round, a whole set */
};
int dt_sets_rounds(const struct dt_sets *sets); /* rounds of all sets */

/* A set that others disturb (dt_load_disturbs) decides nothing: load hits plans unequally, a plan
 * of several threads that wait for each other far more than one of as many processes. */
bool dt_sets_disturbed(const struct dt_sets *sets, int set);
int dt_sets_quiet(const struct dt_sets *sets); /* how many are not */

/* Load that cannot be seen shows in times only: how many times as long an entrant took in one
 * of the last n quiet sets as in another, by its medians; 1 where others are not known.
 * values: of each round. */
double dt_sets_levels(const double values[], const struct dt_sets *sets, int n);

/* In each quiet set b took less than `times` as long as a: so it was at any load. */
bool dt_sets_agree(const double a[], const double b[], double times, const struct dt_sets *sets);

struct dt_judged {
    const double *values; /* value of each round, smaller is better; NAN where the visit failed */
    bool out;             /* excluded: no decision waits for it */
    bool decisive;        /* the comparison goes on until this one is decided */
    /* index of another entrant against which it must be decided, too, where that
     * one is not out; 0: none */
    int rival;
    bool twin;             /* second copy of entrant 0: its margin is the noise */
    struct dt_ratio ratio; /* against entrant 0, below 1 is better; pairs 0: none yet */
};

/* b over a from the rounds in which both were visited. Sets with fewer than two such rounds do not
 * count; of fewer than DT_SETS_LEAST sets there is no interval. */
struct dt_ratio dt_judge_ratio(const double a[], const double b[], const struct dt_sets *sets,
                               double level);
/* The same; in sets without such rounds from those of a and those of b in which
 * common was visited, too. */
struct dt_ratio dt_judge_ratio_through(const double common[], const double a[], const double b[],
                                       const struct dt_sets *sets, double level);

/* The interval shows it better (or worse) than entrant 0; or lies within half a per cent of the
 * ratio. All false below DT_SETS_LEAST sets. */
bool dt_judge_faster(const struct dt_ratio *ratio);
bool dt_judge_slower(const struct dt_ratio *ratio);
/* "faster", "slower", "tie" (narrow, and neither), or "undecided" */
const char *dt_judge_text(const struct dt_ratio *ratio);

/* The noise floor: a factor of 1 + margin, either way, may be noise alone: the far end of the
 * twin's interval, on the log scale.
 * NAN: unknown. */
double dt_judge_margin(const struct dt_ratio *twin);

/* The interval shows it better, and by a larger factor than the margin's, if known. */
bool dt_judge_beats(const struct dt_ratio *ratio, double margin);

/* Which of two entrants gains are told over, default and documented plan: the better one by its
 * mean. -1: it cannot be used; both: there is none, -1. documented_ratio: of the documented plan
 * over the default, where both can. */
int dt_judge_opponent(int fallback, int documented, double documented_ratio);

/* After a set: judges when this is a look; true when every decisive entrant is then
 * decided, by an interval whose ends are not farther apart than a factor of DT_WIDE, and
 * the load does not change. */
#define DT_WIDE 1.5
bool dt_judge_set_look(struct dt_judged judged[], int n, const struct dt_sets *sets);
/* After the last set: judges the sets made since the last look, if there are any. */
void dt_judge_set_end(struct dt_judged judged[], int n, const struct dt_sets *sets);
/* Both, over recorded sets: returns the number of sets at which the comparison stops,
 * and sets the ratios. */
int dt_judge_sets(struct dt_judged judged[], int n, const struct dt_sets *sets);

#endif
