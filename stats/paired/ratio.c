/* SPDX-License-Identifier: MIT */
#include "stats/stats.h"

#include <math.h>

struct dt_ratio dt_stats_ratio(const double log_ratio[], int n, double level)
{
    struct dt_interval interval = dt_stats_median_interval(log_ratio, n, level);
    return (struct dt_ratio){.pairs = n > 0 ? n : 0,
                             .ratio = exp(dt_stats_median(log_ratio, n)),
                             .interval = {exp(interval.low), exp(interval.high)},
                             .spread = NAN};
}
