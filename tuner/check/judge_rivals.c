/* SPDX-License-Identifier: MIT */
/* Student's t over sets of fresh processes at looks with spent alpha (stats/paired.c). Three tests
 * with three thresholds; noise makes each of them harder to pass, never easier:
 *
 *   WINS   the interval lies below 1, and the gain exceeds the twin's margin
 *   TIES   the interval lies below 1 + the threshold, whatever the noise
 *   LOSES  6 sets or more; an interval at the run's own level lies above 1; and the ratio exceeds the limit, which
 *          grows with the twin's margin
 */
#include "tuner/check/judge_rivals.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Shares of lose_alpha at each look, which --until-decided exceeds by a fifth. Four sets are too
 * few: with two placements that differ by a tenth, all four favour the same one of two equal
 * plans once in 128 times. */
static const double lose_share[DT_SET_LOOKS] = {0, .1, .2, .3, .4, .1, .1};

static const char *const texts[] = {"not judged yet", "inconclusive", "ties",        "wins",
                                    "loses",          "not checked",  "unsupported", "unknown"};

const char *dt_check_verdict_text(enum dt_check_verdict verdict)
{
    return texts[verdict];
}

enum dt_check_verdict dt_check_verdict_of(const char *text)
{
    for (int i = DT_CHECK_INCONCLUSIVE; text != NULL && i <= DT_CHECK_UNSUPPORTED; i++)
        if (strcmp(texts[i], text) == 0)
            return (enum dt_check_verdict)i;
    return DT_CHECK_UNKNOWN;
}

double dt_check_lose_alpha(int comparisons)
{
    return DT_CHECK_RUN_ALPHA / (comparisons > 1 ? comparisons : 1);
}

/* The spread of a visit is 1/sqrt(2) of that of the ratio of two; common drift cancels. Placements
 * differ between sets, so ratios are taken about their set's median. */
static double visits_cv(const double a[], const double b[], const struct dt_sets *sets)
{
    double off[DT_ROUNDS_MOST];
    int n = 0;
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++]) {
        double logs[DT_SET_ROUNDS];
        int count = 0;
        for (int k = first; k < first + sets->rounds[s]; k++)
            if (isfinite(a[k]) && isfinite(b[k]))
                logs[count++] = log(a[k] / b[k]);
        double median = dt_stats_median(logs, count);
        for (int k = 0; k < count && count > 2; k++)
            off[n++] = fabs(logs[k] - median);
    }
    return n > 0 ? 1.4826 * dt_stats_median(off, n) / sqrt(2) : NAN;
}

static void judge_twin(struct dt_check_judge *judge, const struct dt_sets *sets, double level)
{
    judge->margin = judge->cv = NAN;
    judge->limit = judge->threshold;
    if (judge->twin == NULL)
        return;
    struct dt_ratio ratio = dt_judge_ratio(judge->tuned, judge->twin, sets, level);
    double half = (ratio.interval.high - ratio.interval.low) / 2;
    if (ratio.sets < DT_SETS_LEAST)
        return;
    judge->margin = dt_judge_margin(&ratio);
    judge->cv = visits_cv(judge->twin, judge->tuned, sets);
    judge->limit = fmax(judge->threshold, fmax(2 * half, judge->margin));
}

/* The look whose alpha is used for `sets` sets: the one reached, or between two looks the next. */
static int look_of(int sets)
{
    int look = dt_stats_set_look(sets);
    return look >= 0 && sets > dt_set_looks[look] && look + 1 < DT_SET_LOOKS ? look + 1 : look;
}

static bool rival_loses(const struct dt_check_judge *judge, const struct dt_check_rival *rival,
                        const struct dt_sets *sets, int look)
{
    const struct dt_ratio *ratio = &rival->ratio;
    double alpha = judge->lose_alpha * lose_share[look];
    if (ratio->sets < DT_CHECK_LEAST_LOSE || !(ratio->ratio > 1 + judge->limit) || !(alpha > 0))
        return false;
    return dt_judge_ratio(rival->values, judge->tuned, sets, 1 - 2 * alpha).interval.low > 1;
}

/* More sets may decide. */
static bool is_open(const struct dt_check_rival *rival)
{
    return rival->verdict == DT_CHECK_UNJUDGED || rival->verdict == DT_CHECK_INCONCLUSIVE;
}

/* A verdict is final, except that a tie may become a win: all looks hold simultaneously. */
static void judge_rival(const struct dt_check_judge *judge, struct dt_check_rival *rival,
                        const struct dt_sets *sets, int look)
{
    bool tied = rival->verdict == DT_CHECK_TIES;
    if (rival->out || (!is_open(rival) && !tied))
        return;
    rival->ratio = dt_judge_ratio(rival->values, judge->tuned, sets, 1 - dt_set_alpha[look]);
    if (rival->ratio.sets < DT_SETS_LEAST)
        return;
    rival->cv = visits_cv(judge->tuned, rival->values, sets);
    if (dt_judge_beats(&rival->ratio, judge->margin))
        rival->verdict = DT_CHECK_WINS;
    else if (tied || rival->ratio.interval.high < 1 + judge->threshold)
        rival->verdict = DT_CHECK_TIES;
    else if (rival_loses(judge, rival, sets, look))
        rival->verdict = DT_CHECK_LOSES;
}

static void judge_all(struct dt_check_judge *judge, const struct dt_sets *sets)
{
    int look = look_of(dt_sets_quiet(sets));
    if (look < 0)
        return;
    judge_twin(judge, sets, 1 - dt_set_alpha[look]);
    for (int i = 0; i < judge->count; i++)
        judge_rival(judge, &judge->rivals[i], sets, look);
}

/* A tie with the plan to beat is decided only when the interval also excludes a relevant gain. */
bool dt_check_decided(const struct dt_check_judge *judge, int i)
{
    const struct dt_check_rival *rival = &judge->rivals[i];
    if (rival->out)
        return true;
    if (rival->verdict == DT_CHECK_TIES && i == judge->first)
        return rival->ratio.interval.low > 1 / (1 + judge->threshold);
    return !is_open(rival);
}

bool dt_check_look(struct dt_check_judge *judge, const struct dt_sets *sets)
{
    int quiet = dt_sets_quiet(sets), look = dt_stats_set_look(quiet);
    if (look < 0 || quiet != dt_set_looks[look])
        return false;
    judge_all(judge, sets);
    for (int i = 0; i < judge->count; i++)
        if (!dt_check_decided(judge, i))
            return false;
    return true;
}

void dt_check_end(struct dt_check_judge *judge, const struct dt_sets *sets)
{
    int quiet = dt_sets_quiet(sets), look = dt_stats_set_look(quiet);
    if (look >= 0 && quiet > dt_set_looks[look])
        judge_all(judge, sets);
    for (int i = 0; i < judge->count; i++)
        if (judge->rivals[i].verdict == DT_CHECK_UNJUDGED)
            judge->rivals[i].verdict = DT_CHECK_INCONCLUSIVE;
}

enum dt_check_verdict dt_check_verdict(const struct dt_check_judge *judge)
{
    int ran = 0, ties = 0, wins = 0, aside = 0;
    for (int i = 0; i < judge->count; i++) {
        const struct dt_check_rival *rival = &judge->rivals[i];
        aside += rival->aside;
        if (rival->out)
            continue;
        if (rival->verdict == DT_CHECK_LOSES)
            return DT_CHECK_LOSES;
        ran++;
        ties += rival->verdict == DT_CHECK_TIES;
        wins += rival->verdict == DT_CHECK_WINS;
    }
    if (ran == 0)
        return judge->count == 0 || aside > 0 ? DT_CHECK_TIES : DT_CHECK_NOT_CHECKED;
    if (ties + wins < ran)
        return DT_CHECK_INCONCLUSIVE;
    bool won = judge->first >= 0 && !judge->rivals[judge->first].out &&
               judge->rivals[judge->first].verdict == DT_CHECK_WINS;
    return won ? DT_CHECK_WINS : DT_CHECK_TIES;
}

static struct dt_ratio rivals_ratio(const struct dt_check_judge *judge, const struct dt_sets *sets,
                                    int over, int rival)
{
    return dt_judge_ratio_through(judge->tuned, judge->rivals[over].values,
                                  judge->rivals[rival].values, sets,
                                  dt_stats_set_level(dt_sets_quiet(sets)));
}

/* The rival is shown better than the other one, or there is no other one. */
static bool rival_beats(const struct dt_check_judge *judge, const struct dt_sets *sets, int rival,
                        int other)
{
    if (other < 0)
        return true;
    struct dt_ratio ratio = rivals_ratio(judge, sets, other, rival);
    return dt_judge_beats(&ratio, judge->margin);
}

int dt_check_successor(const struct dt_check_judge *judge, const struct dt_sets *sets, int fallback,
                       int documented)
{
    int best = -1;
    for (int i = 0; i < judge->count; i++) {
        const struct dt_check_rival *rival = &judge->rivals[i];
        if (!rival->out && rival->verdict == DT_CHECK_LOSES &&
            (best < 0 || rival->ratio.ratio > judge->rivals[best].ratio.ratio))
            best = i;
    }
    if (best < 0 || best == fallback)
        return best;
    double ratio = fallback >= 0 && documented >= 0
                       ? rivals_ratio(judge, sets, fallback, documented).ratio
                       : NAN;
    int opponent = dt_judge_opponent(fallback, documented, ratio), stays = fallback;
    bool beats = rival_beats(judge, sets, best, fallback);
    if (beats && (best == documented || rival_beats(judge, sets, best, opponent)))
        return best;
    if (opponent == documented && (beats || rival_beats(judge, sets, documented, fallback)))
        stays = documented;
    return judge->rivals[stays].verdict == DT_CHECK_WINS ? -1 : stays;
}
