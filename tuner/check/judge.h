/* SPDX-License-Identifier: MIT */
/* judge - does the tuned plan still win? Numbers in, verdicts out: no worker, no clock (docs/check.md has the rule)
 *
 * Every rival is judged on its own, from the ratios tuned / rival of sets of fresh processes, at the looks of 4, 6, 8, 12
 * and 16 sets. What is good for the tuned plan is said at the rate of one comparison, LOSES at a rate that holds for all
 * comparisons of a run:
 *
 *     judge = (struct dt_check_judge){.threshold = 0.03, .lose_alpha = dt_check_lose_alpha(80), ...};
 *     while (sets.count < DT_SETS_MOST) {
 *         sets.rounds[sets.count++] = one_set();
 *         if (dt_check_look(&judge, &sets))
 *             break;
 *     }
 *     dt_check_end(&judge, &sets);              -- sets since the last look
 *     dt_check_verdict(&judge);
 */
#ifndef DT_TUNER_CHECK_JUDGE_H
#define DT_TUNER_CHECK_JUDGE_H

#include "tuner/measure/measure.h"

#define DT_CHECK_RIVALS     6
#define DT_CHECK_RUN_ALPHA  0.01 /* that any plan of a run is called LOSES though it is as fast */
#define DT_CHECK_LEAST_LOSE 6    /* sets */
#define DT_CHECK_CV_MOST    0.05 /* of a visit; what spreads more is not judged */

enum dt_check_verdict {
    DT_CHECK_INCONCLUSIVE,
    DT_CHECK_TIES,
    DT_CHECK_WINS,
    DT_CHECK_LOSES,
    DT_CHECK_NOT_CHECKED,
    DT_CHECK_UNSUPPORTED
};
const char *dt_check_verdict_text(enum dt_check_verdict verdict); /* "wins", "not checked", ... */

struct dt_check_rival {
    const double *values; /* of each round, smaller is better; NAN where the visit failed */
    bool out;             /* failed, or aside: nothing is said of it */
    bool aside;           /* it ran, but breaks a limit of the entry: it need not be beaten */
    enum dt_check_verdict verdict; /* inconclusive, ties, wins or loses */
    struct dt_ratio
        ratio; /* tuned over rival: below 1 the tuned plan is better; of the sets that decided, or all */
    double cv; /* of a visit, from the spread of the ratios; NAN: not known */
};

struct dt_check_judge {
    double threshold;    /* slower by less is no loss: 0.03 */
    double lose_alpha;   /* one-sided, of all looks of a comparison together */
    const double *tuned; /* values of the tuned plan */
    const double *twin;  /* the same plan once more; NULL: there is none */
    int count, first;    /* rivals; the one that is to be beaten, -1: none */
    struct dt_check_rival rivals[DT_CHECK_RIVALS];
    double margin; /* of the twin: what may differ though nothing does; NAN: not known */
    double limit;  /* a plan must be slower by more to lose: threshold, or twice the margin */
    double cv;     /* of the twin */
};

/* For one of so many comparisons, so that the run keeps DT_CHECK_RUN_ALPHA (Bonferroni). */
double dt_check_lose_alpha(int comparisons);

/* After a set: judges when this is a look; true when every rival is decided. */
bool dt_check_look(struct dt_check_judge *judge, const struct dt_sets *sets);
/* After the last set: judges what was added since the last look, at the alpha of the next. */
void dt_check_end(struct dt_check_judge *judge, const struct dt_sets *sets);

/* The verdict on the rival is final: no further set is needed for it. */
bool dt_check_decided(const struct dt_check_judge *judge, int rival);

/* Of the tuned plan, from those over its rivals: LOSES when it loses to any, WINS when it wins over the first and ties at
 * least with the others, TIES when it does so with all (there may be none, or all are aside), else INCONCLUSIVE; NOT CHECKED when there are
 * rivals and none ran. */
enum dt_check_verdict dt_check_verdict(const struct dt_check_judge *judge);

/* The rival that takes the place of a tuned plan that lost: of those it lost to the one by most, but the default (a rival;
 * -1: it is none, or may not be stored) where that one is not shown to be better than it, by more than the margin. -1: none,
 * also when only the default is left and the tuned plan wins over it. */
int dt_check_successor(const struct dt_check_judge *judge, const struct dt_sets *sets,
                       int fallback);

#endif
