/* SPDX-License-Identifier: MIT */
/* Racing (Maron and Moore 1997) with looks at doubling counts. The i-th sample is compared with
 * the incumbent's i-th by signed ranks (Wilcoxon 1945) of the logarithms: noise is proportional
 * to times, an outlier counts as one rank of many, and effects common to both at the same
 * repetition (a settling clock) cancel. Samples that were not taken side by side are pairs like
 * any others; on ten recorded tables the test saves at least as much as Welch's test of the means
 * and loses no best plan. */
#include "search/racing.h"

#include "stats/stats.h"

#include <math.h>

enum { MOST = 64 }; /* samples used by a test: those of the last look */

/* One-sided p of the warm samples, if the plan is no slower than the incumbent. */
static double race_chance(const struct dt_race *race, const double warm[], int n)
{
    double difference[MOST];
    int pairs = n < race->best_count ? n : race->best_count;
    for (int i = 0; i < pairs; i++)
        difference[i] = log(warm[i] / race->best[i]);
    return dt_stats_signed_rank(difference, pairs);
}

/* Plans are ranked by their medians in the end. When a device's clock steps, the pairs may disagree
 * with the medians: both must show it slower. */
static bool is_slower(const struct dt_race *race, const double warm[], int n, double alpha)
{
    return race_chance(race, warm, n) < alpha &&
           dt_stats_median(warm, n) > dt_stats_median(race->best, race->best_count);
}

/* Count of warm samples at the next look. */
static int next_look(int warm, int most)
{
    int next = DT_RACE_WARM;
    for (int look = 0; look < DT_LOOKS && next <= warm; look++)
        next = dt_look_samples[look];
    return next > warm && next < most ? next : most;
}

enum dt_race_next dt_race_look(const struct dt_race *race, const double samples[], int n,
                               int *until)
{
    const double *warm = samples + 1;
    int count = n - 1 < MOST ? n - 1 : MOST, look = dt_stats_look(count);
    bool against = race->best_count > 0 && count >= DT_RACE_WARM;
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        least = fmin(least, warm[i]);
    if (against && least > DT_RACE_HOPELESS * dt_stats_median(race->best, race->best_count))
        return DT_RACE_DROP;
    if (against && look >= 0 && is_slower(race, warm, count, dt_look_alpha[look]))
        return DT_RACE_SLOWER;
    if (n - 1 >= race->most)
        return DT_RACE_ENOUGH;
    *until = 1 + next_look(n - 1 > 0 ? n - 1 : 0, race->most);
    return DT_RACE_MORE;
}
