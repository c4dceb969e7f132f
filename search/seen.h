/* SPDX-License-Identifier: MIT */
/* seen - the points that were asked for or told: no trial is spent twice
 *
 * A bit a point where the space lists at most four million, else a set of 64-bit hashes. Two points may share a hash (once
 * in 4e7 sets of a million): then one of them is never tried, which no search notices.
 */
#ifndef DT_SEARCH_SEEN_H
#define DT_SEARCH_SEEN_H

#include "base/rng.h"
#include "space/space.h"

struct dt_seen {
    const struct dt_space *space;
    int64_t count;    /* points seen */
    int64_t all;      /* feasible points; -1: too many to count */
    uint64_t *bits;   /* one a point; NULL: hashes */
    uint64_t *hashes; /* open addressing, at most half full; 0 is empty */
    uint64_t room;    /* of hashes, a power of two */
};

/* DT_ENOMEM. */
dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space) DT_MUST_CHECK;
void dt_seen_fini(struct dt_seen *seen);

/* Of feasible points. add is false when memory is short. */
bool dt_seen_has(const struct dt_seen *seen, const struct dt_point *point);
bool dt_seen_add(struct dt_seen *seen, const struct dt_point *point);
bool dt_seen_all(const struct dt_seen *seen);

/* Uniform over the feasible points that were not seen; false when there is none, or when there is a set of hashes and
 * 10,000 draws gave nothing new. */
bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point);

/* A neighbour of a feasible point that was not seen: uniform over the axes that have one, then over their values; false
 * when there is none. */
bool dt_seen_near(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  enum dt_move move, struct dt_point *point);

/* The end of a random walk of so many exchanges over feasible points, seen or not. */
void dt_seen_walk(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  int moves, struct dt_point *point);

#endif
