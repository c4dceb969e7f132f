/* SPDX-License-Identifier: MIT */
/* With sets s, copies c and visits k of them, y = start_s + residency_sc + visit_sck. Mean squares between sets, between the
 * copies of a set and within copies have the expectations
 *
 *     within  = v          copies = v + n r          sets = v + n r + 2 n t
 *
 * of the variances v of visits, r of residencies and t of starts, for n visits a copy (its mean where they differ). */
#include "tuner/measure/compare/levels.h"

#include <math.h>

struct sums {
    int sets, visits;
    double within, copies; /* sums of squares */
    double means[DT_SETS_MOST];
};

/* Mean of the logarithms of the rounds first to last; how many there are; adds their squares about it. */
static double mean_of(const double visits[], int first, int last, int *n, double *squares)
{
    double sum = 0, mean;
    *n = 0;
    for (int k = first; k < last; k++)
        if (isfinite(visits[k])) {
            sum += log(visits[k]);
            ++*n;
        }
    mean = sum / *n;
    for (int k = first; k < last; k++)
        if (isfinite(visits[k]))
            *squares += (log(visits[k]) - mean) * (log(visits[k]) - mean);
    return mean;
}

static void add_set(const struct dt_entrant copies[2], int first, int last, struct sums *sums)
{
    double means[2], within = 0;
    int n[2];
    for (int c = 0; c < 2; c++)
        means[c] = mean_of(copies[c].visits, first, last, &n[c], &within);
    if (n[0] < 2 || n[1] < 2)
        return;
    sums->within += within;
    sums->visits += n[0] + n[1];
    sums->copies += (means[0] - means[1]) * (means[0] - means[1]) / 2;
    sums->means[sums->sets++] = (means[0] + means[1]) / 2;
}

struct dt_levels dt_levels(const struct dt_entrant copies[2], const struct dt_sets *sets)
{
    struct sums sums = {0};
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++])
        add_set(copies, first, first + sets->rounds[s], &sums);
    struct dt_levels levels = {.sets = sums.sets, .visit = NAN, .residency = NAN, .start = NAN};
    if (sums.sets < 2)
        return levels;
    double n = (double)sums.visits / (2 * sums.sets), all = dt_stats_mean(sums.means, sums.sets);
    double visit = sums.within / (sums.visits - 2 * sums.sets);
    double copy = sums.copies / sums.sets; /* variance of a residency's mean: r + v / n */
    double set = 0;                        /* variance of a set's mean: t + (r + v / n) / 2 */
    for (int s = 0; s < sums.sets; s++)
        set += (sums.means[s] - all) * (sums.means[s] - all) / (sums.sets - 1);
    levels.visit = sqrt(visit);
    levels.residency = sqrt(fmax(0, copy - visit / n));
    levels.start = sqrt(fmax(0, set - copy / 2));
    return levels;
}
