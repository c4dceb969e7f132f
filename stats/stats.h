/* SPDX-License-Identifier: MIT */
/* stats - estimates, intervals, tests and diagnostics of samples
 *
 * Times are positive doubles (seconds). Nothing here reorders or keeps its input; results are plain
 * values. Intervals of a median are exact order-statistic (binomial) intervals: distribution-free,
 * no resampling. When memory runs out a result is NAN, as for too few samples.
 * docs/measuring-appendix.md explains the use of each number and its source.
 */
#ifndef DT_STATS_STATS_H
#define DT_STATS_STATS_H

#include "base/status.h"

#include <stdbool.h>

struct dt_interval {
    double low, high; /* NAN when the sample is too small for the level */
};

double dt_stats_median(const double x[], int n);             /* NAN for n = 0 */
double dt_stats_quantile(const double x[], int n, double f); /* type 7 */
double dt_stats_mean(const double x[], int n);

/* Ranks (1-based, lower <= upper) of the order statistics that bracket the median with at least
 * `level`; false when n is too small (n < 6 at 95 %). */
bool dt_stats_median_ranks(int n, double level, int *lower, int *upper);
struct dt_interval dt_stats_median_interval(const double x[], int n, double level);

/* Intervals of a mean, by Student's t, and of a share of k in n, conservative
 * (Clopper, Pearson 1934). */
struct dt_interval dt_stats_mean_interval(const double x[], int n, double level);
struct dt_interval dt_stats_share_interval(int k, int n, double level);

/* Looks at 8, 16, 32, 64 samples; the two-sided alpha spent at each is .008 .010 .012
 * .020 (total below 5 %). */
#define DT_LOOKS 4
extern const int dt_look_samples[DT_LOOKS];
extern const double dt_look_alpha[DT_LOOKS];
int dt_stats_look(int n); /* the look reached by n samples: 0..3, or -1 below 8 */
/* The level of an interval of n samples: between two looks, the unspent alpha of the next one. */
double dt_stats_look_level(int n);

/* Steady state by MSER truncation (White 1997) with a trend test of the rest: *start is the first
 * steady sample, at most n / 2; false ("no steady state", *start = 0) when the minimum lies in the
 * last half of a series that drifts or steps, or the rest still drifts. Fewer than 4 samples are
 * too few to test, and count as steady. */
bool dt_stats_steady(const double x[], int n, int *start);

/* Series diagnostics: each flag is raised at most once in a hundred series of independent samples,
 * with any continuous distribution (bimodal: any unimodal one); never below 8 samples. Tukey's
 * fences for outliers (labelled, never dropped). */
struct dt_series {
    double lag1;    /* lag-1 autocorrelation of the ranks */
    double trend_z; /* Mann-Kendall */
    double split;   /* the largest |z| of a rank sum test over all cuts in two parts */
    bool autocorrelated, drifting, stepped, bimodal;
    int outliers_mild, outliers_severe; /* beyond 1.5 and 3 interquartile ranges */
};
struct dt_series dt_stats_series(const double x[], int n);

struct dt_summary {
    int n;
    double median, mean, min, max, mad; /* mad: median absolute deviation x 1.4826 */
    struct dt_interval interval;        /* for the median at `level`; batched when autocorrelated */
    double level;
    bool unreliable; /* autocorrelated still after batching, or too few samples for batches */
    struct dt_series series;
};
struct dt_summary dt_stats_summary(const double x[], int n, double level);

/* Variance of the logarithm of the median, computed as if the interval were a normal one's. NAN
 * without an interval. */
double dt_stats_log_variance(const struct dt_summary *summary);

/* A plan measured in n fresh processes, each represented by its median: the interval is Student's t
 * over the log medians, so it holds for the next process, too. NAN for one process. */
struct dt_processes {
    int n;
    double median; /* median of the medians */
    struct dt_interval interval;
    double level;
};
struct dt_processes dt_stats_processes(const double medians[], int n, double level);

struct dt_ratio {
    int pairs;
    int sets;     /* sets of fresh processes in the pairs */
    double ratio; /* below 1: b is faster */
    struct dt_interval interval;
    double spread; /* standard deviation of the sets' log ratios; NAN below two sets */
};

/* Paired comparison, log_ratio[i] = log(b_i / a_i) of pair i, over several sets of fresh processes:
 * set s has the next pairs[s] log ratios. Ratio is exp of the mean over the sets of their medians;
 * interval by Student's t over the sets, so it holds for the next start, too; NAN below two sets.
 * Sets without pairs are left out. */
#define DT_SETS_LEAST 4  /* fewer are never enough for a decision */
#define DT_SETS_USUAL 16 /* most of a session, and of a check without --until-decided */
#define DT_SETS_MOST  32
struct dt_ratio dt_stats_set_ratio(const double log_ratio[], const int pairs[], int sets,
                                   double level);

/* Looks at 4, 6, 8, 12 and 16 sets; the two-sided alpha spent at each adds up to 5 %. Two more, at
 * 24 and 32, spend another 1 %. */
#define DT_SET_LOOKS 7
extern const int dt_set_looks[DT_SET_LOOKS];
extern const double dt_set_alpha[DT_SET_LOOKS];
int dt_stats_set_look(int sets); /* the look reached: 0..6, or -1 below 4 sets */
double dt_stats_set_level(
    int sets); /* alpha for intervals of `sets` sets: between two looks, that of the next look */

/* Number of sets at whose look the true log ratio would be significant with this spread; 0:
 * DT_SETS_USUAL are not enough. */
int dt_stats_sets_needed(double log_ratio, double spread);

/* One-sided p: probability under the null hypothesis that differences of pairs are this far above 0
 * (Wilcoxon 1945; exact, midranks for ties, zeros left out; 1 when only zeros remain). */
double dt_stats_signed_rank(const double difference[], int n);

/* One kind of work in a mix: its part of all work by number, seconds with the default, and how many
 * times as fast the tuned plan is. */
struct dt_mix_part {
    double share, seconds; /* above 0 */
    double gain;
    struct dt_interval interval; /* the gain's; {1, 1} where the default stays */
};
/* How many times as fast the mix is: sum(share seconds) / sum(share seconds / gain).
 * Intervals of the parts are taken as independent: distances to their ends on the log scale,
 * each by the part's share of the tuned time, are added in quadrature (first-order
 * propagation of errors). NAN without parts. */
struct dt_mix {
    double seconds, tuned; /* seconds of one piece of work of the mix */
    double gain;
    struct dt_interval interval;
};
struct dt_mix dt_stats_mix(const struct dt_mix_part parts[], int n);

/* The rank of the longest time, the lowest among equals. */
int dt_stats_slowest(const long long row[], int ranks);

/* Slowest rank of each step: ns[step * ranks + rank] -> out[step] seconds, of several replicas,
 * which are equal parts of the ranks, the harmonic mean over them; last[rank] counts the steps in
 * which that rank was last (the lowest rank among equals; last may be NULL). Returns the median
 * skew (max - min) in seconds. */
double dt_stats_over_ranks(const long long ns[], int steps, int ranks, int replicas, double out[],
                           int last[]);

#endif
