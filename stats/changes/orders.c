/* SPDX-License-Identifier: MIT */
/* Permutation tests: exact for exchangeable points at any length, ties and heavy tails included, where asymptotic ones
 * are off for ten points. The split is the usual CUSUM contrast; the arc, which detects a step up and down again, is
 * that of circular binary segmentation (Olshen, Venkatraman, Lucito, Wigler 2004). A test ends early when its result
 * can no longer be rare (Besag, Clifford 1991). */
#include "stats/changes/changes_int.h"

#include "base/rng.h"
#include "stats/stats.h"

#include <math.h>

enum { ORDERS = 4999, GRID = 128 /* positions at which an arc may end */ };

double dt_split(const struct dt_order *order, int *at)
{
    double n = order->n, mean = dt_stats_mean(order->x, order->n), sum = 0, most = -1;
    for (int k = 1; k <= order->n - DT_CHANGES_STRETCH; k++) {
        sum += order->x[k - 1] - mean;
        double z = sum * sum * n / ((double)k * (n - k));
        if (k >= DT_CHANGES_STRETCH && z > most) {
            most = z;
            if (at != NULL)
                *at = k;
        }
    }
    return most;
}

double dt_arc(const struct dt_order *order, int *from, int *to)
{
    double sums[GRID + 1] = {0}, n = order->n, most = -1;
    double mean = dt_stats_mean(order->x, order->n);
    int block = (order->n + GRID - 1) / GRID, blocks = order->n / block;
    for (int b = 0; b < blocks; b++) {
        sums[b + 1] = sums[b];
        for (int i = b * block; i < (b + 1) * block; i++)
            sums[b + 1] += order->x[i] - mean;
    }
    for (int i = 0; i < blocks; i++)
        for (int j = i + 1; j <= blocks; j++) {
            int inside = (j - i) * block;
            if (inside < DT_CHANGES_STRETCH || order->n - inside < DT_CHANGES_STRETCH)
                continue;
            double sum = sums[j] - sums[i], z = sum * sum * n / (inside * (n - inside));
            if (z > most) {
                most = z;
                if (from != NULL)
                    *from = i * block, *to = j * block;
            }
        }
    return most;
}

static int part_begin(const struct dt_order *order, int part)
{
    return part == 0 ? 0 : part >= order->parts ? order->n : order->cuts[part - 1];
}

double dt_slopes(const struct dt_order *order)
{
    double sum = 0;
    for (int part = 0; part < order->parts; part++) {
        int from = part_begin(order, part), to = part_begin(order, part + 1);
        for (int i = from; i < to; i++)
            sum += (i - (from + to - 1) / 2.0) * order->x[i];
    }
    return sum;
}

/* Residuals of the points and of each step after a line is subtracted from both. */
double dt_step_beside_line(const struct dt_order *order, int *at)
{
    double n = order->n, spread = n * (n * n - 1) / 12, slope = 0, sum = 0, most = -1;
    double mean = dt_stats_mean(order->x, order->n);
    for (int i = 0; i < order->n; i++)
        slope += (i - (n - 1) / 2) * order->x[i] / spread;
    for (int k = 1; k <= order->n - DT_CHANGES_STRETCH; k++) {
        sum += order->x[k - 1] - mean - slope * (k - 1 - (n - 1) / 2);
        double both = (double)k * (n - k), rest = both / n - both * both / 4 / spread;
        if (k >= DT_CHANGES_STRETCH && rest > 0 && sum * sum / rest > most) {
            most = sum * sum / rest;
            if (at != NULL)
                *at = k;
        }
    }
    return most;
}

static double statistic(const struct dt_order *order, enum dt_change_test test)
{
    switch (test) {
    case DT_CHANGE_SPLIT:
        return dt_split(order, NULL);
    case DT_CHANGE_ARC:
        return dt_arc(order, NULL, NULL);
    case DT_CHANGE_SLOPES:
        return dt_slopes(order);
    default:
        return dt_step_beside_line(order, NULL);
    }
}

/* Durstenfeld (1964). */
static void shuffle(const struct dt_order *order, struct dt_rng *rng)
{
    double *x = order->shuffled;
    for (int part = 0; part < order->parts; part++) {
        int from = part_begin(order, part);
        for (int i = part_begin(order, part + 1) - 1; i > from; i--) {
            int k = from + (int)dt_rng_below(rng, (uint64_t)(i - from) + 1);
            double drawn = x[k];
            x[k] = x[i];
            x[i] = drawn;
        }
    }
}

bool dt_order_rare(const struct dt_order *order, enum dt_change_test test, double alpha)
{
    struct dt_rng rng = dt_rng_at(1, "changes");
    double seen = statistic(order, test) * (1 - 1e-9); /* equal values may differ by rounding */
    int count = 1, most = (int)(alpha * (ORDERS + 1) + 0.5);
    struct dt_order drawn = *order;
    if (!(seen > 0))
        return false;
    for (int i = 0; i < order->n; i++)
        order->shuffled[i] = order->x[i];
    drawn.x = order->shuffled;
    for (int i = 0; i < ORDERS && count <= most; i++) {
        shuffle(order, &rng);
        count += statistic(&drawn, test) >= seen;
    }
    return count <= most;
}
