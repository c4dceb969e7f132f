/* SPDX-License-Identifier: MIT */
/* A genetic algorithm without generations (Syswerda 1991): the population is the best plans told so far, so answers may
 * come in any order. Children take each parameter from one of two parents; a child that breaks a rule is repaired by
 * restoring parameters of the first parent, one by one, until it is feasible. */
#include "search/search.h"
#include "search/seen.h"

#include <math.h>

struct genetic {
    const struct dt_space *space;
    const struct dt_seen *seen;
    struct dt_rng rng;
    int population, starts, tournament;
    double crossover, mutation;
    struct dt_answers told;
};

enum { POPULATION, STARTS, TOURNAMENT, CROSSOVER, MUTATION };
static const struct dt_knob knobs[] = {
    {"population", "number of possible parents: the best plans so far", 20, 2, 1e5},
    {"starts", "random plans before the first child", 20, 2, 1e5},
    {"tournament", "plans drawn for each parent, the best of which is taken", 3, 1, 100},
    {"crossover", "probability of a second parent", 0.7, 0, 1},
    {"mutation", "probability of each further random change", 0.4, 0, 0.95},
    {0}};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    *(struct genetic *)state = (struct genetic){.space = opts->space,
                                                .seen = opts->seen,
                                                .rng = dt_rng_at(opts->seed, "genetic"),
                                                .population = (int)opts->knobs[POPULATION],
                                                .starts = (int)opts->knobs[STARTS],
                                                .tournament = (int)opts->knobs[TOURNAMENT],
                                                .crossover = opts->knobs[CROSSOVER],
                                                .mutation = opts->knobs[MUTATION]};
    return DT_OK;
}

/* Rows are sorted best first, so the lowest drawn index wins. */
static const struct dt_point *parent(struct genetic *search, int alive)
{
    uint64_t best = (uint64_t)alive;
    for (int i = 0; i < search->tournament; i++) {
        uint64_t k = dt_rng_below(&search->rng, (uint64_t)alive);
        best = k < best ? k : best;
    }
    return &search->told.rows[best].point;
}

static void repair(struct genetic *search, const struct dt_point *whole, struct dt_point *child)
{
    int axes[DT_AXES_MAX], n = 0;
    for (int i = 0; i < dt_space_axes(search->space); i++)
        if (child->index[i] != whole->index[i])
            axes[n++] = i;
    while (n > 0 && !dt_space_feasible(search->space, child)) {
        uint64_t k = dt_rng_below(&search->rng, (uint64_t)n);
        child->index[axes[k]] = whole->index[axes[k]];
        axes[k] = axes[--n];
    }
}

static void breed(struct genetic *search, int alive, struct dt_point *child)
{
    const struct dt_point *mother = parent(search, alive), *father = parent(search, alive);
    bool two = dt_rng_uniform(&search->rng) < search->crossover;
    int moves = !two;
    *child = *mother;
    for (int i = 0; two && i < dt_space_axes(search->space); i++)
        if (dt_rng_below(&search->rng, 2) == 0)
            child->index[i] = father->index[i];
    repair(search, mother, child);
    while (dt_rng_uniform(&search->rng) < search->mutation)
        moves++;
    dt_seen_walk(search->seen, &search->rng, child, moves, child);
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct genetic *search = state;
    int alive = 0;
    while (alive < search->told.count && alive < search->population &&
           isfinite(search->told.rows[alive].value))
        alive++;
    if (search->told.count < search->starts || alive == 0)
        return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
    breed(search, alive, point);
    return DT_OK;
}

static int64_t ahead(void *state)
{
    const struct genetic *search = state;
    return search->starts - search->told.count;
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct genetic *search = state;
    dt_answers_add(&search->told, search->space, trial);
}

static void fini(void *state)
{
    dt_answers_fini(&((struct genetic *)state)->told);
}

const struct dt_strategy dt_strategy_genetic = {
    .name = "genetic",
    .doc = "a steady-state genetic algorithm; children that break a rule are repaired",
    .paper =
        "Holland 1975; Syswerda 1991, A study of reproduction in steady-state genetic algorithms",
    .state_size = sizeof(struct genetic),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .tell = tell,
    .ahead = ahead,
    .fini = fini,
};
