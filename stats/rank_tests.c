/* SPDX-License-Identifier: MIT */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

/* Repeated looks with optional stopping inflate the error: alpha is spent over the looks
 * (group-sequential testing, Lan, DeMets 1983), so that all intervals hold simultaneously. */

const int dt_look_samples[DT_LOOKS] = {8, 16, 32, 64};
const double dt_look_alpha[DT_LOOKS] = {.008, .010, .012, .020};

int dt_stats_look(int n)
{
    int look = -1;
    for (int i = 0; i < DT_LOOKS; i++)
        if (n >= dt_look_samples[i])
            look = i;
    return look;
}

double dt_stats_look_level(int n)
{
    int look = 0;
    while (look + 1 < DT_LOOKS && n > dt_look_samples[look])
        look++;
    return 1 - dt_look_alpha[look];
}

/* The trend statistic is nearly normal from ten samples on, with lighter tails below. The rank
 * autocorrelation is nearly normal with mean -1/n and variance (n - 2) / n^2 (Wald, Wolfowitz
 * 1943), and again with lighter tails in short series. The other two have no closed form: their 99
 * % quantiles are those of 300000 series of n uniform samples (the uniform distribution has the
 * largest dip of all unimodal ones; the other is a rank statistic). */

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
static double interpolate_level(enum dt_test test, int n)
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
        return interpolate_level(test, n);
    }
}

static double square_of(double x)
{
    return x * x;
}

struct dt_mix dt_stats_mix(const struct dt_mix_part parts[], int n)
{
    struct dt_mix mix = {0, 0, NAN, {NAN, NAN}};
    double shares = 0, below = 0, above = 0;
    for (int i = 0; i < n; i++) {
        shares += parts[i].share;
        mix.seconds += parts[i].share * parts[i].seconds;
        mix.tuned += parts[i].share * parts[i].seconds / parts[i].gain;
    }
    for (int i = 0; i < n; i++) {
        double part = parts[i].share * parts[i].seconds / parts[i].gain / mix.tuned;
        below += square_of(part * log(parts[i].gain / parts[i].interval.low));
        above += square_of(part * log(parts[i].interval.high / parts[i].gain));
    }
    mix.gain = mix.seconds / mix.tuned;
    mix.interval.low = mix.gain * exp(-sqrt(below));
    mix.interval.high = mix.gain * exp(sqrt(above));
    mix.seconds /= shares;
    mix.tuned /= shares;
    return mix;
}

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

/* Under exchangeable samples the sum of the first k ranks has variance k (n - k) / n
 * times that of the ranks. */
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

/* One-sided test that differences of pairs are above zero: exact signed ranks. */

/* Probability that the sum of the ranks with positive sign is at least `sum` when signs are random.
 * Ranks and sum are doubled, so that midranks are integers. chance has room for total + 1. */
static double sign_flip_chance(const double twice[], int n, int total, int sum, double chance[])
{
    double p = 0;
    for (int s = 0; s <= total; s++)
        chance[s] = s == 0;
    for (int i = 0; i < n; i++) {
        int rank = (int)twice[i];
        for (int s = total; s >= 0; s--)
            chance[s] = 0.5 * (chance[s] + (s >= rank ? chance[s - rank] : 0));
    }
    for (int s = sum; s <= total; s++)
        p += chance[s];
    return p;
}

double dt_stats_signed_rank(const double difference[], int n)
{
    dt_auto_free double *size = calloc(2 * (size_t)n + 1, sizeof *size);
    int m = 0, sum = 0;
    for (int i = 0; i < n && size != NULL; i++)
        if (difference[i] != 0)
            size[m++] = fabs(difference[i]);
    int total = m * (m + 1);
    dt_auto_free double *sorted = dt_sorted(size, m),
                        *chance = calloc((size_t)total + 1, sizeof *chance);
    double p = size == NULL || chance == NULL ? NAN : 1;
    if (sorted != NULL && chance != NULL) {
        double *rank = size + n;
        dt_midranks(size, m, sorted, rank);
        for (int i = 0, k = 0; i < n; i++) {
            if (difference[i] == 0)
                continue;
            rank[k] *= 2;
            sum += difference[i] > 0 ? (int)rank[k] : 0;
            k++;
        }
        p = sign_flip_chance(rank, m, total, sum, chance);
    }
    return p;
}
