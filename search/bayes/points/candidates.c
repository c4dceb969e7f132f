/* SPDX-License-Identifier: MIT */
#include "search/bayes/points/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    POOL = 20000, /* draws */
    MORE = 4096,  /* room for points told but not drawn, and for neighbours of the best */
    AROUND = 512, /* neighbours of one point */
    TESTS =
        /* limit of points tested for the draws of a pool, where not every draw is feasible */
    500000
};

/* Number of draws within that limit. */
static int affordable(const struct dt_space *space, int draws)
{
    return (int)fmin(draws, fmax(64, TESTS / dt_space_tries(space)));
}

static void place(struct dt_candidates *candidates, int k)
{
    struct dt_point point;
    dt_candidates_at(candidates, k, &point);
    dt_encoding_at(&candidates->encoding, &point, candidates->cloud.x + k, candidates->cloud.room);
}

static dt_status allocate(struct dt_candidates *candidates, size_t room)
{
    struct dt_cloud *cloud = &candidates->cloud;
    cloud->dims = candidates->encoding.dims;
    cloud->room = room;
    memcpy(cloud->label, candidates->encoding.label, sizeof cloud->label);
    memcpy(cloud->joined, candidates->encoding.exponent, sizeof cloud->joined);
    cloud->x = calloc(room * (size_t)cloud->dims + 1, sizeof *cloud->x);
    candidates->seen = calloc(room + 1, sizeof *candidates->seen);
    if (!candidates->whole)
        candidates->points = calloc(room + 1, sizeof *candidates->points);
    if (cloud->x == NULL || candidates->seen == NULL ||
        (!candidates->whole && candidates->points == NULL))
        return dt_fail(DT_ENOMEM, "out of memory for %zu candidates", room);
    return DT_OK;
}

/* Fills the pool with uniform draws, which may contain duplicates. */
static void fill_pool(struct dt_candidates *candidates, int count, struct dt_rng *rng)
{
    for (int k = 0; k < count; k++) {
        dt_space_draw(candidates->space, rng, &candidates->points[k]);
        place(candidates, k);
    }
    candidates->cloud.count = count;
}

/* Stores the point in the next unseen slot from k on; returns the slot after it. */
static int replace(struct dt_candidates *candidates, int k, const struct dt_point *point)
{
    while (k < candidates->cloud.count && candidates->seen[k])
        k++;
    if (k == candidates->cloud.count)
        return k;
    candidates->points[k] = *point;
    place(candidates, k);
    return k + 1;
}

void dt_candidates_renew(struct dt_candidates *candidates, const struct dt_point centres[], int n,
                         struct dt_rng *rng)
{
    struct dt_point around[AROUND], point;
    int k = 0;
    for (int c = 0; c < n && !candidates->whole; c++) {
        int found =
            dt_space_neighbours(candidates->space, &centres[c], DT_EXCHANGE, around, AROUND);
        for (int i = 0; i < found && i < AROUND && k < candidates->cloud.count / 4; i++)
            if (dt_candidates_find(candidates, &around[i]) < 0)
                k = replace(candidates, k, &around[i]);
    }
    int draws = affordable(candidates->space, candidates->cloud.count);
    for (int i = 0; !candidates->whole && k < candidates->cloud.count && i < draws; i++) {
        dt_space_draw(candidates->space, rng, &point);
        k = replace(candidates, k, &point);
    }
}

void dt_candidates_surround(struct dt_candidates *candidates, const struct dt_point *point)
{
    struct dt_point around[AROUND];
    const struct dt_cloud *cloud = &candidates->cloud;
    if (candidates->whole)
        return;
    int found = dt_space_neighbours(candidates->space, point, DT_EXCHANGE, around, AROUND);
    for (int i = 0; i < found && i < AROUND && (size_t)cloud->count + MORE / 2 < cloud->room; i++)
        (void)dt_candidates_add(candidates, &around[i]);
}

dt_status dt_candidates_init(struct dt_candidates *candidates, const struct dt_space *space,
                             int most, struct dt_rng *rng)
{
    bool whole = dt_space_listed(space) && dt_space_count(space) <= most;
    int count = whole ? (int)dt_space_count(space) : affordable(space, most < POOL ? most : POOL);
    *candidates = (struct dt_candidates){.space = space, .whole = whole};
    DT_TRY(dt_encoding_init(&candidates->encoding, space));
    dt_status status = allocate(candidates, (size_t)(whole ? count : count + MORE));
    if (status < 0) {
        dt_candidates_fini(candidates);
        return status;
    }
    if (!whole) {
        fill_pool(candidates, count, rng);
        return DT_OK;
    }
    candidates->cloud.count = count;
    for (int k = 0; k < count; k++)
        place(candidates, k);
    return DT_OK;
}

int dt_candidates_add(struct dt_candidates *candidates, const struct dt_point *point)
{
    int k = dt_candidates_find(candidates, point);
    if (k >= 0 || candidates->whole || (size_t)candidates->cloud.count == candidates->cloud.room)
        return k;
    k = candidates->cloud.count++;
    candidates->points[k] = *point;
    place(candidates, k);
    return k;
}

void dt_candidates_fini(struct dt_candidates *candidates)
{
    dt_encoding_fini(&candidates->encoding);
    free(candidates->cloud.x);
    free(candidates->cloud.belief);
    free(candidates->seen);
    free(candidates->points);
    *candidates = (struct dt_candidates){0};
}

void dt_candidates_at(const struct dt_candidates *candidates, int k, struct dt_point *point)
{
    if (candidates->whole)
        dt_space_at(candidates->space, k, point);
    else
        *point = candidates->points[k];
}

int dt_candidates_find(const struct dt_candidates *candidates, const struct dt_point *point)
{
    if (candidates->whole)
        return (int)dt_space_index(candidates->space, point);
    for (int k = 0; k < candidates->cloud.count; k++)
        if (dt_point_equal(candidates->space, point, &candidates->points[k]))
            return k;
    return -1;
}
