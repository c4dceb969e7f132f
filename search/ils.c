/* SPDX-License-Identifier: MIT */
/* Iterated local search: first improvement over the neighbours in random order; at a local optimum the best point is
 * perturbed ("kicked"), and the search continues from there. */
#include "search/search.h"
#include "search/seen.h"

#include <math.h>

struct ils {
    const struct dt_space *space;
    const struct dt_seen *seen;
    struct dt_rng rng;
    int starts, kick, told;
    struct dt_best_answer current, best;
    struct dt_point kicked; /* outstanding; becomes the current point whatever its value */
    bool waits;             /* waiting for the answer of `kicked` */
};

enum { STARTS, KICK };
static const struct dt_knob knobs[] = {
    {"starts", "random plans; the first climb begins at the best of them", 20, 1, 1000},
    {"kick", "random changes to the best plan before the next climb", 2, 1, 32},
    {0}};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    *(struct ils *)state = (struct ils){.space = opts->space,
                                        .seen = opts->seen,
                                        .rng = dt_rng_at(opts->seed, "ils"),
                                        .starts = (int)opts->knobs[STARTS],
                                        .kick = (int)opts->knobs[KICK],
                                        .current = {.value = INFINITY},
                                        .best = {.value = INFINITY}};
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct ils *search = state;
    bool anywhere = search->told < search->starts || !isfinite(search->best.value);
    if (anywhere)
        return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
    if (dt_seen_near(search->seen, &search->rng, &search->current.point, DT_EXCHANGE, point))
        return DT_OK;
    dt_seen_walk(search->seen, &search->rng, &search->best.point, search->kick, point);
    search->kicked = *point;
    search->waits = true;
    return DT_OK;
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct ils *search = state;
    const struct dt_best_answer answer = {.point = trial->point, .value = dt_answer_value(trial)};
    bool landed = search->waits && dt_point_equal(search->space, &search->kicked, &trial->point);
    search->told++;
    search->waits = search->waits && !landed;
    if (answer.value < search->current.value || (landed && isfinite(answer.value)))
        search->current = answer;
    if (answer.value < search->best.value)
        search->best = answer;
}

const struct dt_strategy dt_strategy_ils = {
    .name = "ils",
    .doc = "iterated local search: climb by single changes, perturb the best, climb again",
    .paper = "Lourenco, Martin, Stutzle 2003, Iterated local search",
    .state_size = sizeof(struct ils),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .tell = tell,
};
