/* SPDX-License-Identifier: MIT */
/* design - which candidates to try before a model has anything to go by */
#ifndef DT_SEARCH_BAYES_DESIGN_H
#define DT_SEARCH_BAYES_DESIGN_H

#include "base/rng.h"
#include "base/status.h"
#include "search/bayes/candidates.h"

/* The next candidate that is far from those seen: of `draws` uniform ones that were not seen, that of the greatest
 * distance to the nearest seen one (maximin; Johnson, Moore, Ylvisaker 1990), with the distances of the kernel. -1: all
 * were seen. */
int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng);

#endif
