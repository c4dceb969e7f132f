/* SPDX-License-Identifier: MIT */
#include "stats/stats_int.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* Tukey (1977): mild beyond 1.5 interquartile ranges of the quartiles, severe beyond 3; severe ones do not count as
 * mild. */
static void count_outliers(const double sorted[], int n, struct dt_series *series)
{
    double low = gsl_stats_quantile_from_sorted_data(sorted, 1, (size_t)n, 0.25);
    double high = gsl_stats_quantile_from_sorted_data(sorted, 1, (size_t)n, 0.75);
    double range = high - low;
    for (int i = 0; i < n; i++) {
        double beyond = fmax(low - sorted[i], sorted[i] - high);
        if (beyond > 3 * range)
            series->outliers_severe++;
        else if (beyond > 1.5 * range)
            series->outliers_mild++;
    }
}

struct dt_series dt_stats_series(const double x[], int n)
{
    struct dt_series series = {.lag1 = NAN, .trend_z = NAN, .split = NAN};
    double *sorted = n >= DT_SERIES_LEAST ? dt_sorted(x, n) : NULL;
    double *rank = sorted != NULL ? malloc((size_t)n * sizeof *rank) : NULL;
    if (rank != NULL) {
        dt_midranks(x, n, sorted, rank);
        series.lag1 = dt_lag1(rank, n);
        series.trend_z = dt_trend_z(x, n);
        series.split = dt_split_z(rank, n);
        series.autocorrelated = series.lag1 > dt_threshold(DT_TEST_LAG1, n);
        series.drifting = fabs(series.trend_z) > dt_threshold(DT_TEST_TREND, n);
        series.stepped = series.split > dt_threshold(DT_TEST_SPLIT, n);
        series.bimodal = dt_dip(sorted, n) > dt_threshold(DT_TEST_DIP, n);
        count_outliers(sorted, n, &series);
    }
    free(sorted);
    free(rank);
    return series;
}
