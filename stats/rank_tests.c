/* SPDX-License-Identifier: MIT */
#include "stats/stats_int.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>

static int first_at_least(const double sorted[], int n, double x)
{
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (sorted[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void dt_midranks(const double x[], int n, const double sorted[], double rank[])
{
    for (int i = 0; i < n; i++) {
        int from = first_at_least(sorted, n, x[i]), to = from;
        while (to < n && sorted[to] == x[i])
            to++;
        rank[i] = (from + 1 + to) / 2.0;
    }
}

/* Sum over groups of equal samples of t (t - 1) (2 t + 5). */
static double tie_term(const double x[], int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double equal = 0;
        for (int j = 0; j < n; j++)
            equal += x[j] == x[i];
        sum +=
            (equal - 1) * (2 * equal + 5); /* each of t members adds a t-th of the group's term */
    }
    return sum;
}

double dt_trend_z(const double x[], int n)
{
    if (n < DT_SERIES_LEAST)
        return NAN;
    double s = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            s += (x[j] > x[i]) - (x[j] < x[i]);
    double variance = ((double)n * (n - 1) * (2.0 * n + 5) - tie_term(x, n)) / 18;
    if (s == 0 || !(variance > 0))
        return 0;
    return (s > 0 ? s - 1 : s + 1) / sqrt(variance);
}

/* Under exchangeable samples the sum of the first k ranks has variance k (n - k) / n times that of the ranks. */
double dt_split_z(const double rank[], int n)
{
    if (n < DT_SERIES_LEAST)
        return NAN;
    double mean = (n + 1) / 2.0, variance = gsl_stats_variance_m(rank, 1, (size_t)n, mean);
    double sum = 0, most = 0;
    for (int k = 1; k < n && variance > 0; k++) {
        sum += rank[k - 1] - mean;
        double z = fabs(sum) / sqrt(variance * k * (n - k) / n);
        most = z > most ? z : most;
    }
    return most;
}

double dt_lag1(const double rank[], int n)
{
    if (n < DT_SERIES_LEAST)
        return NAN;
    double lag1 = gsl_stats_lag1_autocorrelation_m(rank, 1, (size_t)n, (n + 1) / 2.0);
    return isfinite(lag1) ? lag1 : 0;
}
