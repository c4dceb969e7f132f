/* SPDX-License-Identifier: MIT */
/* Uniform draws without replacement: a partial Fisher-Yates shuffle of the numbers of the points (Durstenfeld 1964). */
#include "search/order_int.h"

#include "base/rng.h"

#include <stdlib.h>

struct random {
    struct dt_order order;
    struct dt_rng rng;
    int32_t
        *deck; /* the first `next` are drawn; a space has fewer than 2^31 points (space/space.h) */
};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct random *search = state;
    DT_TRY(dt_order_init(&search->order, opts->space));
    int64_t count = search->order.count;
    search->rng = (struct dt_rng){.seed = opts->seed, .stream = dt_rng_stream("random")};
    search->deck = calloc((size_t)count + 1, sizeof *search->deck);
    if (search->deck == NULL) {
        dt_order_fini(&search->order);
        return dt_fail(DT_ENOMEM, "out of memory for a search of %lld plans", (long long)count);
    }
    for (int32_t k = 0; k < count; k++)
        search->deck[k] = k;
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct random *search = state;
    struct dt_order *order = &search->order;
    while (order->next < order->count) {
        int64_t i = order->next++;
        int64_t j = i + (int64_t)dt_rng_below(&search->rng, (uint64_t)(order->count - i));
        int32_t k = search->deck[j];
        search->deck[j] = search->deck[i];
        search->deck[i] = k;
        if (dt_order_visit(order, k))
            continue;
        dt_space_at(order->space, k, point);
        return DT_OK;
    }
    return DT_DONE;
}

static void tell(void *state, const struct dt_trial *trial)
{
    dt_order_tell(&((struct random *)state)->order, trial);
}

static void fini(void *state)
{
    struct random *search = state;
    dt_order_fini(&search->order);
    free(search->deck);
}

const struct dt_strategy dt_strategy_random = {
    .name = "random",
    .doc = "uniform draws without replacement",
    .state_size = sizeof(struct random),
    .init = init,
    .ask = ask,
    .tell = tell,
    .fini = fini,
};
