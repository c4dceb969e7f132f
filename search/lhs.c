/* SPDX-License-Identifier: MIT */
/* A sequence of Latin hypercubes over the feasible points; each covers all strata of every axis. */
#include "search/search.h"
#include "search/seen.h"

#include <stdlib.h>

struct lhs {
    const struct dt_space *space;
    const struct dt_seen *seen;
    struct dt_rng rng;
    struct dt_point *points; /* of the current hypercube */
    int size, n, next;       /* requested size, points made, points returned */
};

enum { POINTS };
static const struct dt_knob knobs[] = {
    {"points", "size of a hypercube; 0: the trials that the budget has room for, or 64", 0, 0, 1e5},
    {0}};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    int64_t budget = opts->evaluations > 0 && opts->evaluations < 1000 ? opts->evaluations : 64;
    int size = opts->knobs[POINTS] >= 1 ? (int)opts->knobs[POINTS] : (int)budget;
    struct lhs *search = state;
    *search = (struct lhs){.space = opts->space,
                           .seen = opts->seen,
                           .rng = dt_rng_at(opts->seed, "lhs"),
                           .points = calloc((size_t)size, sizeof *search->points),
                           .size = size};
    return search->points != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %d plans", size);
}

/* When a hypercube has no new point, the core draws one. */
static dt_status ask(void *state, struct dt_point *point)
{
    struct lhs *search = state;
    for (int cubes = 0; cubes < 2; cubes++) {
        while (search->next < search->n) {
            *point = search->points[search->next++];
            if (!dt_seen_has(search->seen, point))
                return DT_OK;
        }
        search->n = search->size;
        search->next = 0;
        DT_TRY(dt_space_lhs(search->space, &search->rng, &search->n, search->points));
    }
    return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

static void fini(void *state)
{
    free(((struct lhs *)state)->points);
}

const struct dt_strategy dt_strategy_lhs = {
    .name = "lhs",
    .doc = "Latin hypercubes over the feasible plans: all values of a parameter equally often",
    .paper = "McKay, Beckman, Conover 1979, A comparison of three methods for selecting values",
    .state_size = sizeof(struct lhs),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .fini = fini,
};
