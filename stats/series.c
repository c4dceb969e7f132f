/* SPDX-License-Identifier: MIT */
#include "stats/stats_int.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int dt_stats_slowest(const long long row[], int ranks)
{
    int slowest = 0;
    for (int rank = 1; rank < ranks; rank++)
        slowest = row[rank] > row[slowest] ? rank : slowest;
    return slowest;
}

/* Harmonic mean over the replicas of their slowest ranks' times, in seconds. */
static double step_seconds(const long long row[], int ranks, int replicas)
{
    int each = ranks / replicas;
    double rate = 0;
    for (int first = 0; first + each <= ranks; first += each)
        rate += 1 / ((double)row[first + dt_stats_slowest(row + first, each)] * 1e-9);
    return replicas / rate;
}

double dt_stats_over_ranks(const long long ns[], int steps, int ranks, int replicas, double out[],
                           int last[])
{
    dt_auto_free double *skew = steps > 0 ? malloc((size_t)steps * sizeof *skew) : NULL;
    if (last != NULL && ranks > 0)
        memset(last, 0, (size_t)ranks * sizeof *last);
    for (int step = 0; step < steps && ranks > 0; step++) {
        const long long *row = ns + (size_t)step * (size_t)ranks;
        int first = 0, slowest = dt_stats_slowest(row, ranks);
        for (int rank = 1; rank < ranks; rank++)
            first = row[rank] < row[first] ? rank : first;
        out[step] = replicas > 1 ? step_seconds(row, ranks, replicas) : (double)row[slowest] * 1e-9;
        if (last != NULL)
            last[slowest]++;
        if (skew != NULL)
            skew[step] = (double)(row[slowest] - row[first]) * 1e-9;
    }
    return skew != NULL && ranks > 0 ? dt_stats_median(skew, steps) : NAN;
}

/* The interval of a median by order statistics: the number of samples below the median of their
 * distribution is binomial(n, 1/2), so that the l-th smallest and the l-th largest of n samples
 * bracket it with probability 1 - 2 P(B < l). Exact for any continuous distribution, conservative
 * with ties (David, Nagaraja 2003, 7.1). */

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
    dt_auto_free double *sorted = f >= 0 && f <= 1 ? dt_sorted(x, n) : NULL;
    if (sorted == NULL)
        return NAN;
    return gsl_stats_quantile_from_sorted_data(sorted, 1, (size_t)n, f);
}

double dt_stats_median(const double x[], int n)
{
    dt_auto_free double *sorted = dt_sorted(x, n);
    if (sorted == NULL)
        return NAN;
    return gsl_stats_median_from_sorted_data(sorted, 1, (size_t)n);
}

double dt_stats_mean(const double x[], int n)
{
    return n > 0 ? gsl_stats_mean(x, 1, (size_t)n) : NAN;
}

static double order_coverage(int n, int lower)
{
    return 1 - 2 * gsl_cdf_binomial_P((unsigned)lower - 1, 0.5, (unsigned)n);
}

bool dt_stats_median_ranks(int n, double level, int *lower, int *upper)
{
    /* tolerates rounding errors */
    double least = level - 1e-12;
    if (n < 1 || !(level > 0 && level < 1) || order_coverage(n, 1) < least)
        return false;
    int inside = 1, outside = n / 2 + 1; /* coverage falls as the ranks approach each other */
    while (outside - inside > 1) {
        int middle = inside + (outside - inside) / 2;
        if (order_coverage(n, middle) >= least)
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
    dt_auto_free double *sorted = dt_sorted(x, n);
    if (sorted == NULL)
        return interval;
    interval.low = sorted[lower - 1];
    interval.high = sorted[upper - 1];
    return interval;
}

/* Dependent samples carry less information than their number suggests. Medians of batches
 * depend less on each other, and a batch of odd size has its median below the true one as often
 * as above it, whatever the distribution: the order-statistic interval of batch medians is
 * still one of the median. */

#define BATCH 5
#define DEPENDENT                                                                                  \
    0.2 /* lag-1 autocorrelation of batch medians above which their interval is unreliable */

static double lag1_of(const double x[], int n)
{
    return dt_stats_series(x, n).lag1;
}

/* Tries longer and longer batches while there are enough of them; false when even the
 * longest are dependent. */
static bool batch_medians(const double x[], int n, double level, double medians[],
                          struct dt_interval *out)
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

static void spread_summary(const double x[], int n, double work[], struct dt_summary *summary)
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
    dt_auto_free double *work = n > 0 ? malloc((size_t)n * sizeof *work) : NULL;
    if (work != NULL) {
        spread_summary(x, n, work, &summary);
        if (summary.series.autocorrelated)
            summary.unreliable = !batch_medians(x, n, level, work, &summary.interval);
    }
    return summary;
}

double dt_stats_log_variance(const struct dt_summary *summary)
{
    double half = 0.5 * log(summary->interval.high / summary->interval.low);
    double error = half / gsl_cdf_ugaussian_Qinv(0.5 * (1 - summary->level));
    return error * error;
}

/* Tukey (1977): mild beyond 1.5 interquartile ranges of the quartiles, severe beyond 3; severe ones
 * do not count as mild. */
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
    dt_auto_free double *sorted = n >= DT_SERIES_LEAST ? dt_sorted(x, n) : NULL;
    dt_auto_free double *rank = sorted != NULL ? malloc((size_t)n * sizeof *rank) : NULL;
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
    return series;
}

/* MSER (White 1997): leave out the first d samples that make the squared standard error of the mean
 * of the rest the smallest, sum of (x - mean)^2 over (n - d)^2. A late spike would move d past
 * itself, so samples are first clipped at three standard deviations (by the median absolute
 * deviation) around the median of the second half. A clipped slow start still lies far off for many
 * samples, and is cut off nevertheless. */

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

/* Runs from the end to the front by Welford's recurrence (1962); takes the earlier of equals.
 * *early is the best of the first half. */
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

/* After a cut the test is stricter, with one false alarm in ten: a decay that outlasts the cut
 * leaves only a weak trend. */
static bool has_trend(const double x[], int n, bool cut)
{
    double limit = cut ? gsl_cdf_ugaussian_Qinv(CUT_ALARMS / 2) : dt_threshold(DT_TEST_TREND, n);
    return fabs(dt_trend_z(x, n)) > limit;
}

/* The least error of many is small by chance, too: in quiet series of ten samples the cut would
 * leave seven, whose interval holds the median in 89 of 100 instead of 98. So the samples cut off
 * must differ from the rest by a rank-sum test. */
static bool lag_differs(const double x[], int n, int d)
{
    dt_auto_free double *sorted = dt_sorted(x, n), *rank = malloc((size_t)n * sizeof *rank);
    double z = 0;
    if (sorted != NULL && rank != NULL) {
        double mean = (n + 1) / 2.0, sum = 0;
        dt_midranks(x, n, sorted, rank);
        double variance = gsl_stats_variance_m(rank, 1, (size_t)n, mean);
        for (int i = 0; i < d; i++)
            sum += rank[i] - mean;
        z = variance > 0 && d > 0 ? fabs(sum) / sqrt(variance * d * (n - d) / n) : 0;
    }
    return z >= DIFFERS;
}

/* A few quiet samples at the end are often chance: a minimum in the last half counts only when the
 * rank tests reject the series, too; otherwise one in four quiet series would be refused. */
bool dt_stats_steady(const double x[], int n, int *start)
{
    *start = 0;
    if (n < DT_SERIES_LEAST)
        return true;
    dt_auto_free double *kept = malloc((size_t)n * sizeof *kept),
                        *work = malloc((size_t)n * sizeof *work);
    bool steady = false;
    if (kept != NULL && work != NULL) {
        draw_in(x, n, kept, work);
        int early, best = best_truncation(kept, n, &early);
        early = lag_differs(x, n, early) ? early : 0;
        struct dt_series whole = dt_stats_series(x, n);
        steady = !(best > n / 2 && (whole.drifting || whole.stepped)) &&
                 !has_trend(x + early, n - early, early > 0);
        if (steady)
            *start = early;
    }
    return steady;
}

/* The dip: the largest distance between the empirical distribution and the nearest unimodal one. A
 * unimodal distribution is convex before its mode and concave after it. The interval that holds the
 * mode is narrowed between the greatest convex minorant and the least concave majorant of what lies
 * inside, until their distance is at most the misfit already found outside (Hartigan, Hartigan,
 * Annals of Statistics 13, 1985). Heights are in samples. */

/* For the distinct values in ascending order: samples below and up to each, and
 * the two hulls there. */
struct steps {
    int n;
    double *value, *below, *upto, *minorant, *majorant;
    int *vertex; /* vertices of the current hull */
};

/* Vertices of the convex (side 1) or concave (side -1) hull of (value, height) over low..high;
 * returns their number. */
static int hull_vertices(const struct steps *steps, const double height[], int low, int high,
                         int side)
{
    const double *x = steps->value;
    int n = 0;
    for (int i = low; i <= high; i++) {
        for (; n > 1; n--) {
            int a = steps->vertex[n - 2], b = steps->vertex[n - 1];
            double turn =
                (height[b] - height[a]) * (x[i] - x[b]) - (height[i] - height[b]) * (x[b] - x[a]);
            if (side * turn < 0)
                break;
        }
        steps->vertex[n++] = i;
    }
    return n;
}

/* Height of the hull at every value; returns its number of vertices. */
static int draw_hull(const struct steps *steps, int low, int high, int side, double hull[])
{
    const double *x = steps->value, *height = side > 0 ? steps->below : steps->upto;
    int n = hull_vertices(steps, height, low, high, side);
    for (int piece = 0; piece + 1 < n; piece++) {
        int a = steps->vertex[piece], b = steps->vertex[piece + 1];
        for (int i = a; i <= b; i++)
            hull[i] = height[a] + (height[b] - height[a]) * (x[i] - x[a]) / (x[b] - x[a]);
    }
    if (n == 1)
        hull[low] = height[low];
    return n;
}

static int vertex_before(const struct steps *steps, int n, int at)
{
    int found = steps->vertex[0];
    for (int k = 0; k < n && steps->vertex[k] <= at; k++)
        found = steps->vertex[k];
    return found;
}

static int vertex_after(const struct steps *steps, int n, int at)
{
    int k = 0;
    while (k + 1 < n && steps->vertex[k] < at)
        k++;
    return steps->vertex[k];
}

static int widest_gap(const struct steps *steps, int low, int high, double *distance)
{
    int at = low;
    for (int i = low; i <= high; i++)
        if (steps->majorant[i] - steps->minorant[i] > steps->majorant[at] - steps->minorant[at])
            at = i;
    *distance = steps->majorant[at] - steps->minorant[at];
    return at;
}

/* Twice the dip, in samples. The inner interval includes its ends: a step at the
 * mode adds no misfit. */
static double narrowest_width(const struct steps *steps)
{
    int low = 0, high = steps->n - 1;
    for (double twice = 1;;) {
        double distance;
        draw_hull(steps, low, high, 1, steps->minorant);
        int n = draw_hull(steps, low, high, -1, steps->majorant);
        int at = widest_gap(steps, low, high, &distance);
        int right = vertex_after(steps, n, at);
        n = hull_vertices(steps, steps->below, low, high, 1);
        int left = vertex_before(steps, n, at);
        if (distance <= twice)
            return twice;
        for (int i = low; i < left; i++)
            twice = fmax(twice, steps->upto[i] - steps->minorant[i]);
        for (int i = high; i > right; i--)
            twice = fmax(twice, steps->majorant[i] - steps->below[i]);
        if (left == low && right == high)
            return twice;
        low = left;
        high = right;
    }
}

double dt_dip(const double sorted[], int n)
{
    size_t room = n > 0 ? (size_t)n : 1;
    double *memory = n >= DT_SERIES_LEAST ? malloc(5 * room * sizeof *memory) : NULL;
    int *vertex = malloc(room * sizeof *vertex);
    double result = NAN;
    if (memory != NULL && vertex != NULL) {
        struct steps steps = {.value = memory,
                              .below = memory + room,
                              .upto = memory + 2 * room,
                              .minorant = memory + 3 * room,
                              .majorant = memory + 4 * room,
                              .vertex = vertex};
        for (int i = 0; i < n; i++) {
            if (i == 0 || sorted[i] > sorted[i - 1]) {
                steps.value[steps.n] = sorted[i];
                steps.below[steps.n++] = i;
            }
            steps.upto[steps.n - 1] = i + 1;
        }
        result = steps.n > 1 ? narrowest_width(&steps) / (2 * sqrt(n)) : 0;
    }
    free(memory);
    free(vertex);
    return result;
}
