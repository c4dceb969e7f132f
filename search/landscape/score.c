/* SPDX-License-Identifier: MIT */
/* For M values in ascending order v[0] .. v[M-1], t draws without replacement all miss the first k with probability
 *
 *     S(k) = C(M - k, t) / C(M, t) = S(k - 1) (M - t - k + 1) / (M - k + 1),
 *
 * so the expected best is v[0] + sum over k of (v[k] - v[k - 1]) S(k). No term is negative, so there is no
 * cancellation. */
#include "search/landscape/score.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double expected_best(const double sorted[], int64_t n, int64_t t)
{
    double best = sorted[0], missed = 1;
    for (int64_t k = 1; k < n && missed > 0; k++) {
        missed *= t <= n - k ? (double)(n - t - k + 1) / (double)(n - k + 1) : 0;
        best += (sorted[k] - sorted[k - 1]) * missed;
    }
    return best;
}

dt_status dt_score_random(const double values[], int64_t n, int evals, double expected[])
{
    double *sorted = malloc((size_t)n * sizeof *sorted + 1);
    double slowest = -INFINITY;
    if (sorted == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the score of %lld plans", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (values[k] > slowest)
            slowest = values[k];
    for (int64_t k = 0; k < n; k++)
        sorted[k] = isnan(values[k]) ? slowest : values[k];
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (int t = 1; t <= evals; t++)
        expected[t - 1] = expected_best(sorted, n, t);
    free(sorted);
    return DT_OK;
}

double dt_score_p(const double best[], const double expected[], int evals, double optimum)
{
    double sum = 0;
    int n = 0;
    for (int t = 0; t < evals; t++) {
        double left = expected[t] - optimum;
        if (left <= 1e-12 * fabs(optimum))
            continue;
        sum += (expected[t] - best[t]) / left;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

void dt_score_best(const struct dt_landscape *landscape, const int32_t entries[], int evals,
                   double best[])
{
    double least = landscape->slowest;
    for (int t = 0; t < evals; t++) {
        if (entries[t] >= 0 && landscape->entries[entries[t]].value < least)
            least = landscape->entries[entries[t]].value;
        best[t] = least;
    }
}
