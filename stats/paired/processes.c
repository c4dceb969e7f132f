/* SPDX-License-Identifier: MIT */
/* Each start of the processes has an effect of its own (placement of memory and pages, state of the links), which
 * samples within one process cannot show. The medians of several starts are a sample of it; their logarithms are close
 * enough to normal for Student's t even with five (Kalibera, Jones 2013: repeat at the level that varies). */
#include "stats/stats.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

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

static struct dt_interval student(const double logs[], int n, double level)
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
    double *logs = n > 1 && level > 0 && level < 1 ? malloc((size_t)n * sizeof *logs) : NULL;
    if (logs == NULL)
        return result;
    for (int i = 0; i < n; i++)
        logs[i] = log(medians[i]);
    result.interval = student(logs, n, level);
    free(logs);
    return result;
}
