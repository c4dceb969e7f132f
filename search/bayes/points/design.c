/* SPDX-License-Identifier: MIT */
#include "search/bayes/points/design.h"

#include <math.h>

#define ALIKE 1e-3 /* squared distances in standard deviations */

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

/* A uniform unseen candidate: by rejection, or by counting when few are left. */
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

/* Mean of a coordinate over the candidates, and its standard deviation. */
static double middle(const struct dt_cloud *cloud, int d, double *deviation)
{
    const float *x = cloud->x + (size_t)d * cloud->room;
    double sum = 0, squares = 0;
    for (int i = 0; i < cloud->count; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    double mean = sum / cloud->count;
    *deviation = sqrt(fmax(squares / cloud->count - mean * mean, 0));
    return mean;
}

struct dt_kernel dt_design_kernel(const struct dt_candidates *candidates)
{
    struct dt_kernel kernel = {.signal = 1};
    for (int d = 0; d < candidates->cloud.dims; d++) {
        (void)middle(&candidates->cloud, d, &kernel.length[d]);
        if (!(kernel.length[d] > 0) || candidates->cloud.label[d])
            kernel.length[d] = 1;
        if (candidates->encoding.exponent[d])
            kernel.length[d] *= 2;
    }
    return kernel;
}

/* A random one among those equally central within ALIKE: an axis of two values has no middle. */
static int central(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   struct dt_rng *rng)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    double mean[DT_DIMS_MAX] = {0}, deviation, least = INFINITY;
    int best = 0;
    for (int d = 0; d < cloud->dims; d++)
        mean[d] = middle(cloud, d, &deviation);
    for (int k = 0; k < cloud->count; k++) {
        double r2 = ALIKE * dt_rng_uniform(rng);
        for (int d = 0; d < cloud->dims; d++)
            if (!cloud->label[d])
                r2 += dt_kernel_square(cloud, kernel, d,
                                       (double)cloud->x[(size_t)d * cloud->room + (size_t)k] -
                                           mean[d]);
        if (r2 < least) {
            least = r2;
            best = k;
        }
    }
    return best;
}

int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng)
{
    int best = -1, seen = 0;
    double most = -1;
    for (int k = 0; k < candidates->cloud.count && seen == 0; k++)
        seen += candidates->seen[k];
    if (seen == 0)
        return central(candidates, kernel, rng);
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
