/* SPDX-License-Identifier: MIT */
/* Uniform draws without replacement: the yardstick of every other strategy
 * (Bergstra and Bengio 2012). */
#include "search/search.h"
#include "search/seen.h"

struct random {
    const struct dt_seen *seen;
    struct dt_rng rng;
};

static dt_status random_init(void *state, const struct dt_search_opts *opts)
{
    *(struct random *)state =
        (struct random){.seen = opts->seen, .rng = dt_rng_at(opts->seed, "random")};
    return DT_OK;
}

static dt_status random_ask(void *state, struct dt_point *point)
{
    struct random *search = state;
    return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

const struct dt_strategy dt_strategy_random = {
    .name = "random",
    .doc = "uniform draws without replacement",
    .paper = "Bergstra, Bengio 2012, Random search for hyper-parameter optimization",
    .state_size = sizeof(struct random),
    .init = random_init,
    .ask = random_ask,
};
