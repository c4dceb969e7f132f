/* SPDX-License-Identifier: MIT */
/* judge - the ratio of each entrant to entrant 0, and whether further measurements are worth their time
 *
 * Numbers in, numbers out: no worker, no clock, any number of entrants. The live comparison (tuner/measure/compare/compare.h) and
 * the recomputation of a recorded one call the same functions in the same order. Sessions compare in sets of fresh
 * processes, whose spread is part of every interval:
 *
 *     while (sets.count < most) {
 *         sets.rounds[sets.count++] = one_set();
 *         if (dt_judge_set_look(judged, n, &sets))
 *             break;                             -- decided at a look
 *     }
 *     dt_judge_set_end(judged, n, &sets);        -- sets since the last look
 *
 * Rounds of one start (records of other programs, journals of older versions) are judged by dt_judge_rounds: what is said
 * then holds for that start.
 */
#ifndef DT_TUNER_MEASURE_COMPARE_JUDGE_H
#define DT_TUNER_MEASURE_COMPARE_JUDGE_H

#include "stats/stats.h"

#define DT_SET_ROUNDS       8 /* most rounds of a set */
#define DT_ROUNDS_MOST      (DT_SETS_MOST * DT_SET_ROUNDS)
#define DT_ROUNDS_ONE_START 64 /* the last look at rounds of one start */

/* Rounds that were made in each set of fresh processes, in order. Round k of set s has index k plus all rounds before. */
struct dt_sets {
    int count;
    int rounds[DT_SETS_MOST];
};
int dt_sets_rounds(const struct dt_sets *sets); /* of all sets */

struct dt_judged {
    const double *values; /* of each round, smaller is better; NAN where the visit failed */
    bool out;             /* failed: nothing waits for it */
    bool decisive;        /* the comparison goes on until this one is decided */
    bool twin;            /* entrant 0 once more: within its margin nothing is better */
    struct dt_ratio
        ratio; /* against entrant 0, below 1 is better; pairs is 0 while there is none */
};

/* b over a from the rounds in which both were visited. Sets with fewer than two such rounds do not count; of fewer than
 * DT_SETS_LEAST sets there is no interval. */
struct dt_ratio dt_judge_ratio(const double a[], const double b[], const struct dt_sets *sets,
                               double level);

/* The interval says better (or worse) than entrant 0; or both sides of it are within half a per cent. Of fewer than
 * DT_SETS_LEAST sets none of these holds. */
bool dt_judge_faster(const struct dt_ratio *ratio);
bool dt_judge_slower(const struct dt_ratio *ratio);
bool dt_judge_narrow(const struct dt_ratio *ratio);
/* "faster", "slower", "tie" (narrow, and neither), or "undecided" */
const char *dt_judge_text(const struct dt_ratio *ratio);

/* What another plan's ratio may be by noise alone: the largest |ratio - 1| that the twin's interval holds. NAN: not known. */
double dt_judge_margin(const struct dt_ratio *twin);

/* The interval says better, and the ratio by more than the margin, where it is known. */
bool dt_judge_beats(const struct dt_ratio *ratio, double margin);

/* After a set: judges when this is a look; true when every decisive entrant is then decided. */
bool dt_judge_set_look(struct dt_judged judged[], int n, const struct dt_sets *sets);
/* After the last set: judges the sets made since the last look, if there are any. */
void dt_judge_set_end(struct dt_judged judged[], int n, const struct dt_sets *sets);
/* Both, over recorded sets: in how many of them the comparison stops, and its ratios. */
int dt_judge_sets(struct dt_judged judged[], int n, const struct dt_sets *sets);

/* ---- rounds of one start, looked at when there are 8, 16, 32 and 64 */

/* The level of the intervals after so many rounds: between two looks what is left of alpha up to the next one is spent. */
double dt_judge_level(int rounds);

/* Where a comparison of at most dt_look_samples[looks - 1] rounds stops, and its ratios. Fewer than 8 pairs say nothing. */
int dt_judge_rounds(struct dt_judged judged[], int n, int rounds, int looks);

#endif
