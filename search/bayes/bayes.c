/* SPDX-License-Identifier: MIT */
/* Bayesian optimisation over a finite set: docs/search.md says what is modelled and why. */
#include "base/clock.h"
#include "search/bayes/bayes_int.h"
#include "search/bayes/design.h"
#include "search/seen.h"

#include <math.h>
#include <stdlib.h>

/* OpenBLAS' own switch; its header and GSL's declare cblas twice and cannot share a file. */
extern void openblas_set_num_threads(int threads);

static const struct dt_knob knobs[] = {
    [DESIGN] = {"design", "answers before the model is asked", 5, 1, 1000},
    [DRAWS] = {"draws", "draws for each point of the design; the farthest is taken", 400, 1, 10000},
    [GROWTH] = {"growth", "answers since the last fit, as a factor, that call for the next", 1.2,
                1.01, 10},
    [STARTS] = {"starts", "of a fit, beside the fit before", 1, 1, 50},
    [LENGTH] = {"length", "median length-scale beforehand, of coordinates from 0 to 1", 0.74, 0.01,
                100},
    [LENGTH_SPREAD] = {"length_spread", "standard deviation of its logarithm", 1, 0.01, 10},
    [NOISE] = {"noise", "median noise variance beforehand, of standardised values", 2.5e-3, 1e-6,
               1},
    [VOTE] = {"vote", "weight of the average rate of failures in a vote", 0.5, 1e-3, 100},
    [CANDIDATES] = {"candidates", "points a model is asked about, at most", 100000, 100, 1e7},
    [KNOBS] = {.name = NULL},
};

static double knob(const struct bayes *bayes, enum knob row)
{
    return bayes->opts.knobs != NULL ? bayes->opts.knobs[row] : knobs[row].fallback;
}

static void fini(void *state)
{
    struct bayes *bayes = state;
    dt_process_fini(&bayes->cold);
    dt_vote_fini(&bayes->vote);
    dt_candidates_fini(&bayes->candidates);
    free(bayes->answered);
    free(bayes->asked);
}

static dt_status open_models(struct bayes *bayes)
{
    const struct dt_cloud *cloud = &bayes->candidates.cloud;
    const struct dt_process_priors priors = {
        .length = {knob(bayes, LENGTH), knob(bayes, LENGTH_SPREAD)},
        .signal = {1, 1.5},
        .noise = {knob(bayes, NOISE), 1.5},
        .constant = 1,
        .starts = (int)knob(bayes, STARTS),
        .points = 300,
    };
    DT_TRY(dt_process_init(&bayes->cold, cloud, &priors));
    DT_TRY(dt_vote_init(&bayes->vote, cloud, knob(bayes, VOTE)));
    bayes->answered = calloc(cloud->room + 1, sizeof *bayes->answered);
    if (bayes->answered == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d plans", cloud->count);
    return DT_OK;
}

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct bayes *bayes = state;
    *bayes = (struct bayes){.opts = *opts, .rng = dt_rng_at(opts->seed, "bayes")};
    openblas_set_num_threads(1);
    DT_TRY(dt_candidates_init(&bayes->candidates, opts->space, (int)knob(bayes, CANDIDATES),
                              &bayes->rng));
    bayes->spread = dt_design_kernel(&bayes->candidates);
    dt_status status = open_models(bayes);
    if (status < 0)
        fini(bayes);
    return status;
}

/* Fantasies go before an answer comes in or a fit begins. */
static void wake_up(struct bayes *bayes)
{
    for (; bayes->believed > 0; bayes->believed--)
        dt_process_pop(&bayes->cold);
}

/* A point that was asked for is believed to come out as the mean says (kriging believer; Ginsbourger, Le Riche,
 * Carraro 2010), so that the next one is looked for elsewhere. */
static dt_status believe(struct bayes *bayes)
{
    for (; bayes->believed < bayes->asked_count; bayes->believed++) {
        int k = bayes->asked[bayes->believed];
        DT_TRY(dt_process_add(&bayes->cold, k, dt_process_mean(&bayes->cold, k), 0));
    }
    return DT_OK;
}

static void forget(struct bayes *bayes, int candidate)
{
    for (int i = 0; i < bayes->asked_count; i++)
        if (bayes->asked[i] == candidate) {
            for (int j = i + 1; j < bayes->asked_count; j++)
                bayes->asked[j - 1] = bayes->asked[j];
            bayes->asked_count--;
            return;
        }
}

static dt_status remember(struct bayes *bayes, int candidate)
{
    if (bayes->asked_count == bayes->asked_room) {
        int room = bayes->asked_room > 0 ? 2 * bayes->asked_room : 16;
        int32_t *asked = realloc(bayes->asked, (size_t)room * sizeof *asked);
        if (asked == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for %d outstanding trials", room);
        bayes->asked = asked;
        bayes->asked_room = room;
    }
    bayes->asked[bayes->asked_count++] = candidate;
    bayes->candidates.seen[candidate] = true;
    return DT_OK;
}

static dt_status learn(struct bayes *bayes, int candidate, const struct dt_trial *trial)
{
    if (trial->outcome == DT_TRIAL_INTERRUPTED)
        return DT_OK;
    bool works = isfinite(trial->value) && trial->value > 0;
    DT_TRY(dt_vote_add(&bayes->vote, candidate, works));
    if (!works)
        return DT_OK;
    return dt_process_add(&bayes->cold, candidate, log(trial->value), fmax(trial->variance, 0));
}

/* The candidate a point is; a pool takes it in. */
static int place(struct bayes *bayes, const struct dt_point *point)
{
    const int count = bayes->candidates.cloud.count;
    int candidate = dt_candidates_add(&bayes->candidates, point);
    if (bayes->candidates.cloud.count > count) {
        dt_status status = dt_process_columns(&bayes->cold, count, count + 1);
        dt_vote_refit(&bayes->vote, &bayes->vote.kernel, count, count + 1);
        if (status < 0)
            bayes->status = status;
    }
    return candidate;
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct bayes *bayes = state;
    wake_up(bayes);
    int candidate = place(bayes, &trial->point);
    if (candidate < 0)
        return;
    forget(bayes, candidate);
    bayes->waiting = false;
    bayes->candidates.seen[candidate] = true;
    bayes->told += !bayes->answered[candidate];
    bayes->answered[candidate] = true;
    dt_status status = learn(bayes, candidate, trial);
    if (status < 0)
        bayes->status = status;
}

static dt_status refit(struct bayes *bayes)
{
    int64_t start = dt_clock_thread_ns();
    wake_up(bayes);
    DT_TRY(dt_process_fit(&bayes->cold, &bayes->rng));
    dt_vote_refit(&bayes->vote, &bayes->cold.kernel, 0, bayes->candidates.cloud.count);
    bayes->refits++;
    bayes->refit_seconds += (double)(dt_clock_thread_ns() - start) / (double)DT_NS_PER_SECOND;
    return DT_OK;
}

/* A fit would disturb trials that are being timed: it waits for their answers. Asked again with nothing told since, it
 * takes those that are missing for lost. */
static bool must_wait(struct bayes *bayes)
{
    int64_t outstanding = bayes->opts.seen->count - bayes->told;
    if (outstanding <= bayes->lost)
        return false;
    if (bayes->waiting)
        bayes->lost = outstanding;
    bayes->waiting = !bayes->waiting;
    return bayes->waiting;
}

static dt_status ask_model(struct bayes *bayes, int *candidate)
{
    const int n = bayes->cold.n - bayes->believed;
    if (n >= knob(bayes, GROWTH) * bayes->cold.fitted) {
        if (must_wait(bayes))
            return DT_WAIT;
        DT_TRY(refit(bayes));
    }
    DT_TRY(believe(bayes));
    *candidate = dt_bayes_choose(bayes);
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct bayes *bayes = state;
    DT_TRY(bayes->status);
    const int answers = bayes->cold.n - bayes->believed;
    int candidate = -1;
    if (answers < 2 || (int64_t)knob(bayes, DESIGN) > bayes->opts.seen->count)
        candidate = dt_design_next(&bayes->candidates, &bayes->spread, (int)knob(bayes, DRAWS),
                                   &bayes->rng);
    else {
        dt_status status = ask_model(bayes, &candidate);
        if (status != DT_OK)
            return status;
    }
    if (candidate < 0)
        return DT_DONE;
    dt_candidates_at(&bayes->candidates, candidate, point);
    if (dt_seen_has(bayes->opts.seen, point)) { /* asked for by another; the core asks again */
        bayes->candidates.seen[candidate] = true;
        return DT_OK;
    }
    return remember(bayes, candidate);
}

static void note(const void *state, struct dt_text *out)
{
    const struct bayes *bayes = state;
    if (bayes->refits > 0)
        dt_text_add(out, "%d fits of the model took %.3g s", bayes->refits, bayes->refit_seconds);
}

static struct dt_refits refits(const void *state)
{
    const struct bayes *bayes = state;
    return (struct dt_refits){.count = bayes->refits, .seconds = bayes->refit_seconds};
}

const struct dt_strategy dt_strategy_bayes = {
    .name = "bayes",
    .doc = "Bayesian optimisation: a Gaussian process on the logarithm of the value",
    .paper = "Jones, Schonlau, Welch 1998, Efficient global optimization of expensive black-box "
             "functions",
    .state_size = sizeof(struct bayes),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .tell = tell,
    .fini = fini,
    .note = note,
    .refits = refits,
};
