/* SPDX-License-Identifier: MIT */
/* simulate - repeated runs of a search on a landscape
 *
 * Repeat r has the seed `seed + r`. Repeats are distributed to `jobs` processes.
 */
#ifndef DT_SEARCH_LANDSCAPE_SIMULATE_H
#define DT_SEARCH_LANDSCAPE_SIMULATE_H

#include "search/landscape/landscape.h"
#include "search/search.h"

/* expected[t - 1] = R(t), t = 1..evals, of n values among which NAN are failures. */
dt_status dt_score_random(const double values[], int64_t n, int evals,
                          double expected[]) DT_MUST_CHECK;

/* P of a run whose best after t evaluations was best[t - 1]. */
double dt_score_p(const double best[], const double expected[], int evals, double optimum);

/* best[t - 1] of the entries evaluated (-1: the run had ended), t = 1..evals. */
void dt_score_best(const struct dt_landscape *landscape, const int32_t entries[], int evals,
                   double best[]);

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
    void *memory;           /* holds all the above, shared by the processes */
    size_t size;
};

dt_status dt_simulate(const struct dt_simulation *simulation, struct dt_runs *runs) DT_MUST_CHECK;
void dt_runs_fini(struct dt_runs *runs);

struct dt_raced {
    int orders, plans; /* plans of an order */
    int lost;          /* orders in which the best plan was lost */
    double worst;      /* largest ratio of final incumbent to best plan; 1: nothing lost */
    double all,
        spent;    /* time of all repetitions, and of those made: seconds, or the table's unit */
    double saved; /* share of that time */
    double repetitions; /* average number per plan */
    int64_t ended[4];   /* plans by enum dt_race_next */
};

/* Orders of at most `plans` plans with repetitions. DT_EUSAGE: the table has
 * fewer than two of them. */
dt_status dt_race_replay(const struct dt_landscape *landscape, int orders, int plans, uint64_t seed,
                         struct dt_raced *raced) DT_MUST_CHECK;

void dt_raced_text(const struct dt_raced *raced, struct dt_text *out);

#endif
