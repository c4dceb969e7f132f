/* SPDX-License-Identifier: MIT */
#include "search/bayes/design.h"

#include <math.h>

/* The nearest seen candidate's squared distance. */
static double nearest(const struct dt_candidates *candidates, const struct dt_kernel *kernel, int k)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    double least = INFINITY;
    for (int i = 0; i < cloud->count; i++) {
        if (!candidates->seen[i])
            continue;
        double r2 = 0;
        for (int d = 0; d < cloud->dims; d++) {
            const float *x = cloud->x + (size_t)d * cloud->room;
            r2 += dt_kernel_square(cloud, kernel, d, (double)x[i] - (double)x[k]);
        }
        least = fmin(least, r2);
    }
    return least;
}

/* A uniform one that was not seen: by chance, then, when few are left, by counting. */
static int draw(const struct dt_candidates *candidates, struct dt_rng *rng)
{
    const int count = candidates->cloud.count;
    for (int i = 0; i < 32; i++) {
        int k = (int)dt_rng_below(rng, (uint64_t)count);
        if (!candidates->seen[k])
            return k;
    }
    int left = 0;
    for (int k = 0; k < count; k++)
        left += !candidates->seen[k];
    if (left == 0)
        return -1;
    int chosen = (int)dt_rng_below(rng, (uint64_t)left);
    for (int k = 0;; k++)
        if (!candidates->seen[k] && chosen-- == 0)
            return k;
}

int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng)
{
    int best = -1;
    double most = -1;
    for (int i = 0; i < draws; i++) {
        int k = draw(candidates, rng);
        double distance = k < 0 || draws == 1 ? 0 : nearest(candidates, kernel, k);
        if (k >= 0 && distance > most) {
            best = k;
            most = distance;
        }
    }
    return best;
}
