/* SPDX-License-Identifier: MIT */
/* candidates - the points that a model predicts
 *
 * Every feasible point while there are at most `most` of them; else a pool: draws, and
 * neighbours of the best points, both renewed during the search. A point that was asked for or
 * told keeps its slot.
 */
#ifndef DT_SEARCH_BAYES_CANDIDATES_H
#define DT_SEARCH_BAYES_CANDIDATES_H

#include "base/rng.h"
#include "base/status.h"
#include "search/bayes/process.h"
#include "space/space.h"

struct dt_candidates {
    const struct dt_space *space;
    struct dt_cloud cloud; /* cloud.count candidates; exponents of two are joined to the values */
    int axis[DT_DIMS_MAX]; /* axis of each dimension */
    float *coordinate[DT_DIMS_MAX]; /* one for each value of the axis; owned */
    bool whole;                     /* candidate k is the k-th point of the space */
    bool *seen;                     /* [cloud.room] asked for or told */
    struct dt_point *points;        /* [cloud.room]; NULL when whole */
};

/* DT_ENOMEM. */
dt_status dt_candidates_init(struct dt_candidates *candidates, const struct dt_space *space,
                             int most, struct dt_rng *rng) DT_MUST_CHECK;
void dt_candidates_fini(struct dt_candidates *candidates);

void dt_candidates_at(const struct dt_candidates *candidates, int k, struct dt_point *point);

/* Draws the unseen part of a pool anew: up to a quarter are neighbours (one axis another value) of
 * the n centres, the rest uniform. Nothing changes when whole. */
void dt_candidates_renew(struct dt_candidates *candidates, const struct dt_point centres[], int n,
                         struct dt_rng *rng);

/* Adds neighbours of the point to a pool, as many as fit beside the room
 * reserved for points told. */
void dt_candidates_surround(struct dt_candidates *candidates, const struct dt_point *point);

/* candidates_find, after the point was added to a pool that did not have it: cloud.count
 * has grown. -1: no room. */
int dt_candidates_add(struct dt_candidates *candidates, const struct dt_point *point);

/* Distances for a design: lengths are the standard deviations of the coordinates over the
 * candidates, twice that for exponents of two, so that every axis has equal weight. */
struct dt_kernel dt_design_kernel(const struct dt_candidates *candidates);

/* Squared distance of candidate k to the nearest seen one; INFINITY while none was seen. */
double dt_candidates_nearest(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                             int k);

/* The candidate nearest to the centre while none was seen; then, of `draws` uniform unseen ones,
 * the one with the greatest distance to the nearest seen one (maximin; Johnson, Moore, Ylvisaker
 * 1990). -1: all were seen. */
int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng);

#endif
