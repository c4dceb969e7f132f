/* SPDX-License-Identifier: MIT */
#include "search/seen.h"

#include <stdlib.h>

dt_status dt_seen_init(struct dt_seen *seen, const struct dt_space *space)
{
    int64_t all = dt_space_count(space);
    uint64_t *bits = calloc((size_t)all / 64 + 1, sizeof *bits);
    if (bits == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search of %lld plans", (long long)all);
    *seen = (struct dt_seen){.space = space, .all = all, .bits = bits};
    return DT_OK;
}

void dt_seen_fini(struct dt_seen *seen)
{
    free(seen->bits);
    seen->bits = NULL;
}

static bool has(const struct dt_seen *seen, int64_t k)
{
    return (seen->bits[k / 64] >> (k % 64) & 1) != 0;
}

bool dt_seen_has(const struct dt_seen *seen, const struct dt_point *point)
{
    int64_t k = dt_space_index(seen->space, point);
    return k >= 0 && has(seen, k);
}

void dt_seen_add(struct dt_seen *seen, const struct dt_point *point)
{
    int64_t k = dt_space_index(seen->space, point);
    if (k < 0 || has(seen, k))
        return;
    seen->bits[k / 64] |= UINT64_C(1) << (k % 64);
    seen->count++;
}

bool dt_seen_all(const struct dt_seen *seen)
{
    return seen->count == seen->all;
}

/* The r-th point that was not seen. */
static int64_t unseen(const struct dt_seen *seen, int64_t r)
{
    int64_t word = 0;
    for (;; word++) {
        int64_t clear = 64 - __builtin_popcountll(seen->bits[word]);
        if (r < clear)
            break;
        r -= clear;
    }
    int64_t k = word * 64;
    for (;; k++)
        if (!has(seen, k) && r-- == 0)
            return k;
}

bool dt_seen_draw(const struct dt_seen *seen, struct dt_rng *rng, struct dt_point *point)
{
    if (dt_seen_all(seen))
        return false;
    int64_t left = seen->all - seen->count;
    dt_space_at(seen->space, unseen(seen, (int64_t)dt_rng_below(rng, (uint64_t)left)), point);
    return true;
}
