/* SPDX-License-Identifier: MIT */
/* Dependent samples carry less information than their number suggests. Medians of batches depend less on each other,
 * and a batch of odd size has its median below the true one as often as above it, whatever the distribution: the
 * order-statistic interval of batch medians is still one of the median. */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

#define BATCH 5
#define DEPENDENT                                                                                  \
    0.2 /* lag-1 autocorrelation of batch medians above which their interval is unreliable */

static double lag1_of(const double x[], int n)
{
    return dt_stats_series(x, n).lag1;
}

/* Tries longer and longer batches while there are enough of them; false when even the longest are dependent. */
static bool batch(const double x[], int n, double level, double medians[], struct dt_interval *out)
{
    int lower, upper;
    for (int size = BATCH; dt_stats_median_ranks(n / size, level, &lower, &upper); size += 2) {
        int batches = n / size, rest = n % size; /* the remainder is left out at the front */
        for (int i = 0; i < batches; i++)
            medians[i] = dt_stats_median(x + rest + i * size, size);
        *out = dt_stats_median_interval(medians, batches, level);
        if (lag1_of(medians, batches) <= DEPENDENT)
            return true;
    }
    return false;
}

static void spread(const double x[], int n, double work[], struct dt_summary *summary)
{
    summary->mean = dt_stats_mean(x, n);
    gsl_stats_minmax(&summary->min, &summary->max, x, 1, (size_t)n);
    summary->mad = gsl_stats_mad(x, 1, (size_t)n, work);
}

struct dt_summary dt_stats_summary(const double x[], int n, double level)
{
    struct dt_summary summary = {.n = n > 0 ? n : 0,
                                 .median = dt_stats_median(x, n),
                                 .mean = NAN,
                                 .min = NAN,
                                 .max = NAN,
                                 .mad = NAN,
                                 .interval = dt_stats_median_interval(x, n, level),
                                 .level = level,
                                 .series = dt_stats_series(x, n)};
    double *work = n > 0 ? malloc((size_t)n * sizeof *work) : NULL;
    if (work != NULL) {
        spread(x, n, work, &summary);
        if (summary.series.autocorrelated)
            summary.unreliable = !batch(x, n, level, work, &summary.interval);
    }
    free(work);
    return summary;
}

double dt_stats_log_variance(const struct dt_summary *summary)
{
    double half = 0.5 * log(summary->interval.high / summary->interval.low);
    double error = half / gsl_cdf_ugaussian_Qinv(0.5 * (1 - summary->level));
    return error * error;
}
