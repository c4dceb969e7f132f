/* SPDX-License-Identifier: MIT */
/* Drift hits all entrants of a round alike, so a round's ratio is free of it: the median of log ratios, with the interval
 * of the sign test, at looks whose alphas add up (stats/looks.c). */
#include "tuner/trial/judge.h"

#include <math.h>

#define DECIDED_HALF_WIDTH                                                                         \
    0.005 /* of the ratio: both sides of a tie are then within half a per cent */

double dt_judge_level(int rounds)
{
    int look = dt_stats_look(rounds);
    if (look >= 0 && rounds > dt_look_samples[look] && look + 1 < DT_LOOKS)
        look++;
    return look >= 0 ? 1 - dt_look_alpha[look] : 0.95;
}

bool dt_judge_faster(const struct dt_ratio *ratio)
{
    return ratio->pairs > 0 && ratio->interval.high < 1;
}

bool dt_judge_slower(const struct dt_ratio *ratio)
{
    return ratio->pairs > 0 && ratio->interval.low > 1;
}

bool dt_judge_narrow(const struct dt_ratio *ratio)
{
    return ratio->interval.high - ratio->interval.low <= 2 * DECIDED_HALF_WIDTH;
}

const char *dt_judge_text(const struct dt_ratio *ratio)
{
    return dt_judge_faster(ratio)   ? "faster"
           : dt_judge_slower(ratio) ? "slower"
           : dt_judge_narrow(ratio) ? "tie"
                                    : "undecided";
}

void dt_judge(struct dt_judged judged[], int n, int rounds, double level)
{
    for (int i = 0; i < n; i++) {
        double logs[DT_ROUNDS_MOST];
        int pairs = 0;
        for (int k = 0; k < rounds && k < DT_ROUNDS_MOST; k++) {
            double a = judged[0].values[k], b = judged[i].values[k];
            if (isfinite(a) && isfinite(b))
                logs[pairs++] = log(b / a);
        }
        judged[i].ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
        if (pairs >= dt_look_samples[0] && !judged[i].out && !judged[0].out)
            judged[i].ratio = dt_stats_ratio(logs, pairs, level);
    }
}

double dt_judge_margin(const struct dt_ratio *twin)
{
    return twin->pairs > 0 ? fmax(1 - twin->interval.low, twin->interval.high - 1) : NAN;
}

bool dt_judge_beats(const struct dt_ratio *ratio, double margin)
{
    return dt_judge_faster(ratio) && !(1 - ratio->ratio <= margin);
}

static double margin_of(const struct dt_judged judged[], int n)
{
    double margin = NAN;
    for (int i = 1; i < n; i++)
        if (judged[i].twin)
            margin = dt_judge_margin(&judged[i].ratio);
    return margin;
}

/* Better by less than the margin is not decided: with more rounds the margin shrinks. */
static bool decided(const struct dt_judged judged[], int n)
{
    double margin = margin_of(judged, n);
    for (int i = 1; i < n; i++) {
        const struct dt_ratio *ratio = &judged[i].ratio;
        if (!judged[i].decisive || judged[i].out)
            continue;
        if (dt_judge_faster(ratio) ? !dt_judge_beats(ratio, margin)
                                   : !dt_judge_slower(ratio) && !dt_judge_narrow(ratio))
            return false;
    }
    return true;
}

bool dt_judge_look(struct dt_judged judged[], int n, int rounds)
{
    int look = dt_stats_look(rounds);
    if (look < 0 || rounds != dt_look_samples[look])
        return false;
    dt_judge(judged, n, rounds, dt_judge_level(rounds));
    return decided(judged, n);
}

void dt_judge_end(struct dt_judged judged[], int n, int rounds)
{
    int look = dt_stats_look(rounds);
    if (look >= 0 && rounds > dt_look_samples[look])
        dt_judge(judged, n, rounds, dt_judge_level(rounds));
}

int dt_judge_rounds(struct dt_judged judged[], int n, int rounds, int looks)
{
    int most = dt_look_samples[looks - 1], made = 0;
    for (int i = 0; i < n; i++)
        judged[i].ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
    while (made < rounds && made < most)
        if (dt_judge_look(judged, n, ++made))
            return made;
    dt_judge_end(judged, n, made);
    return made;
}
