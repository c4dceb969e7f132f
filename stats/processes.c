/* SPDX-License-Identifier: MIT */
/* A start of the processes has an effect of its own (where memory fell, which pages, what the links agreed on), which no
 * number of samples within one process shows. The medians of several starts are a sample of it; their logarithms are near
 * enough to normal for Student's t even when there are five (Kalibera, Jones 2013: repeat at the level that varies). */
#include "stats/stats.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

static struct dt_interval student(const double logs[], int n, double level)
{
    double mean = gsl_stats_mean(logs, 1, (size_t)n);
    double error = gsl_stats_sd_m(logs, 1, (size_t)n, mean) / sqrt(n);
    double t = gsl_cdf_tdist_Pinv((1 + level) / 2, n - 1);
    return (struct dt_interval){exp(mean - t * error), exp(mean + t * error)};
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
