/* SPDX-License-Identifier: MIT */
/* Points of a scrambled Sobol sequence mapped to the feasible ones: every prefix fills the space more evenly than draws
 * do. The prefix in memory is doubled when needed; repeated points are already seen. */
#include "base/array.h"
#include "search/search.h"
#include "search/seen.h"

#include <limits.h>
#include <stdlib.h>

struct sobol {
    struct dt_search_opts opts;
    struct dt_point *points; /* the first n of the sequence */
    int n, next;
};

enum { FIRST = 128, MOST = INT_MAX / 4 };

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    ((struct sobol *)state)->opts = *opts;
    return DT_OK;
}

static dt_status lengthen(struct sobol *search)
{
    int n = search->n < MOST ? 2 * search->n + FIRST : search->n, before = search->n;
    DT_TRY(DT_RESIZE(search->points, n));
    DT_TRY(dt_space_sobol(search->opts.space, search->opts.seed, &n, search->points));
    search->n = n;
    search->next = 0;
    return n > before ? DT_OK : DT_DONE;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct sobol *search = state;
    for (;;) {
        while (search->next < search->n) {
            *point = search->points[search->next++];
            if (!dt_seen_has(search->opts.seen, point))
                return DT_OK;
        }
        dt_status status = lengthen(search);
        if (status != DT_OK)
            return status;
    }
}

static void fini(void *state)
{
    free(((struct sobol *)state)->points);
}

const struct dt_strategy dt_strategy_sobol = {
    .name = "sobol",
    .doc = "a scrambled Sobol sequence over the feasible plans: even coverage at any time",
    .paper = "Sobol 1967; Joe, Kuo 2008, Constructing Sobol sequences with better projections",
    .state_size = sizeof(struct sobol),
    .init = init,
    .ask = ask,
    .fini = fini,
};
