/* SPDX-License-Identifier: MIT */
/* The trend statistic is nearly normal from ten samples on, with lighter tails below. The rank autocorrelation is
 * nearly normal with mean -1/n and variance (n - 2) / n^2 (Wald, Wolfowitz 1943), and again with lighter tails in short
 * series. The other two have no closed form: their 99 % quantiles are those of 300000 series of n uniform samples (the
 * uniform distribution has the largest dip of all unimodal ones; the other is a rank statistic). */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#define FALSE_ALARMS 0.01
#define LEAST        8 /* no flag is raised below */

static const struct {
    int n;
    double split, dip;
} quantiles[] = {
    {8, 2.400, 0.4895},    {10, 2.570, 0.504},   {12, 2.730, 0.515},  {16, 2.912, 0.5305},
    {20, 2.990, 0.540},    {24, 3.062, 0.5485},  {32, 3.142, 0.5595}, {48, 3.255, 0.571},
    {64, 3.324, 0.5805},   {128, 3.455, 0.5955}, {256, 3.542, 0.607}, {1024, 3.710, 0.6185},
    {4096, 3.800, 0.6235},
};

#define ROWS ((int)(sizeof quantiles / sizeof quantiles[0]))

/* Linear in log n; beyond the last row extrapolated from the last two. */
static double interpolate(enum dt_test test, int n)
{
    int row = 0;
    while (row + 2 < ROWS && quantiles[row + 1].n <= n)
        row++;
    double from = test == DT_TEST_SPLIT ? quantiles[row].split : quantiles[row].dip;
    double to = test == DT_TEST_SPLIT ? quantiles[row + 1].split : quantiles[row + 1].dip;
    double share =
        log((double)n / quantiles[row].n) / log((double)quantiles[row + 1].n / quantiles[row].n);
    return from + share * (to - from);
}

double dt_threshold(enum dt_test test, int n)
{
    if (n < LEAST)
        return INFINITY;
    switch (test) {
    case DT_TEST_TREND:
        return gsl_cdf_ugaussian_Qinv(FALSE_ALARMS / 2);
    case DT_TEST_LAG1:
        return gsl_cdf_ugaussian_Qinv(FALSE_ALARMS) * sqrt(n - 2.0) / n - 1.0 / n;
    default:
        return interpolate(test, n);
    }
}
