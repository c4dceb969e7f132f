/* SPDX-License-Identifier: MIT */
/* cloud - points for the models of the search to stand on. Include after cmocka.h:
 * everything here asserts. */
#ifndef DT_TESTS_SEARCH_CLOUD_H
#define DT_TESTS_SEARCH_CLOUD_H

#include "base/rng.h"
#include "search/bayes/process.h"

#include <stdlib.h>

/* count points: numbers in [0, 1] in all dimensions but the last, which has three labels. Of four,
 * the second and the third are one axis. */
static inline struct dt_cloud make_cloud(int dims, int count, uint64_t seed)
{
    struct dt_cloud cloud = {.dims = dims, .count = count, .room = (size_t)count + 3};
    struct dt_rng rng = dt_rng_at(seed, "cloud");
    cloud.x = calloc(cloud.room * (size_t)dims, sizeof *cloud.x);
    assert_non_null(cloud.x);
    for (int d = 0; d < dims; d++)
        for (int i = 0; i < count; i++)
            cloud.x[(size_t)d * cloud.room + (size_t)i] = dims > 1 && d == dims - 1
                                                              ? (float)dt_rng_below(&rng, 3)
                                                              : (float)dt_rng_uniform(&rng);
    cloud.label[dims - 1] = dims > 1;
    cloud.joined[2] = dims > 3;
    return cloud;
}

/* Prior values: normal numbers. */
static inline void believe(struct dt_cloud *cloud, uint64_t seed)
{
    struct dt_rng rng = dt_rng_at(seed, "belief");
    cloud->belief = calloc(cloud->room, sizeof *cloud->belief);
    assert_non_null(cloud->belief);
    for (int i = 0; i < cloud->count; i++)
        cloud->belief[i] = (float)dt_rng_normal(&rng);
}

static inline void free_cloud(struct dt_cloud *cloud)
{
    free(cloud->x);
    free(cloud->belief);
}

#endif
