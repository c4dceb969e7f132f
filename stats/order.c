/* SPDX-License-Identifier: MIT */
/* The interval of a median by order statistics: the number of samples below the median of their distribution is
 * binomial(n, 1/2), so that the l-th smallest and the l-th largest of n samples bracket it with probability
 * 1 - 2 P(B < l). Exact for any continuous distribution, conservative with ties (David, Nagaraja 2003, 7.1). */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double *dt_sorted(const double x[], int n)
{
    double *copy = n > 0 ? malloc((size_t)n * sizeof *copy) : NULL;
    if (copy == NULL)
        return NULL;
    memcpy(copy, x, (size_t)n * sizeof *copy);
    gsl_sort(copy, 1, (size_t)n);
    return copy;
}

double dt_stats_quantile(const double x[], int n, double f)
{
    /* GSL reads outside its array when f is not in 0..1 (CVE-2020-35357) */
    double *sorted = f >= 0 && f <= 1 ? dt_sorted(x, n) : NULL;
    if (sorted == NULL)
        return NAN;
    double value = gsl_stats_quantile_from_sorted_data(sorted, 1, (size_t)n, f);
    free(sorted);
    return value;
}

double dt_stats_median(const double x[], int n)
{
    double *sorted = dt_sorted(x, n);
    if (sorted == NULL)
        return NAN;
    double value = gsl_stats_median_from_sorted_data(sorted, 1, (size_t)n);
    free(sorted);
    return value;
}

double dt_stats_mean(const double x[], int n)
{
    return n > 0 ? gsl_stats_mean(x, 1, (size_t)n) : NAN;
}

static double coverage(int n, int lower)
{
    return 1 - 2 * gsl_cdf_binomial_P((unsigned)lower - 1, 0.5, (unsigned)n);
}

bool dt_stats_median_ranks(int n, double level, int *lower, int *upper)
{
    /* tolerates rounding errors */
    double least = level - 1e-12;
    if (n < 1 || !(level > 0 && level < 1) || coverage(n, 1) < least)
        return false;
    int inside = 1, outside = n / 2 + 1; /* coverage falls as the ranks approach each other */
    while (outside - inside > 1) {
        int middle = inside + (outside - inside) / 2;
        if (coverage(n, middle) >= least)
            inside = middle;
        else
            outside = middle;
    }
    *lower = inside;
    *upper = n + 1 - inside;
    return true;
}

struct dt_interval dt_stats_median_interval(const double x[], int n, double level)
{
    struct dt_interval interval = {NAN, NAN};
    int lower, upper;
    if (!dt_stats_median_ranks(n, level, &lower, &upper))
        return interval;
    double *sorted = dt_sorted(x, n);
    if (sorted == NULL)
        return interval;
    interval.low = sorted[lower - 1];
    interval.high = sorted[upper - 1];
    free(sorted);
    return interval;
}
