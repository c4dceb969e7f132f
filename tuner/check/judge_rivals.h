/* SPDX-License-Identifier: MIT */
/* judge_rivals - does the tuned plan still win? Numbers in, verdicts out: no worker, no clock
 * (docs/check.md has the rule)
 *
 * A plan that fails, or breaks a limit, while others run loses without numbers: tuner/check/run.c.
 *
 * Every rival is judged on its own, from the ratios tuned / rival of sets of fresh processes, at
 * the looks of 4, 6, 8, 12 and 16 sets. WINS and TIES have the error rate of one comparison, LOSES
 * a rate that holds for all comparisons of a run:
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
#ifndef DT_TUNER_CHECK_JUDGE_RIVALS_H
#define DT_TUNER_CHECK_JUDGE_RIVALS_H

#include "tuner/measure/measure.h"

#define DT_CHECK_RIVALS 6
/* probability that any equally fast plan of a run is called LOSES */
#define DT_CHECK_RUN_ALPHA  0.01
#define DT_CHECK_LEAST_LOSE 6 /* sets */

enum dt_check_verdict {
    DT_CHECK_UNJUDGED, /* not yet; no record has it */
    DT_CHECK_INCONCLUSIVE,
    DT_CHECK_TIES,
    DT_CHECK_WINS,
    DT_CHECK_LOSES,
    DT_CHECK_NOT_CHECKED,
    DT_CHECK_UNSUPPORTED,
    DT_CHECK_UNKNOWN /* from a text that this version does not know, or from none */
};
const char *dt_check_verdict_text(enum dt_check_verdict verdict); /* "wins", "not checked", ... */
enum dt_check_verdict dt_check_verdict_of(const char *text);

struct dt_check_rival {
    const double *values; /* value of each round, smaller is better; NAN where the visit failed */
    bool out;             /* failed, or excluded: not judged */
    bool aside;           /* excluded: it ran, but breaks a limit of the entry */
    enum dt_check_verdict verdict; /* unjudged, inconclusive, ties, wins or loses */
    struct dt_ratio
        /* tuned over rival, below 1 the tuned plan is better; over the deciding sets, or all */
        ratio;
    double cv; /* spread of a visit, from the ratios; NAN: unknown */
};

struct dt_check_judge {
    double threshold;    /* 0.03: a smaller difference is no loss */
    double lose_alpha;   /* one-sided, for all looks of a comparison */
    const double *tuned; /* values of the tuned plan */
    const double *twin;  /* a second copy of the tuned plan; NULL: none */
    int count, first;    /* number of rivals; index of the one to beat, -1: none */
    struct dt_check_rival rivals[DT_CHECK_RIVALS];
    double margin; /* the twin's margin, the noise floor; NAN: unknown */
    /* a plan loses only if slower by more: threshold, the twin's margin, or its interval's width */
    double limit;
    double cv; /* the twin's */
};

/* The alpha of one of `comparisons`, so that the run keeps DT_CHECK_RUN_ALPHA (Bonferroni). */
double dt_check_lose_alpha(int comparisons);

/* After a set: judges when this is a look; true when every rival is decided. */
bool dt_check_look(struct dt_check_judge *judge, const struct dt_sets *sets);
/* After the last set: judges the sets since the last look, at the alpha of the next. What is not
 * decided then is inconclusive. */
void dt_check_end(struct dt_check_judge *judge, const struct dt_sets *sets);

/* The verdict on the rival is final: no further set is needed for it. */
bool dt_check_decided(const struct dt_check_judge *judge, int rival);

/* The verdict on the tuned plan: LOSES when it loses to any rival, WINS when it wins over the first
 * and at least ties with the others, TIES when it ties with all (also with none, or all excluded),
 * else INCONCLUSIVE; NOT CHECKED when there are rivals and none ran. */
enum dt_check_verdict dt_check_verdict(const struct dt_check_judge *judge);

/* The rival that replaces a tuned plan that lost: the one with the largest lead, where it is shown
 * better by more than the margin than default and documented plan (rivals; -1: not a rival, or may
 * not be stored). Else, as in a session, the documented plan, where it is the better of the two and
 * is itself, or that one, shown better than the default; or the default. -1: none, also when only
 * such a plan is left and the tuned plan wins over it. */
int dt_check_successor(const struct dt_check_judge *judge, const struct dt_sets *sets, int fallback,
                       int documented);

#endif
