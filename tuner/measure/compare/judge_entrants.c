/* SPDX-License-Identifier: MIT */
/* Drift hits all entrants of a round alike, so a round's ratio is free of it. Sets of fresh
 * processes give the mean of their median log ratios with Student's t (stats/paired.c), at several
 * looks with alphas that add up. */
#include "tuner/measure/compare/judge_entrants.h"

#include "tuner/runner/load.h"

#include <math.h>
#include <stddef.h>

#define DECIDED_HALF_WIDTH                                                                         \
    0.005 /* half width of the ratio: a tie is within half a per cent on both sides */
#define LEVELS_MOST 1.25
#define LEAST_PAIRS 2 /* pairs of a set that counts: an order and its mirror */

const char *dt_company_text(enum dt_company company)
{
    static const char *const texts[] = {
        [DT_ALL_TOGETHER] = "all", [DT_IN_PAIRS] = "pairs", [DT_ONE_ALONE] = "one"};
    return texts[company];
}

int dt_sets_rounds(const struct dt_sets *sets)
{
    int rounds = 0;
    for (int s = 0; s < sets->count; s++)
        rounds += sets->rounds[s];
    return rounds;
}

bool dt_sets_disturbed(const struct dt_sets *sets, int set)
{
    return dt_load_disturbs(sets->others[set], sets->gpus[set]);
}

int dt_sets_quiet(const struct dt_sets *sets)
{
    int quiet = 0;
    for (int s = 0; s < sets->count; s++)
        quiet += !dt_sets_disturbed(sets, s);
    return quiet;
}

static double median_of_set(const double values[], int first, int last)
{
    double found[DT_SET_ROUNDS];
    int n = 0;
    for (int k = first; k < last && n < DT_SET_ROUNDS; k++)
        if (isfinite(values[k]))
            found[n++] = values[k];
    return n > 0 ? dt_stats_median(found, n) : NAN;
}

double dt_sets_levels(const double values[], const struct dt_sets *sets, int n)
{
    double least = INFINITY, most = 0;
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++]) {
        double level = median_of_set(values, first, first + sets->rounds[s]);
        if (s < sets->count - n || isnan(sets->others[s]) || dt_sets_disturbed(sets, s))
            continue;
        least = fmin(least, level);
        most = fmax(most, level);
    }
    return most > least ? most / least : 1;
}

bool dt_sets_agree(const double a[], const double b[], double times, const struct dt_sets *sets)
{
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++]) {
        int last = first + sets->rounds[s];
        if (!dt_sets_disturbed(sets, s) &&
            median_of_set(b, first, last) >= times * median_of_set(a, first, last))
            return false;
    }
    return true;
}

/* Whether one of the last DT_SETS_LEAST sets was disturbed, or the levels of the first entrant
 * differ by more than LEVELS_MOST. */
static bool load_changes(const double values[], const struct dt_sets *sets)
{
    for (int s = 0; s < sets->count; s++)
        if (s >= sets->count - DT_SETS_LEAST && dt_sets_disturbed(sets, s))
            return true;
    return dt_sets_levels(values, sets, DT_SETS_LEAST) > LEVELS_MOST;
}

/* There are enough sets for a conclusion about the next start. */
static bool ratio_decides(const struct dt_ratio *ratio)
{
    return ratio->sets >= DT_SETS_LEAST;
}

bool dt_judge_faster(const struct dt_ratio *ratio)
{
    return ratio_decides(ratio) && ratio->interval.high < 1;
}

bool dt_judge_slower(const struct dt_ratio *ratio)
{
    return ratio_decides(ratio) && ratio->interval.low > 1;
}

static bool is_narrow(const struct dt_ratio *ratio)
{
    return ratio_decides(ratio) &&
           ratio->interval.high - ratio->interval.low <= 2 * DECIDED_HALF_WIDTH;
}

const char *dt_judge_text(const struct dt_ratio *ratio)
{
    return dt_judge_faster(ratio)   ? "faster"
           : dt_judge_slower(ratio) ? "slower"
           : is_narrow(ratio)       ? "tie"
                                    : "undecided";
}

static const struct dt_ratio unknown = {.ratio = NAN, .interval = {NAN, NAN}, .spread = NAN};

/* Log ratios b / a of the rounds from..until in which both were visited; how many. */
static int logs_of(const double a[], const double b[], int from, int until, double logs[])
{
    int n = 0;
    for (int k = from; k < until; k++)
        if (isfinite(a[k]) && isfinite(b[k]))
            logs[n++] = log(b[k] / a[k]);
    return n;
}

/* The same from two pairs with common: the first of each, the second of each, ... */
static int logs_through(const double common[], const double a[], const double b[], int from,
                        int until, double logs[])
{
    double less[DT_ROUNDS_MOST];
    int n = logs_of(common, b, from, until, logs), m = logs_of(common, a, from, until, less);
    for (int i = 0; i < n && i < m; i++)
        logs[i] -= less[i];
    return n < m ? n : m;
}

struct dt_ratio dt_judge_ratio_through(const double common[], const double a[], const double b[],
                                       const struct dt_sets *sets, double level)
{
    double logs[2 * DT_ROUNDS_MOST];
    int pairs[DT_SETS_MOST] = {0}, at = 0, from = 0;
    for (int s = 0; s < sets->count; from += sets->rounds[s++]) {
        int until =
            from + sets->rounds[s] < DT_ROUNDS_MOST ? from + sets->rounds[s] : DT_ROUNDS_MOST;
        pairs[s] = logs_of(a, b, from, until, logs + at);
        if (pairs[s] == 0 && common != NULL)
            pairs[s] = logs_through(common, a, b, from, until, logs + at);
        if (pairs[s] < LEAST_PAIRS || dt_sets_disturbed(sets, s))
            pairs[s] = 0;
        at += pairs[s];
    }
    struct dt_ratio ratio = at > 0 ? dt_stats_set_ratio(logs, pairs, sets->count, level) : unknown;
    if (ratio.sets < DT_SETS_LEAST)
        ratio.interval = unknown.interval;
    return ratio;
}

struct dt_ratio dt_judge_ratio(const double a[], const double b[], const struct dt_sets *sets,
                               double level)
{
    return dt_judge_ratio_through(NULL, a, b, sets, level);
}

double dt_judge_margin(const struct dt_ratio *twin)
{
    return ratio_decides(twin) ? fmax(1 / twin->interval.low, twin->interval.high) - 1 : NAN;
}

bool dt_judge_beats(const struct dt_ratio *ratio, double margin)
{
    return dt_judge_faster(ratio) && !(1 / ratio->ratio <= 1 + margin);
}

int dt_judge_opponent(int fallback, int documented, double documented_ratio)
{
    if (fallback < 0 || documented < 0)
        return fallback < 0 ? documented : fallback;
    return documented_ratio < 1 ? documented : fallback;
}

static double margin_of(const struct dt_judged judged[], int n)
{
    double margin = NAN;
    for (int i = 1; i < n; i++)
        if (judged[i].twin)
            margin = dt_judge_margin(&judged[i].ratio);
    return margin;
}

/* The twin is still measured, but not enough for a margin. */
static bool lacks_margin(const struct dt_judged judged[], int n)
{
    for (int i = 1; i < n; i++)
        if (judged[i].twin && !judged[i].out)
            return isnan(dt_judge_margin(&judged[i].ratio));
    return false;
}

/* Better by less than the margin is undecided: with more rounds the margin shrinks. */
static bool ratio_decided(const struct dt_ratio *ratio, double margin)
{
    return dt_judge_faster(ratio) ? dt_judge_beats(ratio, margin)
                                  : dt_judge_slower(ratio) || is_narrow(ratio);
}

/* Against its rival an entrant is not worse until that is shown: it needs a decision only where it
 * beats the first one. */
static bool rival_decided(const struct dt_judged judged[], int i, double margin,
                          const struct dt_sets *sets)
{
    const struct dt_judged *own = &judged[i], *rival = &judged[own->rival];
    if (own->rival == 0 || rival->out || !dt_judge_beats(&own->ratio, margin))
        return true;
    struct dt_ratio ratio = dt_judge_ratio_through(judged[0].values, rival->values, own->values,
                                                   sets, dt_stats_set_level(dt_sets_quiet(sets)));
    return ratio_decided(&ratio, margin);
}

static bool all_decided(const struct dt_judged judged[], int n, const struct dt_sets *sets)
{
    double margin = margin_of(judged, n);
    if (lacks_margin(judged, n))
        return false;
    for (int i = 1; i < n; i++)
        if (judged[i].decisive && !judged[i].out &&
            (!ratio_decided(&judged[i].ratio, margin) || !rival_decided(judged, i, margin, sets)))
            return false;
    return true;
}

static void judge_sets(struct dt_judged judged[], int n, const struct dt_sets *sets)
{
    for (int i = 0; i < n; i++)
        judged[i].ratio = dt_judge_ratio(judged[0].values, judged[i].values, sets,
                                         dt_stats_set_level(dt_sets_quiet(sets)));
}

/* A decided ratio is known no better than to a factor. */
static bool any_wide(const struct dt_judged judged[], int n)
{
    for (int i = 1; i < n; i++)
        if (judged[i].decisive && !judged[i].out &&
            judged[i].ratio.interval.high > DT_WIDE * judged[i].ratio.interval.low)
            return true;
    return false;
}

static bool set_look(const struct dt_sets *sets)
{
    int quiet = dt_sets_quiet(sets), look = dt_stats_set_look(quiet);
    return look >= 0 && quiet == dt_set_looks[look];
}

bool dt_judge_set_look(struct dt_judged judged[], int n, const struct dt_sets *sets)
{
    if (!set_look(sets))
        return false;
    judge_sets(judged, n, sets);
    return all_decided(judged, n, sets) && !any_wide(judged, n) &&
           !load_changes(judged[0].values, sets);
}

void dt_judge_set_end(struct dt_judged judged[], int n, const struct dt_sets *sets)
{
    if (!set_look(sets))
        judge_sets(judged, n, sets);
}

int dt_judge_sets(struct dt_judged judged[], int n, const struct dt_sets *sets)
{
    struct dt_sets so_far = *sets;
    for (int i = 0; i < n; i++)
        judged[i].ratio = unknown;
    for (so_far.count = 1; so_far.count <= sets->count; so_far.count++)
        if (dt_judge_set_look(judged, n, &so_far))
            return so_far.count;
    dt_judge_set_end(judged, n, sets);
    return sets->count;
}
