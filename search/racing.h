/* SPDX-License-Identifier: MIT */
/* racing - decides how many repetitions a plan gets
 *
 * A pure function of the samples, used by live sessions and by the replay of recorded repetitions.
 *
 *     while (dt_race_look(&race, samples, n, &until) == DT_RACE_MORE)
 *         n = measure(samples, n, until);
 *
 * samples[0] is the cold first repetition, which is never judged. After three warm ones a plan
 * whose fastest is 1.25 times the incumbent is dropped; from then on it is dropped at 8, 16, 32, 64
 * warm repetitions when its median and a one-sided test of pairs (the i-th of both) show it slower
 * than the incumbent. The alphas of the looks add up to 5 %.
 */
#ifndef DT_SEARCH_RACING_H
#define DT_SEARCH_RACING_H

#define DT_RACE_WARM     3    /* warm repetitions before the first decision */
#define DT_RACE_HOPELESS 1.25 /* times the incumbent */

struct dt_race {
    /* warm samples of the incumbent in the order they were taken; NULL: none yet */
    const double *best;
    int best_count;
    int most; /* warm repetitions a plan gets at most */
};

enum dt_race_next {
    DT_RACE_MORE,   /* up to *until repetitions, the cold one included; then look again */
    DT_RACE_DROP,   /* far slower than the incumbent */
    DT_RACE_SLOWER, /* slower, by the test */
    DT_RACE_ENOUGH  /* all its repetitions are made */
};

/* Decides after n repetitions of a plan; smaller samples are better. *until is
 * set for DT_RACE_MORE. */
enum dt_race_next dt_race_look(const struct dt_race *race, const double samples[], int n,
                               int *until);

#endif
