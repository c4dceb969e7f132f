/* SPDX-License-Identifier: MIT */
#include "search/seen.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS_MOST = 4000000, DRAWS = 10000, FIRST_ROOM = 1024, NEAR_ROOM = 256 };

static dt_status no_memory(int64_t points)
{
    return dt_fail(DT_ENOMEM, "out of memory for a search of %lld plans", (long long)points);
}

dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space)
{
    struct dt_seen made = {.space = space, .all = dt_space_count(space), .room = FIRST_ROOM};
    if (dt_space_listed(space) && made.all <= BITS_MOST)
        made.bits = calloc((size_t)made.all / 64 + 1, sizeof *made.bits);
    else
        made.hashes = calloc(made.room, sizeof *made.hashes);
    if (made.bits == NULL && made.hashes == NULL)
        return no_memory(made.all);
    *seen = made;
    return DT_OK;
}

void dt_seen_fini(struct dt_seen *seen)
{
    free(seen->bits);
    free(seen->hashes);
    seen->bits = seen->hashes = NULL;
}

static uint64_t hash(const struct dt_seen *seen, const struct dt_point *point)
{
    uint64_t key = 0;
    for (int i = 0; i < dt_space_axes(seen->space); i++)
        key = dt_rng_hash(key, 0, (uint64_t)point->index[i]);
    return key != 0 ? key : 1;
}

/* The slot of the key, or the empty slot for it. */
static uint64_t *place(uint64_t *hashes, uint64_t room, uint64_t key)
{
    uint64_t at = key & (room - 1);
    while (hashes[at] != 0 && hashes[at] != key)
        at = (at + 1) & (room - 1);
    return &hashes[at];
}

static bool has_bit(const struct dt_seen *seen, int64_t k)
{
    return (seen->bits[k / 64] >> (k % 64) & 1) != 0;
}

bool dt_seen_has(const struct dt_seen *seen, const struct dt_point *point)
{
    if (seen->bits != NULL)
        return has_bit(seen, dt_space_index(seen->space, point));
    return *place(seen->hashes, seen->room, hash(seen, point)) != 0;
}

static bool grow(struct dt_seen *seen)
{
    uint64_t room = 2 * seen->room, *hashes = calloc(room, sizeof *hashes);
    if (hashes == NULL)
        return false;
    for (uint64_t i = 0; i < seen->room; i++)
        if (seen->hashes[i] != 0)
            *place(hashes, room, seen->hashes[i]) = seen->hashes[i];
    free(seen->hashes);
    seen->hashes = hashes;
    seen->room = room;
    return true;
}

static bool add_hash(struct dt_seen *seen, uint64_t key)
{
    if (2 * ((uint64_t)seen->count + 1) > seen->room && !grow(seen))
        return false;
    *place(seen->hashes, seen->room, key) = key;
    seen->count++;
    return true;
}

bool dt_seen_add(struct dt_seen *seen, const struct dt_point *point)
{
    if (dt_seen_has(seen, point))
        return true;
    if (seen->bits == NULL)
        return add_hash(seen, hash(seen, point));
    int64_t k = dt_space_index(seen->space, point);
    seen->bits[k / 64] |= UINT64_C(1) << (k % 64);
    seen->count++;
    return true;
}

bool dt_seen_all(const struct dt_seen *seen)
{
    return seen->count == seen->all;
}

/* The r-th unseen point. */
static int64_t unseen(const struct dt_seen *seen, int64_t r)
{
    int64_t word = 0;
    for (;; word++) {
        int64_t clear = 64 - __builtin_popcountll(seen->bits[word]);
        if (r < clear)
            break;
        r -= clear;
    }
    for (int64_t k = word * 64;; k++)
        if (!has_bit(seen, k) && r-- == 0)
            return k;
}

bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point)
{
    if (dt_seen_all(seen))
        return false;
    if (seen->bits != NULL) {
        uint64_t left = (uint64_t)(seen->all - seen->count);
        dt_space_at(seen->space, unseen(seen, (int64_t)dt_rng_below(rng, left)), point);
        return true;
    }
    for (int i = 0; i < DRAWS; i++) {
        dt_space_draw(seen->space, rng, point);
        if (!dt_seen_has(seen, point))
            return true;
    }
    return false;
}

/* Writes the neighbours to `near`, or to *more when there are too many; returns their number. */
static int neighbours(const struct dt_space *space, const struct dt_point *from, enum dt_move move,
                      struct dt_point near[NEAR_ROOM], struct dt_point **more)
{
    int n = dt_space_neighbours(space, from, move, near, NEAR_ROOM);
    *more = n > NEAR_ROOM ? calloc((size_t)n, sizeof **more) : NULL;
    if (*more != NULL)
        return dt_space_neighbours(space, from, move, *more, n);
    return n < NEAR_ROOM ? n : NEAR_ROOM;
}

/* The axis on which two neighbours differ. */
static int axis_of(const struct dt_point *a, const struct dt_point *b)
{
    int axis = 0;
    while (a->index[axis] == b->index[axis])
        axis++;
    return axis;
}

/* Draws a neighbour in two steps, first an axis and then a value, so that a large axis is not tried more often than a
 * small one. */
static bool pick(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                 enum dt_move move, bool fresh, struct dt_point *point)
{
    struct dt_point near[NEAR_ROOM], *more;
    int n = neighbours(seen->space, from, move, near, &more), axis = -1;
    uint64_t axes = 0, values = 0;
    bool wins = false;
    for (int i = 0; i < n; i++) {
        const struct dt_point *one = more != NULL ? &more[i] : &near[i];
        if (fresh && dt_seen_has(seen, one))
            continue;
        if (axis_of(from, one) != axis) {
            axis = axis_of(from, one);
            wins = dt_rng_below(rng, ++axes) == 0;
            values = 0;
        }
        if (wins && dt_rng_below(rng, ++values) == 0)
            *point = *one;
    }
    free(more);
    return axes > 0;
}

bool dt_seen_near(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  enum dt_move move, struct dt_point *point)
{
    return pick(seen, rng, from, move, true, point);
}

void dt_seen_walk(const struct dt_seen *seen, struct dt_rng *rng, const struct dt_point *from,
                  int moves, struct dt_point *point)
{
    struct dt_point at = *from;
    for (int i = 0; i < moves; i++) {
        struct dt_point next;
        if (pick(seen, rng, &at, DT_EXCHANGE, false, &next))
            at = next;
    }
    *point = at;
}

/* The answers so far, sorted, for strategies that use them */

double dt_answer_value(const struct dt_trial *trial)
{
    return isfinite(trial->value) ? trial->value : INFINITY;
}

static void forget(struct dt_answers *told, const struct dt_space *space,
                   const struct dt_point *point)
{
    for (int i = 0; i < told->count; i++) {
        if (!dt_point_equal(space, &told->rows[i].point, point))
            continue;
        told->count--;
        memmove(told->rows + i, told->rows + i + 1, (size_t)(told->count - i) * sizeof *told->rows);
        return;
    }
}

void dt_answers_add(struct dt_answers *told, const struct dt_space *space,
                    const struct dt_trial *trial)
{
    forget(told, space, &trial->point);
    if (DT_GROW(told->rows, told->count, 1) < 0)
        return;
    const struct dt_best_answer row = {.point = trial->point, .value = dt_answer_value(trial)};
    int at = told->count++;
    for (; at > 0 && told->rows[at - 1].value > row.value; at--)
        told->rows[at] = told->rows[at - 1];
    told->rows[at] = row;
}

void dt_answers_fini(struct dt_answers *told)
{
    free(told->rows);
    *told = (struct dt_answers){0};
}
