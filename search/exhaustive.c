/* SPDX-License-Identifier: MIT */
/* Every feasible point once, in steps of the golden section of a circle (Weyl's equidistribution:
 * the first m points are spread evenly over the list for every m), so that an interrupted search
 * has covered the space evenly. The seed sets the start. */
#include "search/search.h"
#include "search/seen.h"

struct exhaustive {
    const struct dt_space *space;
    const struct dt_seen *seen;
    int64_t count, next; /* points; steps made */
    uint64_t start;      /* a circle is 2^64 long */
};

static const uint64_t golden = 0x9e3779b97f4a7c15;

static dt_status exhaustive_init(void *state, const struct dt_search_opts *opts)
{
    if (!dt_space_listed(opts->space))
        return dt_fail(DT_EUNSUP,
                       "the space has too many plans for an exhaustive search: choose another");
    struct dt_rng rng = dt_rng_at(opts->seed, "exhaustive");
    *(struct exhaustive *)state = (struct exhaustive){.space = opts->space,
                                                      .seen = opts->seen,
                                                      .count = dt_space_count(opts->space),
                                                      .start = dt_rng_next(&rng)};
    return DT_OK;
}

/* floor(a b / 2^64): converts a position on the circle to the number of a point. */
static uint64_t scale_index(uint64_t a, uint64_t b)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), left = (a >> 32) * (b & UINT32_MAX);
    uint64_t right = (a & UINT32_MAX) * (b >> 32) + (low >> 32);
    return (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) +
           (((left & UINT32_MAX) + (right & UINT32_MAX)) >> 32);
}

/* m steps leave no gap of (1 + 2/sqrt(5)) / m of the circle (the three-gap theorem), so 2 *
 * count steps have met every point, whose shares of the circle are 1 / count; a step that meets
 * a point again is skipped. */
static dt_status exhaustive_ask(void *state, struct dt_point *point)
{
    struct exhaustive *search = state;
    while (search->next < 2 * search->count) {
        uint64_t at = search->start + (uint64_t)search->next++ * golden;
        dt_space_at(search->space, (int64_t)scale_index(at, (uint64_t)search->count), point);
        if (!dt_seen_has(search->seen, point))
            return DT_OK;
    }
    return DT_DONE;
}

const struct dt_strategy dt_strategy_exhaustive = {
    .name = "exhaustive",
    .doc = "every plan once, evenly spread over the space at any time",
    .paper = "Weyl 1916, On the equidistribution of numbers modulo one",
    .state_size = sizeof(struct exhaustive),
    .init = exhaustive_init,
    .ask = exhaustive_ask,
};
