/* SPDX-License-Identifier: MIT */
/* simulate - repeated runs of a search on a landscape
 *
 * Repeat r has the seed `seed + r`. Repeats are distributed to `jobs` processes.
 */
#ifndef DT_SEARCH_LANDSCAPE_SIMULATE_H
#define DT_SEARCH_LANDSCAPE_SIMULATE_H

#include "search/landscape/landscape.h"
#include "search/search.h"

struct dt_simulation {
    const struct dt_landscape *landscape;
    const char *search; /* name and knobs, as dt_search_new takes them */
    int evals, repeats, jobs;
    double spend; /* recorded seconds after which a repeat ends; 0: no limit */
    uint64_t seed;
    const struct dt_prior *prior; /* NULL: none */
    bool noise;                   /* evaluations are resampled by a bootstrap draw */
};

struct dt_repeat {
    int evals;       /* number made; fewer than allowed when the search stopped */
    double seconds;  /* recorded cost of the evaluations */
    double start_ms; /* processor time to begin */
    char note[160];  /* why it stopped */
    struct dt_error error;
};

struct dt_runs {
    int evals, repeats;
    struct dt_repeat *list; /* [repeats] */
    int32_t *entries;       /* [repeats][evals] evaluated, in order; -1 after the last */
    double *seen;           /* [repeats][evals] the value the search was told; NAN: failed */
    double *ask_tell_ms;    /* [repeats][evals] processor time, refits left out */
    double *refit_ms;       /* [repeats][evals] of refits in between; 0: none */
    void *memory;           /* of all the above, shared by the processes */
    size_t size;
};

dt_status dt_simulate(const struct dt_simulation *simulation, struct dt_runs *runs) DT_MUST_CHECK;
void dt_runs_fini(struct dt_runs *runs);

#endif
