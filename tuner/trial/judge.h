/* SPDX-License-Identifier: MIT */
/* judge - what rounds of visits say: the ratio of each entrant to entrant 0, and whether another round is worth its time
 *
 * Numbers in, numbers out: no worker, no clock, any number of entrants. The live comparison (tuner/trial/compare.h) and
 * the recomputation of a recorded one call the same functions in the same order:
 *
 *     for (round = 1; round <= most; round++)
 *         if (dt_judge_look(judged, n, round))
 *             break;                             -- decided at a look
 *     dt_judge_end(judged, n, round);            -- rounds since the last look
 */
#ifndef DT_TUNER_TRIAL_JUDGE_H
#define DT_TUNER_TRIAL_JUDGE_H

#include "stats/stats.h"

#define DT_ROUNDS_MOST 64 /* the last look */

struct dt_judged {
    const double *values; /* of each round, smaller is better; NAN where the visit failed */
    bool out;             /* failed: nothing is said about it */
    bool decisive;        /* the comparison goes on until this one is decided */
    bool twin;            /* entrant 0 once more: within its margin nothing is better */
    struct dt_ratio
        ratio; /* against entrant 0, below 1 is better; pairs is 0 while nothing is said */
};

/* The level of the intervals after so many rounds: between two looks what is left of alpha up to the next one is spent. */
double dt_judge_level(int rounds);

/* Sets every ratio from the first `rounds` values. Fewer than 8 pairs say nothing. */
void dt_judge(struct dt_judged judged[], int n, int rounds, double level);

/* The interval says better (or worse) than entrant 0; or both sides of it are within half a per cent. */
bool dt_judge_faster(const struct dt_ratio *ratio);
bool dt_judge_slower(const struct dt_ratio *ratio);
bool dt_judge_narrow(const struct dt_ratio *ratio);
/* "faster", "slower", "tie" (narrow, and neither), or "undecided" */
const char *dt_judge_text(const struct dt_ratio *ratio);

/* What another plan's ratio may be by noise alone: the largest |ratio - 1| that the twin's interval holds. NAN: not known. */
double dt_judge_margin(const struct dt_ratio *twin);

/* The interval says better, and the ratio by more than the margin, where it is known. */
bool dt_judge_beats(const struct dt_ratio *ratio, double margin);

/* After a round: judges when this is a look; true when every decisive entrant is then decided. */
bool dt_judge_look(struct dt_judged judged[], int n, int rounds);

/* After the last round: judges the rounds made since the last look, if there are any. */
void dt_judge_end(struct dt_judged judged[], int n, int rounds);

/* Both, over recorded rounds: where a comparison of at most dt_look_samples[looks - 1] rounds stops, and its ratios. */
int dt_judge_rounds(struct dt_judged judged[], int n, int rounds, int looks);

#endif
