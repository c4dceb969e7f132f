/* SPDX-License-Identifier: MIT */
/* One-sided test that differences of pairs are above zero: exact signed ranks. */
#include "stats/stats_int.h"

#include <math.h>
#include <stdlib.h>

/* Probability that the sum of the ranks with positive sign is at least `sum` when signs are random. Ranks and sum are
 * doubled, so that midranks are integers. chance has room for total + 1. */
static double toss(const double twice[], int n, int total, int sum, double chance[])
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
    double *size = calloc(2 * (size_t)n + 1, sizeof *size), *rank = size != NULL ? size + n : NULL;
    int m = 0, sum = 0;
    for (int i = 0; i < n && size != NULL; i++)
        if (difference[i] != 0)
            size[m++] = fabs(difference[i]);
    int total = m * (m + 1);
    double *sorted = dt_sorted(size, m), *chance = calloc((size_t)total + 1, sizeof *chance);
    double p = size == NULL || chance == NULL ? NAN : 1;
    if (sorted != NULL && rank != NULL && chance != NULL) {
        dt_midranks(size, m, sorted, rank);
        for (int i = 0, k = 0; i < n; i++) {
            if (difference[i] == 0)
                continue;
            rank[k] *= 2;
            sum += difference[i] > 0 ? (int)rank[k] : 0;
            k++;
        }
        p = toss(rank, m, total, sum, chance);
    }
    free(sorted);
    free(chance);
    free(size);
    return p;
}
