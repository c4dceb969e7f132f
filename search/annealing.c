/* SPDX-License-Identifier: MIT */
/* Simulated annealing on the logarithm of the objective: a step to a plan slower by the share d is accepted with the
 * probability exp(-d / T), and T falls geometrically over the budget. */
#include "search/search.h"
#include "search/seen.h"

#include <math.h>

struct annealing {
    const struct dt_seen *seen;
    struct dt_rng rng;
    double hot, cold, steps, told;
    int starts;
    struct dt_best_answer current;
};

enum { HOT, COLD, STEPS, STARTS };
static const struct dt_knob knobs[] = {
    {"hot", "first temperature, as a share of the time", 0.03, 0, 100},
    {"cold", "last temperature", 0.005, 0, 100},
    {"steps", "trials from hot to cold; 0: the trials that the budget has room for, or 150", 0, 0,
     1e9},
    {"starts", "random plans; it begins with the best of them", 20, 1, 1000},
    {0}};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    double budget = opts->evaluations > 0 ? (double)opts->evaluations : 150;
    *(struct annealing *)state = (struct annealing){
        .seen = opts->seen,
        .rng = dt_rng_at(opts->seed, "annealing"),
        .hot = fmax(opts->knobs[HOT], 1e-9),
        .cold = fmax(opts->knobs[COLD], 1e-9),
        .steps = opts->knobs[STEPS] >= 1 ? opts->knobs[STEPS] : budget,
        .starts = (int)opts->knobs[STARTS],
        .current = {.value = INFINITY},
    };
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct annealing *search = state;
    bool anywhere = search->told < search->starts || !isfinite(search->current.value);
    if (!anywhere &&
        dt_seen_near(search->seen, &search->rng, &search->current.point, DT_EXCHANGE, point))
        return DT_OK;
    return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct annealing *search = state;
    double share = fmin(search->told / search->steps, 1), value = dt_answer_value(trial);
    double heat =
        search->told < search->starts ? 1e-9 : search->hot * pow(search->cold / search->hot, share);
    double rise = isfinite(value) ? log(value / search->current.value) : INFINITY;
    search->told++;
    if (rise < 0 || dt_rng_uniform(&search->rng) < exp(-rise / heat))
        search->current = (struct dt_best_answer){.point = trial->point, .value = value};
}

const struct dt_strategy dt_strategy_annealing = {
    .name = "annealing",
    .doc = "simulated annealing: single changes, worse ones accepted less and less",
    .paper = "Kirkpatrick, Gelatt, Vecchi 1983, Optimization by simulated annealing",
    .state_size = sizeof(struct annealing),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .tell = tell,
};
