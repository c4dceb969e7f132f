/* SPDX-License-Identifier: MIT */
#include "stats/stats.h"

/* The step-down form of the paper: the smallest remaining p is compared with alpha over the number of remaining
 * hypotheses, until one is not rejected. A hypothesis whose p is NAN is never rejected, but counts. */
void dt_stats_holm(const double p[], int n, double alpha, bool rejects[])
{
    for (int i = 0; i < n; i++)
        rejects[i] = false;
    for (int left = n; left > 0; left--) {
        int least = -1;
        for (int i = 0; i < n; i++)
            if (!rejects[i] && (least < 0 || !(p[i] >= p[least])) && p[i] >= 0)
                least = i;
        if (least < 0 || p[least] > alpha / left)
            return;
        rejects[least] = true;
    }
}
