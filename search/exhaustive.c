/* SPDX-License-Identifier: MIT */
/* Every feasible point once, in steps of the golden section of a circle (Weyl's equidistribution: the first m points are
 * spread evenly over the list for every m), so that a search cut short has looked everywhere. The seed is where it
 * starts. */
#include "search/order_int.h"

#include "base/rng.h"

struct exhaustive {
    struct dt_order order;
    uint64_t start; /* a circle is 2^64 long */
};

static const uint64_t golden = 0x9e3779b97f4a7c15;

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct exhaustive *search = state;
    struct dt_rng rng = {.seed = opts->seed, .stream = dt_rng_stream("exhaustive")};
    search->start = dt_rng_next(&rng);
    return dt_order_init(&search->order, opts->space);
}

/* m steps leave no gap of (1 + 2/sqrt(5)) / m of the circle (the three-gap theorem), so 2 * count steps have met every
 * point, whose shares of the circle are 1 / count; a step that meets a point again is passed over. */
static dt_status ask(void *state, struct dt_point *point)
{
    struct exhaustive *search = state;
    struct dt_order *order = &search->order;
    while (order->next < 2 * order->count) {
        uint64_t at = search->start + (uint64_t)order->next++ * golden;
        int64_t k = (int64_t)((at >> 32) * (uint64_t)order->count >> 32);
        if (dt_order_visit(order, k))
            continue;
        dt_space_at(order->space, k, point);
        return DT_OK;
    }
    return DT_DONE;
}

static void tell(void *state, const struct dt_trial *trial)
{
    dt_order_tell(&((struct exhaustive *)state)->order, trial);
}

static void fini(void *state)
{
    dt_order_fini(&((struct exhaustive *)state)->order);
}

const struct dt_strategy dt_strategy_exhaustive = {
    .name = "exhaustive",
    .doc = "every plan once, evenly spread over the space at any time",
    .state_size = sizeof(struct exhaustive),
    .init = init,
    .ask = ask,
    .tell = tell,
    .fini = fini,
};
