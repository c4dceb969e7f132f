/* SPDX-License-Identifier: MIT */
#include "search/seen.h"

#include <stdlib.h>

enum { BITS_MOST = 4000000, DRAWS = 10000, FIRST_ROOM = 1024 };

dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space)
{
    struct dt_seen made = {.space = space, .all = dt_space_count(space), .room = FIRST_ROOM};
    if (dt_space_listed(space) && made.all <= BITS_MOST)
        made.bits = calloc((size_t)made.all / 64 + 1, sizeof *made.bits);
    else
        made.hashes = calloc(made.room, sizeof *made.hashes);
    if (made.bits == NULL && made.hashes == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search of %lld plans", (long long)made.all);
    *seen = made;
    return DT_OK;
}

void dt_seen_fini(struct dt_seen *seen)
{
    free(seen->bits);
    free(seen->hashes);
    seen->bits = seen->hashes = NULL;
}

static uint64_t hash_point(const struct dt_seen *seen, const struct dt_point *point)
{
    uint64_t key = 0;
    for (int i = 0; i < dt_space_axes(seen->space); i++)
        key = dt_rng_hash(key, 0, (uint64_t)point->index[i]);
    return key != 0 ? key : 1;
}

/* The slot of the key, or the empty slot for it. */
static uint64_t *place_of_key(uint64_t *hashes, uint64_t room, uint64_t key)
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
    return *place_of_key(seen->hashes, seen->room, hash_point(seen, point)) != 0;
}

static bool grow_seen(struct dt_seen *seen)
{
    uint64_t room = 2 * seen->room, *hashes = calloc(room, sizeof *hashes);
    if (hashes == NULL)
        return false;
    for (uint64_t i = 0; i < seen->room; i++)
        if (seen->hashes[i] != 0)
            *place_of_key(hashes, room, seen->hashes[i]) = seen->hashes[i];
    free(seen->hashes);
    seen->hashes = hashes;
    seen->room = room;
    return true;
}

static bool add_hash(struct dt_seen *seen, uint64_t key)
{
    if (2 * ((uint64_t)seen->count + 1) > seen->room && !grow_seen(seen))
        return false;
    *place_of_key(seen->hashes, seen->room, key) = key;
    seen->count++;
    return true;
}

bool dt_seen_add(struct dt_seen *seen, const struct dt_point *point)
{
    if (dt_seen_has(seen, point))
        return true;
    if (seen->bits == NULL)
        return add_hash(seen, hash_point(seen, point));
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
static int64_t unseen_index(const struct dt_seen *seen, int64_t r)
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
        dt_space_at(seen->space, unseen_index(seen, (int64_t)dt_rng_below(rng, left)), point);
        return true;
    }
    for (int i = 0; i < DRAWS; i++) {
        dt_space_draw(seen->space, rng, point);
        if (!dt_seen_has(seen, point))
            return true;
    }
    return false;
}
