/* SPDX-License-Identifier: MIT */
/* seen - set of the points that were asked for or told
 *
 * One bit per point where the space lists at most four million, else a set of 64-bit hashes. Two
 * points may share a hash (once in 4e7 sets of a million): then one of them is never tried, which
 * does not matter to a search.
 */
#ifndef DT_SEARCH_SEEN_H
#define DT_SEARCH_SEEN_H

#include "base/rng.h"
#include "space/space.h"

struct dt_seen {
    const struct dt_space *space;
    int64_t count;    /* points seen */
    int64_t all;      /* feasible points; -1: too many to count */
    uint64_t *bits;   /* one per point; NULL: hashes are used */
    uint64_t *hashes; /* open addressing, at most half full; 0 is empty */
    uint64_t room;    /* size of hashes, a power of two */
};

/* DT_ENOMEM. */
dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space) DT_MUST_CHECK;
void dt_seen_fini(struct dt_seen *seen);

/* For feasible points. add returns false when memory runs out. */
bool dt_seen_has(const struct dt_seen *seen, const struct dt_point *point);
bool dt_seen_add(struct dt_seen *seen, const struct dt_point *point);
bool dt_seen_all(const struct dt_seen *seen);

/* Uniform over the feasible points that were not seen; false when there is none, or when hashes are
 * used and 10,000 draws gave no new point. */
bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point);

#endif
