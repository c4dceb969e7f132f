/* SPDX-License-Identifier: MIT */
/* seen - the points that were asked for or told: no trial is spent twice */
#ifndef DT_SEARCH_SEEN_H
#define DT_SEARCH_SEEN_H

#include "base/rng.h"
#include "space/space.h"

struct dt_seen {
    const struct dt_space *space;
    int64_t count;  /* points seen */
    int64_t all;    /* feasible points */
    uint64_t *bits; /* one a point */
};

/* DT_ENOMEM. */
dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space) DT_MUST_CHECK;
void dt_seen_fini(struct dt_seen *seen);

/* False for a point that is not feasible. */
bool dt_seen_has(const struct dt_seen *seen, const struct dt_point *point);
void dt_seen_add(struct dt_seen *seen, const struct dt_point *point);
bool dt_seen_all(const struct dt_seen *seen);

/* Uniform over the feasible points that were not seen; false when there is none. */
bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point);

#endif
