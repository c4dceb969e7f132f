/* SPDX-License-Identifier: MIT */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* Each start of the processes has an effect of its own (placement of memory and pages, state of the
 * links), which samples within one process cannot show. The medians of several starts are a sample
 * of it; their logarithms are close enough to normal for Student's t even with five (Kalibera,
 * Jones 2013: repeat at the level that varies). */

struct dt_interval dt_stats_mean_interval(const double x[], int n, double level)
{
    if (n < 2 || !(level > 0 && level < 1))
        return (struct dt_interval){NAN, NAN};
    double mean = gsl_stats_mean(x, 1, (size_t)n);
    double error = gsl_stats_sd_m(x, 1, (size_t)n, mean) / sqrt(n);
    double t = gsl_cdf_tdist_Pinv((1 + level) / 2, n - 1);
    return (struct dt_interval){mean - t * error, mean + t * error};
}

struct dt_interval dt_stats_share_interval(int k, int n, double level)
{
    if (n < 1 || k < 0 || k > n || !(level > 0 && level < 1))
        return (struct dt_interval){NAN, NAN};
    double tail = (1 - level) / 2;
    return (struct dt_interval){k == 0 ? 0 : gsl_cdf_beta_Pinv(tail, k, n - k + 1),
                                k == n ? 1 : gsl_cdf_beta_Qinv(tail, k + 1, n - k)};
}

static struct dt_interval student_interval(const double logs[], int n, double level)
{
    struct dt_interval interval = dt_stats_mean_interval(logs, n, level);
    return (struct dt_interval){exp(interval.low), exp(interval.high)};
}

struct dt_processes dt_stats_processes(const double medians[], int n, double level)
{
    struct dt_processes result = {.n = n > 0 ? n : 0,
                                  .median = dt_stats_median(medians, n),
                                  .interval = {NAN, NAN},
                                  .level = level};
    dt_auto_free double *logs =
        n > 1 && level > 0 && level < 1 ? malloc((size_t)n * sizeof *logs) : NULL;
    if (logs == NULL)
        return result;
    for (int i = 0; i < n; i++)
        logs[i] = log(medians[i]);
    result.interval = student_interval(logs, n, level);
    return result;
}

/* The placement of memory and ranks stays constant while a plan is resident and differs from one
 * start to the next; samples of one start cannot show its effect. So a comparison is repeated in
 * sets of fresh processes. Each set gives one number, the median log ratio of its pairs, and the
 * estimate is the mean of these numbers with Student's t: the interval holds for a new start too
 * (Kalibera, Jones 2013: repeat at the level that varies). There are seven looks, with alpha spent
 * over the looks as in rank_tests.c (Lan, DeMets 1983). */

const int dt_set_looks[DT_SET_LOOKS] = {4, 6, 8, 12, 16, 24, 32};
const double dt_set_alpha[DT_SET_LOOKS] = {.006, .008, .010, .012, .014, .005, .005};

int dt_stats_set_look(int sets)
{
    int look = -1;
    for (int i = 0; i < DT_SET_LOOKS; i++)
        if (sets >= dt_set_looks[i])
            look = i;
    return look;
}

double dt_stats_set_level(int sets)
{
    int look = dt_stats_set_look(sets);
    bool between = look < 0 || (sets > dt_set_looks[look] && look + 1 < DT_SET_LOOKS);
    return 1 - dt_set_alpha[between ? look + 1 : look];
}

/* Writes one number for each set with pairs and returns their count. *pairs:
 * total number of pairs. */
static int set_medians(const double log_ratio[], const int pairs[], int sets, double medians[],
                       int *all)
{
    int n = 0, at = 0;
    for (int s = 0; s < sets && n < DT_SETS_MOST; s++) {
        if (pairs[s] > 0)
            medians[n++] = dt_stats_median(log_ratio + at, pairs[s]);
        at += pairs[s];
    }
    *all = at;
    return n;
}

struct dt_ratio dt_stats_set_ratio(const double log_ratio[], const int pairs[], int sets,
                                   double level)
{
    double medians[DT_SETS_MOST];
    struct dt_ratio ratio = {.ratio = NAN, .interval = {NAN, NAN}, .spread = NAN};
    int n = set_medians(log_ratio, pairs, sets, medians, &ratio.pairs);
    ratio.sets = n;
    if (n == 0)
        return ratio;
    struct dt_interval interval = dt_stats_mean_interval(medians, n, level);
    ratio.ratio = exp(dt_stats_mean(medians, n));
    ratio.interval = (struct dt_interval){exp(interval.low), exp(interval.high)};
    if (n > 1)
        ratio.spread = gsl_stats_sd(medians, 1, (size_t)n);
    return ratio;
}

int dt_stats_sets_needed(double log_ratio, double spread)
{
    for (int look = 0; look < DT_SET_LOOKS && dt_set_looks[look] <= DT_SETS_USUAL; look++) {
        int n = dt_set_looks[look];
        double t = gsl_cdf_tdist_Pinv(1 - dt_set_alpha[look] / 2, n - 1);
        if (fabs(log_ratio) > t * spread / sqrt(n))
            return n;
    }
    return 0;
}
