/* SPDX-License-Identifier: MIT */
/* Bayesian optimisation over a finite set: docs/search.md describes the model and its reasons. */
#include "base/array.h"
#include "base/figures.h"
#include "search/bayes/bayes_int.h"
#include "search/bayes/points/design.h"
#include "search/seen.h"

#include <math.h>
#include <stdlib.h>

#define UNLIKELY 0.05 /* a gain below this probability counts as unlikely */

enum { LEAST = 20, IN_A_ROW = 5 }; /* answers before it may stop; consecutive verdicts needed */

static const struct dt_knob knobs[] = {
    [DESIGN] = {"design", "trials before the model is used", 5, 1, 1000},
    [DRAWS] = {"draws", "candidates drawn for each of these trials; the farthest is taken", 400, 1,
               10000},
    [GROWTH] = {"growth", "growth of the number of answers after which the model is fitted again",
                1.2, 1.01, 10},
    [STARTS] = {"starts", "random starts of a fit, in addition to the previous fit", 1, 1, 50},
    [LENGTH] = {"length", "prior median of the length scales, of coordinates from 0 to 1", 0.74,
                0.01, 100},
    [LENGTH_SPREAD] = {"length_spread", "prior standard deviation of their logarithms", 1, 0.01,
                       10},
    [NOISE] = {"noise", "prior median of the noise variance, of standardised values", 5e-4, 1e-6,
               1},
    [VOTE] = {"vote", "weight of the average failure rate in the probability of success", 0.5, 1e-3,
              100},
    [CANDIDATES] = {"candidates", "most points that the model predicts", 100000, 100, 1e7},
    [TOP] = {"top", "with --prior: number of its best plans from which the first trials are chosen",
             40, 1, 1e6},
    [SLOPE] = {"slope", "with --prior: prior deviation of its exponent from 1", 0.5, 0, 10},
    [TRUST] = {"trust",
               "with --prior: pseudo-answers for each of the two models when they are weighted", 1,
               0.01, 1000},
    [THRESHOLD] = {"threshold", "least probability of success, drawn from 0 to this for each trial",
                   0.5, 0, 1},
    [COOLING] = {"cooling", "exponent of a trial's expected seconds at the start of the budget", 1,
                 0, 10},
    [STOP] = {"stop",
              "stops when a gain above 0.5 % is less probable than this; 0: never; -1: 0.05 with a "
              "budget in seconds, else never",
              -1, -1, 1},
    [KNOBS] = {.name = NULL},
};

static void fini(void *state)
{
    struct bayes *bayes = state;
    dt_bayes_close(bayes);
    dt_candidates_fini(&bayes->candidates);
}

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct bayes *bayes = state;
    *bayes = (struct bayes){.opts = *opts,
                            .rng = dt_rng_at(opts->seed, "bayes"),
                            .stop = {.gain = 1, .best = INFINITY}};
    for (int i = 0; i < KNOBS; i++)
        bayes->knobs[i] = opts->knobs != NULL ? opts->knobs[i] : knobs[i].fallback;
    DT_TRY(dt_candidates_init(&bayes->candidates, opts->space, (int)bayes->knobs[CANDIDATES],
                              &bayes->rng));
    bayes->spread = dt_design_kernel(&bayes->candidates);
    dt_status status = dt_bayes_open(bayes);
    if (status < 0)
        fini(bayes);
    return status;
}

static void forget(struct bayes *bayes, int candidate)
{
    for (int i = 0; i < bayes->outstanding.count; i++)
        if (bayes->outstanding.at[i] == candidate) {
            for (int j = i + 1; j < bayes->outstanding.count; j++)
                bayes->outstanding.at[j - 1] = bayes->outstanding.at[j];
            bayes->outstanding.count--;
            return;
        }
}

static dt_status remember(struct bayes *bayes, int candidate)
{
    DT_TRY(DT_GROW(bayes->outstanding.at, bayes->outstanding.count, 1));
    bayes->outstanding.at[bayes->outstanding.count++] = candidate;
    bayes->candidates.seen[candidate] = true;
    return DT_OK;
}

/* Adds the candidates from `count` on to the models. */
static void show(struct bayes *bayes, int count)
{
    if (bayes->candidates.cloud.count == count)
        return;
    dt_status status = dt_bayes_columns(bayes, count, bayes->candidates.cloud.count);
    if (status < 0)
        bayes->status = status;
}

/* Number of the point's candidate; a pool adds the point. */
static int place(struct bayes *bayes, const struct dt_point *point)
{
    const int count = bayes->candidates.cloud.count;
    int candidate = dt_candidates_add(&bayes->candidates, point);
    show(bayes, count);
    return candidate;
}

/* Adds the neighbours of a new best plan to a pool at once. */
static void look_closer(struct bayes *bayes, const struct dt_trial *trial)
{
    const int count = bayes->candidates.cloud.count;
    if (!(trial->value < bayes->stop.best))
        return;
    bayes->stop.best = trial->value;
    dt_candidates_surround(&bayes->candidates, &trial->point);
    show(bayes, count);
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct bayes *bayes = state;
    dt_bayes_wake(bayes);
    int candidate = place(bayes, &trial->point);
    if (candidate < 0)
        return;
    forget(bayes, candidate);
    bayes->outstanding.waiting = false;
    bayes->candidates.seen[candidate] = true;
    bayes->told += !bayes->answered[candidate];
    bayes->answered[candidate] = true;
    dt_status status = dt_bayes_learn(bayes, candidate, trial);
    if (status < 0)
        bayes->status = status;
    look_closer(bayes, trial);
}

/* A fit would disturb trials that are being timed, so it waits for their answers. When asked again with no answer in
 * between, it counts the missing ones as lost. */
static bool must_wait(struct bayes *bayes)
{
    int64_t outstanding = bayes->opts.seen->count - bayes->told;
    if (outstanding <= bayes->outstanding.lost)
        return false;
    if (bayes->outstanding.waiting)
        bayes->outstanding.lost = outstanding;
    bayes->outstanding.waiting = !bayes->outstanding.waiting;
    return bayes->outstanding.waiting;
}

/* A gain is unlikely below it; 0: the search does not stop for that. */
static double least_chance(const struct bayes *bayes)
{
    double chance = bayes->knobs[STOP];
    return chance >= 0 ? chance : bayes->opts.seconds > 0 ? 0.05 : 0;
}

/* Stop because a gain is too unlikely: not before LEAST answers, and not on one verdict, since the trials in between
 * correct an overconfident model. Never with a pool, which does not contain all plans. */
static bool enough(struct bayes *bayes)
{
    double chance = least_chance(bayes);
    if (!(chance > 0) || !bayes->candidates.whole || dt_bayes_answers(bayes) < LEAST)
        return false;
    bayes->stop.gain = dt_bayes_gain(bayes, chance);
    bayes->stop.unlikely = bayes->stop.gain < chance ? bayes->stop.unlikely + 1 : 0;
    return bayes->stop.unlikely >= IN_A_ROW;
}

static dt_status ask_model(struct bayes *bayes, int *candidate)
{
    if (dt_bayes_answers(bayes) >= bayes->knobs[GROWTH] * bayes->model[COLD].fitted) {
        if (must_wait(bayes))
            return DT_WAIT;
        DT_TRY(dt_bayes_refit(bayes));
    }
    DT_TRY(dt_bayes_believe(bayes));
    if (enough(bayes))
        return DT_DONE;
    *candidate = dt_bayes_choose(bayes);
    return DT_OK;
}

/* The next design point comes from the prior: every second one, so that the answers show whether the prior is right,
 * and not before the first success, since the prior's plans may all fail here. */
static bool prior_is_next(struct bayes *bayes)
{
    bool early = (int64_t)bayes->knobs[DESIGN] > bayes->opts.seen->count;
    bool may = bayes->models > 1 && early && dt_bayes_answers(bayes) > 0;
    return may && bayes->explored++ % 2 == 0 && !dt_hint_fails(&bayes->hint);
}

/* A point before there is a model: one the prior favours, or one far from those seen. */
static int explore(struct bayes *bayes)
{
    int candidate = -1;
    if (prior_is_next(bayes))
        candidate = dt_hint_next(&bayes->hint, &bayes->candidates, &bayes->spread,
                                 (int)bayes->knobs[TOP], &bayes->rng);
    if (candidate >= 0)
        return candidate;
    return dt_design_next(&bayes->candidates, &bayes->spread, (int)bayes->knobs[DRAWS],
                          &bayes->rng);
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct bayes *bayes = state;
    DT_TRY(bayes->status);
    int candidate = -1;
    if (dt_bayes_answers(bayes) < 2 || (int64_t)bayes->knobs[DESIGN] > bayes->opts.seen->count)
        candidate = explore(bayes);
    else {
        dt_status status = ask_model(bayes, &candidate);
        if (status != DT_OK)
            return status;
    }
    if (candidate >= 0) {
        bayes->candidates.seen[candidate] = true;
        dt_candidates_at(&bayes->candidates, candidate, point);
    } else if (bayes->candidates.whole || !dt_seen_draw(bayes->opts.seen, &bayes->rng, point))
        return DT_DONE;
    candidate = place(bayes, point); /* a pool may have duplicates: take the first */
    if (candidate < 0)
        return DT_OK;
    if (dt_seen_has(bayes->opts.seen, point)) { /* asked for already; the core asks again */
        bayes->candidates.seen[candidate] = true;
        return DT_OK;
    }
    return remember(bayes, candidate);
}

/* The rest of the design, but for plans of the prior, which depend on the answers, as do the points of a pool. */
static int64_t ahead(void *state)
{
    const struct bayes *bayes = state;
    bool fixed = bayes->models == 1 && bayes->candidates.whole;
    return fixed ? (int64_t)bayes->knobs[DESIGN] - bayes->opts.seen->count : 0;
}

static void note(const void *state, struct dt_text *out)
{
    const struct bayes *bayes = state;
    const char *between = "";
    if (bayes->stop.gain < 1) {
        double share = 100 * fmax(bayes->stop.gain, 1e-6);
        const char *below = bayes->stop.gain < 1e-6 ? "below " : "";
        if (bayes->stop.gain < UNLIKELY)
            dt_text_add(out, "a plan faster by 0.5 %% is unlikely (%s%.2g %%)", below, share);
        else
            dt_text_add(out, "the chance of a plan faster by 0.5 %% is %.2g %%", share);
        between = "; ";
    }
    if (bayes->refits.count > 0) {
        dt_text_add(out, "%s%d fits of the model took %s", between, bayes->refits.count,
                    dt_figure_of(bayes->refits.seconds).text);
        between = ", ";
    }
    if (dt_bayes_models(bayes) > 1)
        dt_text_add(out, "%sthe prior weighs %.2f", between, bayes->weight);
}

static struct dt_refits refits(const void *state)
{
    return ((const struct bayes *)state)->refits;
}

/* Computed for the stopping rule, which needs no accuracy above its limit. */
static struct dt_chance chance(const void *state)
{
    const struct bayes *bayes = state;
    return (struct dt_chance){.known = bayes->stop.gain < 1,
                              .least = bayes->stop.gain >= least_chance(bayes),
                              .share = bayes->stop.gain};
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
    .ahead = ahead,
    .fini = fini,
    .note = note,
    .refits = refits,
    .chance = chance,
};
