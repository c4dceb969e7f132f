/* SPDX-License-Identifier: MIT */
/* stats_int - shared by the files of stats and their tests */
#ifndef DT_STATS_STATS_INT_H
#define DT_STATS_STATS_INT_H

#include "base/array.h"
#include "stats/stats.h"

/* These are rank statistics: on independent samples of any continuous distribution they are
 * distributed alike, so one table of thresholds serves every machine. NAN below DT_SERIES_LEAST
 * samples, 0 for equal samples. */
#define DT_SERIES_LEAST 4

double dt_trend_z(const double x[],
                  int n); /* Mann (1945), Kendall (1975), ties and continuity corrected */
double dt_split_z(const double rank[],
                  int n); /* largest standardised rank sum over all two-part splits */
double dt_lag1(const double rank[], int n); /* lag-1 autocorrelation */
double dt_dip(const double sorted[],
              int n); /* Hartigan & Hartigan (1985), times the square root of n */
void dt_midranks(const double x[], int n, const double sorted[], double rank[]);

/* Threshold that n independent samples exceed once in a hundred series; INFINITY
 * where n is too small. */
enum dt_test { DT_TEST_TREND, DT_TEST_SPLIT, DT_TEST_LAG1, DT_TEST_DIP, DT_TESTS };
double dt_threshold(enum dt_test test, int n);

/* Returns a sorted copy, owned by the caller; NULL when n < 1 or memory runs out. */
double *dt_sorted(const double x[], int n);

#endif
