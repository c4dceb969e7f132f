/* SPDX-License-Identifier: MIT */
/* MSER (White 1997): leave out the first d samples that make the squared standard error of the mean of the rest the
 * smallest, sum of (x - mean)^2 over (n - d)^2. A late spike would move d past itself, so samples are first clipped at
 * three standard deviations (by the median absolute deviation) around the median of the second half. A clipped slow
 * start still lies far off for many samples, and is cut off nevertheless. */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#define REACH      3.0
#define FLOOR      1e-3 /* share of the median, since equal samples have no deviation */
#define CUT_ALARMS 0.1
#define DIFFERS    2.2 /* if the three slowest of ten come first, z is 2.4 */
#define REMAINS    3   /* least number of remaining samples: fewer have a small error by chance */

static void draw_in(const double x[], int n, double kept[], double work[])
{
    int half = n / 2;
    double centre = dt_stats_median(x + half, n - half);
    double deviation = gsl_stats_mad(x + half, 1, (size_t)(n - half), work);
    double reach = REACH * fmax(deviation, FLOOR * fabs(centre));
    for (int i = 0; i < n; i++)
        kept[i] = GSL_MAX_DBL(centre - reach, GSL_MIN_DBL(centre + reach, x[i]));
}

/* Runs from the end to the front by Welford's recurrence (1962); takes the earlier of equals. *early is the best of the
 * first half. */
static int best_truncation(const double x[], int n, int *early)
{
    double mean = 0, sum = 0, least = INFINITY, least_early = INFINITY;
    int best = 0, remains = n / 8 > REMAINS ? n / 8 : REMAINS;
    *early = 0;
    for (int d = n - 1; d >= 0; d--) {
        double count = n - d, delta = x[d] - mean;
        mean += delta / count;
        sum += delta * (x[d] - mean);
        double error = sum / (count * count);
        if (n - d >= remains && error <= least) {
            least = error;
            best = d;
        }
        if (n - d >= remains && d <= n / 2 && error <= least_early) {
            least_early = error;
            *early = d;
        }
    }
    return best;
}

/* After a cut the test is stricter, with one false alarm in ten: a decay that outlasts the cut leaves only a weak
 * trend. */
static bool trends(const double x[], int n, bool cut)
{
    double limit = cut ? gsl_cdf_ugaussian_Qinv(CUT_ALARMS / 2) : dt_threshold(DT_TEST_TREND, n);
    return fabs(dt_trend_z(x, n)) > limit;
}

/* The least error of many is small by chance, too: in quiet series of ten samples the cut would leave seven, whose
 * interval holds the median in 89 of 100 instead of 98. So the samples cut off must differ from the rest by a rank-sum
 * test. */
static bool differs(const double x[], int n, int d)
{
    double *sorted = dt_sorted(x, n), *rank = malloc((size_t)n * sizeof *rank);
    double z = 0;
    if (sorted != NULL && rank != NULL) {
        double mean = (n + 1) / 2.0, sum = 0;
        dt_midranks(x, n, sorted, rank);
        double variance = gsl_stats_variance_m(rank, 1, (size_t)n, mean);
        for (int i = 0; i < d; i++)
            sum += rank[i] - mean;
        z = variance > 0 && d > 0 ? fabs(sum) / sqrt(variance * d * (n - d) / n) : 0;
    }
    free(sorted);
    free(rank);
    return z >= DIFFERS;
}

/* A few quiet samples at the end are often chance: a minimum in the last half counts only when the rank tests reject
 * the series, too; otherwise one in four quiet series would be refused. */
bool dt_stats_steady(const double x[], int n, int *start)
{
    *start = 0;
    if (n < DT_SERIES_LEAST)
        return true;
    double *kept = malloc((size_t)n * sizeof *kept), *work = malloc((size_t)n * sizeof *work);
    bool steady = false;
    if (kept != NULL && work != NULL) {
        draw_in(x, n, kept, work);
        int early, best = best_truncation(kept, n, &early);
        early = differs(x, n, early) ? early : 0;
        struct dt_series whole = dt_stats_series(x, n);
        steady = !(best > n / 2 && (whole.drifting || whole.stepped)) &&
                 !trends(x + early, n - early, early > 0);
        if (steady)
            *start = early;
    }
    free(kept);
    free(work);
    return steady;
}
