/* SPDX-License-Identifier: MIT */
/* design - candidates to try before there is a model */
#ifndef DT_SEARCH_BAYES_POINTS_DESIGN_H
#define DT_SEARCH_BAYES_POINTS_DESIGN_H

#include "base/rng.h"
#include "base/status.h"
#include "search/bayes/points/candidates.h"

/* Distances for a design: lengths are the standard deviations of the coordinates over the candidates, twice that for
 * exponents of two, so that every axis has equal weight. */
struct dt_kernel dt_design_kernel(const struct dt_candidates *candidates);

/* The candidate nearest to the centre while none was seen; then, of `draws` uniform unseen ones, the one with the
 * greatest distance to the nearest seen one (maximin; Johnson, Moore, Ylvisaker 1990). -1: all were seen. */
int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng);

#endif
