/* SPDX-License-Identifier: MIT */
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double dt_stats_over_ranks(const long long ns[], int steps, int ranks, double out[], int last[])
{
    double *skew = steps > 0 ? malloc((size_t)steps * sizeof *skew) : NULL;
    if (last != NULL && ranks > 0)
        memset(last, 0, (size_t)ranks * sizeof *last);
    for (int step = 0; step < steps && ranks > 0; step++) {
        const long long *row = ns + (size_t)step * (size_t)ranks;
        int first = 0, slowest = 0;
        for (int rank = 1; rank < ranks; rank++) {
            first = row[rank] < row[first] ? rank : first;
            slowest = row[rank] > row[slowest] ? rank : slowest;
        }
        out[step] = (double)row[slowest] * 1e-9;
        if (last != NULL)
            last[slowest]++;
        if (skew != NULL)
            skew[step] = (double)(row[slowest] - row[first]) * 1e-9;
    }
    double median = skew != NULL && ranks > 0 ? dt_stats_median(skew, steps) : NAN;
    free(skew);
    return median;
}
