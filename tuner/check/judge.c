/* SPDX-License-Identifier: MIT */
/* The sign test turned round at looks with spent alpha (stats/looks.c). Three questions, three thresholds, and noise makes
 * each of them harder, never easier:
 *
 *   WINS   the interval lies below 1, and the gain exceeds what the plan's twin may be off by
 *   TIES   the interval lies below 1 + the threshold that was asked for, whatever the noise
 *   LOSES  16 pairs or more; an interval at the run's own level lies above 1; and the ratio exceeds the limit, which
 *          grows with the twin's margin
 */
#include "tuner/check/judge.h"

#include <math.h>
#include <stddef.h>

/* Of lose_alpha, at each look; in the proportions of dt_look_alpha without the first. 16 pairs can then decide among 160
 * comparisons: all 16 on one side have a chance of 2^-16 = 1.5e-5. */
static const double lose_share[DT_LOOKS] = {0, .238, .286, .476};

const char *dt_check_verdict_text(enum dt_check_verdict verdict)
{
    static const char *const texts[] = {"inconclusive", "ties",        "wins",
                                        "loses",        "not checked", "unsupported"};
    return texts[verdict];
}

double dt_check_lose_alpha(int comparisons)
{
    return DT_CHECK_RUN_ALPHA / (comparisons > 1 ? comparisons : 1);
}

/* Log ratios of a over b in the rounds that have both; how many there are. */
static int log_ratios(const double a[], const double b[], int rounds, double logs[DT_ROUNDS_MOST])
{
    int n = 0;
    for (int k = 0; k < rounds && k < DT_ROUNDS_MOST; k++)
        if (isfinite(a[k]) && isfinite(b[k]))
            logs[n++] = log(a[k] / b[k]);
    return n;
}

/* Both of a pair spread alike, so a visit spreads by 1/sqrt(2) of their ratio; drift, which they share, is not in it. */
static double spread(const double logs[], int n)
{
    double off[DT_ROUNDS_MOST], median = dt_stats_median(logs, n);
    for (int k = 0; k < n; k++)
        off[k] = fabs(logs[k] - median);
    return n > 0 ? 1.4826 * dt_stats_median(off, n) / sqrt(2) : NAN;
}

static void judge_twin(struct dt_check_judge *judge, int rounds, double level)
{
    double logs[DT_ROUNDS_MOST];
    int n = judge->twin != NULL ? log_ratios(judge->twin, judge->tuned, rounds, logs) : 0;
    judge->margin = judge->cv = NAN;
    judge->limit = judge->threshold;
    if (n < dt_look_samples[0])
        return;
    struct dt_ratio ratio = dt_stats_ratio(logs, n, level);
    double half = (ratio.interval.high - ratio.interval.low) / 2;
    judge->margin = dt_judge_margin(&ratio);
    judge->cv = spread(logs, n);
    judge->limit = fmax(judge->threshold, fmax(2 * half, judge->margin));
}

/* The look whose alpha rounds are judged at: the one reached, or between two looks the next. */
static int look_of(int rounds)
{
    int look = dt_stats_look(rounds);
    return look >= 0 && rounds > dt_look_samples[look] && look + 1 < DT_LOOKS ? look + 1 : look;
}

static bool loses(const struct dt_check_judge *judge, const struct dt_ratio *ratio,
                  const double logs[], int look)
{
    double alpha = judge->lose_alpha * lose_share[look];
    if (ratio->pairs < DT_CHECK_LEAST_LOSE || !(ratio->ratio > 1 + judge->limit) || !(alpha > 0))
        return false;
    return dt_stats_ratio(logs, ratio->pairs, 1 - 2 * alpha).interval.low > 1;
}

/* What was said stays, but a tie may turn out to be a win: all looks hold together. */
static void judge_rival(const struct dt_check_judge *judge, struct dt_check_rival *rival,
                        int rounds, int look)
{
    double logs[DT_ROUNDS_MOST];
    int n = log_ratios(judge->tuned, rival->values, rounds, logs);
    bool tied = rival->verdict == DT_CHECK_TIES;
    if (rival->out || (rival->verdict != DT_CHECK_INCONCLUSIVE && !tied))
        return;
    rival->ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
    if (n < dt_look_samples[0])
        return;
    rival->ratio = dt_stats_ratio(logs, n, 1 - dt_look_alpha[look]);
    rival->cv = spread(logs, n);
    if (rival->cv > DT_CHECK_CV_MOST || judge->cv > DT_CHECK_CV_MOST)
        return;
    if (dt_judge_beats(&rival->ratio, judge->margin))
        rival->verdict = DT_CHECK_WINS;
    else if (tied || rival->ratio.interval.high < 1 + judge->threshold)
        rival->verdict = DT_CHECK_TIES;
    else if (loses(judge, &rival->ratio, logs, look))
        rival->verdict = DT_CHECK_LOSES;
}

static void judge_all(struct dt_check_judge *judge, int rounds)
{
    int look = look_of(rounds);
    judge_twin(judge, rounds, 1 - dt_look_alpha[look]);
    for (int i = 0; i < judge->count; i++)
        judge_rival(judge, &judge->rivals[i], rounds, look);
}

/* A tie with the plan to be beaten is the end of it only when a gain that matters is as far off as a loss. */
bool dt_check_decided(const struct dt_check_judge *judge, int i)
{
    const struct dt_check_rival *rival = &judge->rivals[i];
    if (rival->out)
        return true;
    if (rival->verdict == DT_CHECK_TIES && i == judge->first)
        return rival->ratio.interval.low > 1 / (1 + judge->threshold);
    return rival->verdict != DT_CHECK_INCONCLUSIVE;
}

bool dt_check_look(struct dt_check_judge *judge, int rounds)
{
    int look = dt_stats_look(rounds);
    if (look < 0 || rounds != dt_look_samples[look])
        return false;
    judge_all(judge, rounds);
    for (int i = 0; i < judge->count; i++)
        if (!dt_check_decided(judge, i))
            return false;
    return true;
}

void dt_check_end(struct dt_check_judge *judge, int rounds)
{
    int look = dt_stats_look(rounds);
    if (look >= 0 && rounds > dt_look_samples[look])
        judge_all(judge, rounds);
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

int dt_check_successor(const struct dt_check_judge *judge, int fallback)
{
    double logs[DT_ROUNDS_MOST];
    int best = -1;
    for (int i = 0; i < judge->count; i++) {
        const struct dt_check_rival *rival = &judge->rivals[i];
        if (!rival->out && rival->verdict == DT_CHECK_LOSES &&
            (best < 0 || rival->ratio.ratio > judge->rivals[best].ratio.ratio))
            best = i;
    }
    if (best < 0 || fallback < 0 || best == fallback)
        return best;
    int n = log_ratios(judge->rivals[best].values, judge->rivals[fallback].values, DT_ROUNDS_MOST,
                       logs);
    if (n >= dt_look_samples[0]) {
        struct dt_ratio ratio = dt_stats_ratio(logs, n, dt_judge_level(n));
        if (dt_judge_beats(&ratio, judge->margin))
            return best;
    }
    return judge->rivals[fallback].verdict == DT_CHECK_WINS ? -1 : fallback;
}
