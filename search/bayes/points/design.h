/* SPDX-License-Identifier: MIT */
/* design - which candidates to try before a model has anything to go by */
#ifndef DT_SEARCH_BAYES_POINTS_DESIGN_H
#define DT_SEARCH_BAYES_POINTS_DESIGN_H

#include "base/rng.h"
#include "base/status.h"
#include "search/bayes/points/candidates.h"

/* Distances for a design: lengths are the standard deviations of the coordinates over the candidates, twice that for
 * exponents of two, so that every axis counts alike. */
struct dt_kernel dt_design_kernel(const struct dt_candidates *candidates);

/* The candidate nearest to the middle of all while none was seen. Then one far from those seen: of `draws` uniform ones
 * that were not seen, that of the greatest distance to the nearest seen one (maximin; Johnson, Moore, Ylvisaker 1990).
 * -1: all were seen. */
int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng);

#endif
