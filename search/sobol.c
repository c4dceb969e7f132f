/* SPDX-License-Identifier: MIT */
/* A Sobol sequence mapped to the feasible points: every prefix fills the space more evenly than
 * draws do. A random digital shift keeps the strata of the sequence and makes each point by
 * itself a uniform draw. */
#include "search/search.h"

#include <gsl/gsl_qrng.h>
#include <math.h>

enum { BITS = 30 }; /* bits of GSL's coordinates */

struct sobol {
    const struct dt_space *space;
    gsl_qrng *sequence;
    bool begun;
    uint32_t shift[DT_AXES_MAX];
};

static dt_status sobol_init(void *state, const struct dt_search_opts *opts)
{
    struct sobol *search = state;
    struct dt_rng rng = dt_rng_at(opts->seed, "sobol");
    search->space = opts->space;
    search->sequence = gsl_qrng_alloc(gsl_qrng_sobol, DT_AXES_MAX);
    for (int i = 0; i < DT_AXES_MAX; i++)
        search->shift[i] = (uint32_t)dt_rng_below(&rng, UINT64_C(1) << BITS);
    return search->sequence != NULL ? DT_OK
                                    : dt_fail(DT_ENOMEM, "out of memory for the search 'sobol'");
}

static dt_status sobol_ask(void *state, struct dt_point *point)
{
    struct sobol *search = state;
    double coordinates[DT_AXES_MAX] = {0}; /* the first point, which GSL leaves out */
    if (search->begun)
        gsl_qrng_get(search->sequence, coordinates);
    search->begun = true;
    for (int i = 0; i < DT_AXES_MAX; i++)
        coordinates[i] = ldexp((uint32_t)ldexp(coordinates[i], BITS) ^ search->shift[i], -BITS);
    dt_space_at_coordinates(search->space, coordinates, point);
    return DT_OK;
}

static void sobol_fini(void *state)
{
    gsl_qrng_free(((struct sobol *)state)->sequence);
}

const struct dt_strategy dt_strategy_sobol = {
    .name = "sobol",
    .doc = "a scrambled Sobol sequence over the feasible plans: even coverage at any time",
    .paper = "Sobol 1967; Bratley, Fox 1988, Algorithm 659: implementing Sobol's generator",
    .state_size = sizeof(struct sobol),
    .init = sobol_init,
    .ask = sobol_ask,
    .fini = sobol_fini,
};
