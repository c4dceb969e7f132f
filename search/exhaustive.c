/* SPDX-License-Identifier: MIT */
/* Every feasible point once, in steps of about the golden section of their number (Weyl's equidistribution: the first m
 * points are spread evenly over the list for every m), so that a search cut short has looked everywhere. The seed is
 * where it starts. */
#include "search/order_int.h"

#include "base/rng.h"

struct exhaustive {
    struct dt_order order;
    int64_t start, stride;
};

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct exhaustive *search = state;
    DT_TRY(dt_order_init(&search->order, opts->space));
    int64_t count = search->order.count;
    struct dt_rng rng = {.seed = opts->seed, .stream = dt_rng_stream("exhaustive")};
    search->start = count > 0 ? (int64_t)dt_rng_below(&rng, (uint64_t)count) : 0;
    search->stride = (int64_t)(0.6180339887498949 * (double)count);
    search->stride += search->stride == 0;
    while (common_divisor(search->stride, count) > 1)
        search->stride++;
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct exhaustive *search = state;
    struct dt_order *order = &search->order;
    while (order->next < order->count) {
        int64_t k = (search->start + order->next++ * search->stride) % order->count;
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
