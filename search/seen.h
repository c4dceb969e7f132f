/* SPDX-License-Identifier: MIT */
/* seen - set of the points that were asked for or told
 *
 * One bit per point where the space lists at most four million, else a set of 64-bit hashes. Two points may share a
 * hash (once in 4e7 sets of a million): then one of them is never tried, which does not matter to a search.
 */
#ifndef DT_SEARCH_SEEN_H
#define DT_SEARCH_SEEN_H

#include "base/rng.h"
#include "search/trial.h"
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

/* Uniform over the feasible points that were not seen; false when there is none, or when hashes are used and 10,000
 * draws gave no new point. */
bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point);

/* A neighbour of a feasible point that was not seen: uniform over the axes that have one, then over their values; false
 * when there is none. */
bool dt_seen_near(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  enum dt_move move, struct dt_point *point);

/* The end of a random walk of `steps` exchanges over feasible points, seen or not. */
void dt_seen_walk(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  int moves, struct dt_point *point);

struct dt_best_answer {
    struct dt_point point;
    double value; /* INFINITY: it failed */
};

struct dt_answers {
    struct dt_best_answer *rows; /* best first; among equals the earlier one; failures last */
    int count;
};

/* The value of a trial; INFINITY when it failed. */
double dt_answer_value(const struct dt_trial *trial);

/* A point told again gets its latest value. Drops the answer when memory runs out. */
void dt_answers_add(struct dt_answers *told, const struct dt_space *space,
                    const struct dt_trial *trial);
void dt_answers_fini(struct dt_answers *told);

#endif
