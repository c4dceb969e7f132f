/* SPDX-License-Identifier: MIT */
/* Position of a step: its posterior for a normal series of unknown levels and variance with a uniform prior (Smith
 * 1975). Points are clipped at 2.5 deviations, so that one outlier does not shift it. The estimate is not the peak (the
 * maximum-likelihood position) but the middle of the seven consecutive positions with the largest total probability: it
 * lies within three points of the truth most often. */
#include "stats/changes/changes_int.h"

#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

#define DRAWN_IN 2.5  /* deviations */
#define NEAR     3    /* points to either side */
#define LEVEL    0.95 /* of the range of positions */

void dt_draw_in(const double x[], const double fit[], int n, double drawn[])
{
    for (int i = 0; i < n; i++)
        drawn[i] = fabs(x[i] - fit[i]);
    double far = DRAWN_IN * 1.4826 * dt_stats_median(drawn, n);
    for (int i = 0; i < n; i++)
        drawn[i] = far > 0 ? fit[i] + fmin(fmax(x[i] - fit[i], -far), far) : x[i];
}

void dt_draw_in_to_median(const double x[], int n, double drawn[])
{
    double median = dt_stats_median(x, n);
    for (int i = 0; i < n; i++)
        drawn[i] = fabs(x[i] - median);
    double far = DRAWN_IN * 1.4826 * dt_stats_median(drawn, n);
    for (int i = 0; i < n; i++)
        drawn[i] = far > 0 ? fmin(fmax(x[i], median - far), median + far) : x[i];
}

/* chance[k] is the probability of a step before point k (they add up to 1); returns the likeliest k. */
static int posterior(const double y[], int n, double chance[])
{
    double mean = dt_stats_mean(y, n), squares = 0, sum = 0, least = INFINITY, all = 0;
    int best = 0;
    for (int i = 0; i < n; i++)
        squares += (y[i] - mean) * (y[i] - mean);
    double floor = squares * 1e-12; /* for exact steps */
    for (int k = 1; k < n; k++) {
        sum += y[k - 1] - mean;
        chance[k] = fmax(squares - sum * sum * n / ((double)k * (n - k)), floor);
        if (k >= DT_CHANGES_STRETCH && k <= n - DT_CHANGES_STRETCH && chance[k] < least) {
            least = chance[k];
            best = k;
        }
    }
    for (int k = 0; k < n; k++) {
        bool allowed = k >= DT_CHANGES_STRETCH && k <= n - DT_CHANGES_STRETCH;
        chance[k] = allowed && least > 0
                        ? pow(least / chance[k], (n - 2) / 2.0) * sqrt(n / ((double)k * (n - k)))
                        : 0;
        all += chance[k];
    }
    for (int k = 0; k < n && all > 0; k++)
        chance[k] /= all;
    return best;
}

static double chance_near(const double chance[], int n, int k, int far)
{
    double sum = 0;
    for (int i = k - far < 0 ? 0 : k - far; i <= k + far && i < n; i++)
        sum += chance[i];
    return sum;
}

/* The smallest range around k with probability LEVEL. */
static void range(const double chance[], int n, int k, int *earliest, int *latest)
{
    double sum = chance[k];
    *earliest = *latest = k;
    while (sum < LEVEL && (*earliest > 0 || *latest < n - 1)) {
        double left = *earliest > 0 ? chance[*earliest - 1] : -1;
        double right = *latest < n - 1 ? chance[*latest + 1] : -1;
        sum += fmax(left, right);
        *earliest -= left >= right;
        *latest += left < right;
    }
}

static void step_at(const double x[], int n, int k, double fit[])
{
    double before = dt_stats_median(x, k), after = dt_stats_median(x + k, n - k);
    for (int i = 0; i < n; i++)
        fit[i] = i < k ? before : after;
}

int dt_place(const double x[], int n, int *earliest, int *latest)
{
    double *room = n >= 2 * DT_CHANGES_STRETCH ? malloc(3 * (size_t)n * sizeof *room) : NULL;
    int k = 0;
    if (room == NULL)
        return 0;
    double *drawn = room, *fit = room + n, *chance = room + 2 * (size_t)n, most = -1;
    dt_draw_in_to_median(x, n, drawn);
    int place = posterior(drawn, n, chance);
    for (int i = 0; i < 2 && place > 0; i++) {
        step_at(x, n, place, fit);
        dt_draw_in(x, fit, n, drawn);
        place = posterior(drawn, n, chance);
    }
    for (int i = 0; i < n && place > 0; i++) {
        /* a sharp step lies in several such windows: its own probability decides */
        double near = chance_near(chance, n, i, NEAR) + 0.02 * chance[i];
        if (chance[i] > 0 && near > most) {
            most = near;
            k = i;
        }
    }
    if (k > 0 && earliest != NULL)
        range(chance, n, k, earliest, latest);
    free(room);
    return k;
}
