/* SPDX-License-Identifier: MIT */
/* Bayesian optimisation over a finite set: docs/search.md describes the model and its reasons. */
#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "search/bayes/candidates.h"
#include "search/bayes/importance.h"
#include "search/bayes/models.h"
#include "search/bayes/process.h"
#include "search/search.h"
#include "search/seen.h"
#include "search/trial.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>

/* Rows of the knobs, in order. */
enum knob {
    DESIGN,
    DRAWS,
    GROWTH,
    STARTS,
    LENGTH,
    LENGTH_SPREAD,
    NOISE,
    VOTE,
    CANDIDATES,
    TOP,
    SLOPE,
    TRUST,
    THRESHOLD,
    COOLING,
    STOP,
    KNOBS
};

/* Models of the log value: COLD from the answers alone, WARM around the prior. */
enum { COLD, WARM, MODELS };

/* Candidates that were asked for and not yet told. */
struct outstanding {
    int32_t *at; /* [count] in the order of asking; owned */
    int count;
    int believed; /* how many of them have a fantasy in the models */
    bool waiting; /* waiting for answers before a fit; none came yet */
    int64_t lost; /* answers that will not come */
};

/* State of the stopping rule. */
struct stop {
    double best;  /* least value told */
    double gain;  /* probability of a gain when last computed; 1 before */
    int unlikely; /* consecutive verdicts that a gain is unlikely */
};

struct bayes {
    struct dt_search_opts opts;
    struct dt_rng rng;
    struct dt_candidates candidates;
    struct dt_kernel spread; /* distances of the design */
    int models;              /* 1 without a prior */
    struct dt_process model[MODELS];
    double weight; /* weight of the model WARM */
    struct dt_hint hint;
    struct dt_memory memory;
    struct dt_vote vote; /* for the probability of success */
    struct dt_trial_cost cost;
    int explored;   /* design points so far, from the prior and others */
    int told;       /* number of candidates no longer outstanding */
    bool *answered; /* [room] */
    struct outstanding outstanding;
    int fantasies[MODELS];
    struct stop stop;
    struct dt_refits refits;
    dt_status status; /* error of a tell, returned by the next ask */
};

/* Runs both models. The warm one is based on the prior and has only the candidates the prior knows;
 * the cold one has all. Their weights come from leave-one-out predictions of the answers. */

/* Priors of the models of log values. */
static struct dt_process_priors bayes_priors(const double values[])
{
    return (struct dt_process_priors){
        .length = {values[LENGTH], values[LENGTH_SPREAD]},
        .signal = {1, 1.5},
        .noise = {values[NOISE], 1.5},
        .share = {1, 1},
        .constant = 1,
        .slope = values[SLOPE] * values[SLOPE],
        .starts = (int)values[STARTS],
        .points = 300,
    };
}

/* Creates the empty models. DT_ENOMEM. */
static dt_status bayes_open(struct bayes *bayes)
{
    const struct dt_cloud *cloud = &bayes->candidates.cloud;
    const double *knobs = bayes->opts.knobs;
    const struct dt_process_priors priors = bayes_priors(knobs);
    DT_TRY(dt_process_init(&bayes->model[COLD], cloud, &priors));
    bayes->models = 1;
    struct dt_process_priors sizes = priors;
    sizes.noise.median = 1e-4; /* peak bytes do not vary between runs */
    DT_TRY(dt_memory_init(&bayes->memory, cloud, &sizes, bayes->opts.capacity_bytes));
    DT_TRY(dt_vote_init(&bayes->vote, cloud, knobs[VOTE]));
    dt_cost_init(&bayes->cost, bayes->opts.space, bayes->opts.seconds);
    bayes->answered = calloc(cloud->room + 1, sizeof *bayes->answered);
    if (bayes->answered == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d plans", cloud->count);
    if (bayes->opts.prior == NULL)
        return DT_OK;
    DT_TRY(dt_hint_init(&bayes->hint, &bayes->candidates, bayes->opts.prior));
    DT_TRY(dt_process_init(&bayes->model[WARM], &bayes->hint.cloud, &priors));
    bayes->models = 2;
    bayes->weight = 0.5;
    return DT_OK;
}

static void bayes_fini(void *state)
{
    struct bayes *bayes = state;
    for (int m = 0; m < bayes->models; m++)
        dt_process_fini(&bayes->model[m]);
    dt_memory_fini(&bayes->memory);
    dt_hint_fini(&bayes->hint);
    dt_vote_fini(&bayes->vote);
    free(bayes->answered);
    free(bayes->outstanding.at);
    dt_candidates_fini(&bayes->candidates);
}

/* Number of real answers with a value in the cold model. */
static int bayes_answers(const struct bayes *bayes)
{
    return bayes->model[COLD].n - bayes->fantasies[COLD];
}

static bool model_knows(const struct bayes *bayes, int model, int candidate)
{
    return model == COLD || bayes->hint.kind[candidate] == DT_HINT_VALUE;
}

/* Number of models whose means may be used: 2 once the warm model was fitted, since it has no
 * unit or scale before. */
static int bayes_models(const struct bayes *bayes)
{
    return bayes->models > 1 && bayes->model[WARM].fitted > 0 ? 2 : 1;
}

/* Both models have a mean of the candidate. */
static bool bayes_warm(const struct bayes *bayes, int candidate)
{
    return bayes_models(bayes) > 1 && model_knows(bayes, WARM, candidate);
}

/* Expected log value of a candidate. */
static double bayes_mean(const struct bayes *bayes, int candidate)
{
    double mean = dt_process_mean(&bayes->model[COLD], candidate);
    if (!bayes_warm(bayes, candidate))
        return mean;
    return mean + bayes->weight * (dt_process_mean(&bayes->model[WARM], candidate) - mean);
}

/* Removes the fantasies; needed before an answer is added or a fit begins. */
static void bayes_wake(struct bayes *bayes)
{
    for (int m = 0; m < bayes->models; m++)
        for (; bayes->fantasies[m] > 0; bayes->fantasies[m]--)
            dt_process_pop(&bayes->model[m]);
    bayes->outstanding.believed = 0;
}

/* An outstanding point counts as an answer equal to its predicted mean (kriging believer;
 * Ginsbourger, Le Riche, Carraro 2010), so that the next one lies elsewhere. */
static dt_status bayes_believe(struct bayes *bayes)
{
    for (; bayes->outstanding.believed < bayes->outstanding.count; bayes->outstanding.believed++) {
        int k = bayes->outstanding.at[bayes->outstanding.believed];
        for (int m = 0; m < bayes->models; m++)
            if (model_knows(bayes, m, k) && m < bayes_models(bayes)) {
                DT_TRY(
                    dt_process_add(&bayes->model[m], k, dt_process_mean(&bayes->model[m], k), 0));
                bayes->fantasies[m]++;
            }
    }
    return DT_OK;
}

/* Adds the answer of a candidate; there must be no fantasies. */
static dt_status bayes_learn(struct bayes *bayes, int candidate, const struct dt_trial *trial)
{
    if (trial->outcome == DT_TRIAL_INTERRUPTED)
        return DT_OK;
    bool works = isfinite(trial->value) && trial->value > 0, sized = false;
    dt_cost_add(&bayes->cost, trial);
    if (works)
        DT_TRY(dt_memory_ran(&bayes->memory, candidate, trial->peak_bytes));
    else if (trial->outcome == DT_TRIAL_MEMORY)
        DT_TRY(dt_memory_overran(&bayes->memory, candidate, &sized));
    if (!sized) /* a failure explained by memory does not count against neighbours */
        DT_TRY(dt_vote_add(&bayes->vote, candidate, works));
    if (bayes->models > 1)
        dt_hint_answered(&bayes->hint, candidate, works);
    for (int m = 0; m < bayes->models && works; m++)
        if (model_knows(bayes, m, candidate))
            DT_TRY(dt_process_add(&bayes->model[m], candidate, log(trial->value),
                                  fmax(trial->variance, 0)));
    return DT_OK;
}

/* Updates the models after candidates first .. last - 1 changed. */
static dt_status bayes_columns(struct bayes *bayes, int first, int last)
{
    if (bayes->models > 1)
        dt_hint_ask(&bayes->hint, &bayes->candidates, bayes->opts.prior, first, last);
    for (int m = 0; m < bayes->models; m++)
        DT_TRY(dt_process_columns(&bayes->model[m], first, last));
    DT_TRY(dt_process_columns(&bayes->memory.process, first, last));
    dt_vote_refit(&bayes->vote, &bayes->vote.kernel, first, last);
    return DT_OK;
}

/* Compares the models on the answers that both have; the warm one's are an ordered
 * subset of the cold one's. */
static dt_status models_weigh(struct bayes *bayes)
{
    const struct dt_process *cold = &bayes->model[COLD], *warm = &bayes->model[WARM];
    dt_auto_free double *first = calloc((size_t)cold->n + 1, sizeof *first);
    dt_auto_free double *second = calloc((size_t)warm->n + 1, sizeof *second);
    if (first == NULL || second == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d answers", cold->n);
    DT_TRY(dt_process_leave_one_out(cold, first));
    DT_TRY(dt_process_leave_one_out(warm, second));
    int n = 0;
    for (int i = 0; i < cold->n; i++)
        if (model_knows(bayes, WARM, cold->at[i]))
            first[n++] = first[i];
    bayes->weight = dt_hint_stack(first, second, n, bayes->opts.knobs[TRUST]);
    return DT_OK;
}

/* Draws the pool anew, around the plans with the least expected values. */
static dt_status pool_renew(struct bayes *bayes)
{
    enum { CENTRES = 8 };
    const struct dt_process *cold = &bayes->model[COLD];
    struct dt_point centres[CENTRES];
    double least[CENTRES];
    int n = 0;
    if (bayes->candidates.whole)
        return DT_OK;
    for (int i = 0; i < cold->n; i++) {
        double mean = bayes_mean(bayes, cold->at[i]);
        int k = n < CENTRES ? n++ : CENTRES - 1;
        if (k == CENTRES - 1 && i >= CENTRES && mean >= least[k])
            continue;
        for (; k > 0 && least[k - 1] > mean; k--) {
            least[k] = least[k - 1];
            centres[k] = centres[k - 1];
        }
        least[k] = mean;
        dt_candidates_at(&bayes->candidates, cold->at[i], &centres[k]);
    }
    dt_candidates_renew(&bayes->candidates, centres, n, &bayes->rng);
    return bayes_columns(bayes, 0, bayes->candidates.cloud.count);
}

/* Fits hyper-parameters and weights to the answers again. */
static dt_status bayes_refit(struct bayes *bayes)
{
    int64_t start = dt_clock_thread_ns();
    bayes_wake(bayes);
    DT_TRY(pool_renew(bayes));
    for (int m = 0; m < bayes->models; m++)
        if (bayes->model[m].n > 0)
            DT_TRY(dt_process_fit(&bayes->model[m], &bayes->rng));
    dt_vote_refit(&bayes->vote, &bayes->model[COLD].kernel, 0, bayes->candidates.cloud.count);
    if (bayes->memory.process.n > 1)
        DT_TRY(dt_process_fit(&bayes->memory.process, &bayes->rng));
    if (bayes->models > 1)
        DT_TRY(models_weigh(bayes));
    bayes->refits.count++;
    bayes->refits.seconds += (double)(dt_clock_thread_ns() - start) / (double)DT_NS_PER_SECOND;
    return DT_OK;
}

/* The greatest expected improvement of the logarithm of the value over the incumbent, times the
 * probability of success, over all candidates. The incumbent is the least posterior mean of the
 * answered candidates, not the least sample, which is lucky under noise. Two models' improvements
 * are mixed with their weights. */

/* Least expected log value of a candidate that was answered. */
static double bayes_incumbent(const struct bayes *bayes)
{
    const struct dt_process *process = &bayes->model[COLD];
    double least = INFINITY;
    for (int i = 0; i < process->n; i++)
        least = fmin(least, bayes_mean(bayes, process->at[i]));
    return least;
}

/* Probability that a trial of the candidate succeeds. */
static double bayes_works(const struct bayes *bayes, int k)
{
    double chance = dt_vote_works(&bayes->vote, k) * dt_memory_fits(&bayes->memory, k);
    return bayes->models > 1 ? chance * dt_hint_works(&bayes->hint, k) : chance;
}

/* Log of the expected improvement, or of its cheaper bound when `exact` is false. */
static double candidate_improvement(const struct bayes *bayes, int k, double best, bool exact)
{
    double sum = -INFINITY;
    bool both = bayes_warm(bayes, k);
    for (int m = 0; m <= both; m++) {
        const struct dt_process *process = &bayes->model[m];
        double deviation = dt_process_deviation(process, k);
        double z = (best - dt_process_mean(process, k)) / deviation;
        double one = exact ? dt_log_improvement(z) : dt_log_improvement_bound(z);
        one += log(deviation);
        if (both)
            one += log(m == WARM ? bayes->weight : 1 - bayes->weight);
        sum = m == 0 ? one : exact ? dt_log_sum(sum, one) : fmax(sum, one) + M_LN2;
    }
    return sum;
}

/* -exponent * log(seconds of the candidate), in units of half the cheapest trial: never
 * positive. */
static double candidate_price(const struct bayes *bayes, int k, double exponent)
{
    struct dt_point point;
    if (!(exponent > 0))
        return 0;
    dt_candidates_at(&bayes->candidates, k, &point);
    double seconds = dt_cost_seconds(&bayes->cost, &point, exp(bayes_mean(bayes, k)));
    return -exponent * log(seconds / (bayes->cost.least / 2));
}

/* The best candidate whose probability of success is above the threshold; -1: none. */
static int choose_above(const struct bayes *bayes, double best, double threshold)
{
    const double exponent = bayes->opts.knobs[COOLING] * dt_cost_exponent(&bayes->cost);
    double most = -INFINITY;
    int chosen = -1;
    for (int k = 0; k < bayes->candidates.cloud.count; k++) {
        if (bayes->candidates.seen[k] ||
            (chosen >= 0 && candidate_improvement(bayes, k, best, false) < most))
            continue;
        double works = bayes_works(bayes, k);
        if (!(works >= threshold))
            continue;
        double score = candidate_improvement(bayes, k, best, true) + log(works) +
                       candidate_price(bayes, k, exponent);
        if (chosen < 0 || score > most) {
            most = score;
            chosen = k;
        }
    }
    return chosen;
}

/* The best candidate to try; -1 when all were seen.
 * The threshold is drawn anew each time, so that the boundary of the working region is probed, too
 * (BaCO; Hellsten et al. 2023). */
static int bayes_choose(struct bayes *bayes)
{
    const double best = bayes_incumbent(bayes);
    double threshold = bayes->opts.knobs[THRESHOLD] * (double)dt_rng_below(&bayes->rng, 11) / 10;
    int chosen = choose_above(bayes, best, threshold);
    return chosen >= 0 || threshold <= 0 ? chosen : choose_above(bayes, best, 0);
}

/* Probability that some candidate is better than the incumbent by more than DT_GAIN. The
 * likeliest ones are drawn jointly, DRAWS times, from their joint posterior K - V'V, each
 * failing with its own probability; the others count as if they excluded one another, so that
 * the sum is too large rather than too small (the stopping rule of Makarova et al. 2022 by draws
 * instead of confidence bounds). */

enum { LIKELY = 64, DRAWS_EACH = 512 };

struct likely {
    int n;
    int32_t at[LIKELY];
    double chance[LIKELY]; /* probabilities of a gain, descending */
    double rest;           /* sum over all others */
};

static double chance_of(const struct bayes *bayes, int k, double target)
{
    bool both = bayes_warm(bayes, k);
    double chance = 0;
    for (int m = 0; m <= both; m++) {
        double weight = !both ? 1 : m == WARM ? bayes->weight : 1 - bayes->weight;
        const struct dt_process *process = &bayes->model[m];
        chance += weight * gsl_cdf_ugaussian_P((target - dt_process_mean(process, k)) /
                                               dt_process_deviation(process, k));
    }
    return chance * bayes_works(bayes, k);
}

static void likely_insert(struct likely *likely, int32_t k, double chance)
{
    int at = likely->n;
    if (at == LIKELY) {
        likely->rest += fmin(chance, likely->chance[LIKELY - 1]);
        if (chance <= likely->chance[--at])
            return;
    } else
        likely->n++;
    for (; at > 0 && likely->chance[at - 1] < chance; at--) {
        likely->chance[at] = likely->chance[at - 1];
        likely->at[at] = likely->at[at - 1];
    }
    likely->chance[at] = chance;
    likely->at[at] = k;
}

/* Share of one model's draws in which a likely candidate gains; without draws, the sum
 * of the probabilities. */
static double gain_drawn(struct bayes *bayes, int model, const struct likely *likely, double target)
{
    double bound = 0;
    for (int i = 0; i < likely->n; i++)
        bound += likely->chance[i];
    const struct dt_process *process = &bayes->model[model];
    double covariance[LIKELY * LIKELY], normal[LIKELY];
    const size_t n = (size_t)likely->n;
    /* V is in single precision: a small remaining variance is rounding error. */
    const double rounding = 1e-5 * process->kernel.signal * process->scale * process->scale;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            covariance[i * n + j] = dt_process_covariance(process, likely->at[i], likely->at[j]) +
                                    (i == j ? rounding : 0);
    gsl_matrix_view factor = gsl_matrix_view_array(covariance, n, n);
    if (gsl_linalg_cholesky_decomp1(&factor.matrix) != 0)
        return bound;
    int gains = 0;
    for (int draw = 0; draw < DRAWS_EACH; draw++) {
        bool gain = false;
        for (size_t i = 0; i < n; i++)
            normal[i] = dt_rng_normal(&bayes->rng);
        for (size_t i = 0; i < n && !gain; i++) {
            double value = dt_process_mean(process, likely->at[i]);
            for (size_t j = 0; j <= i; j++)
                value += covariance[i * n + j] * normal[j];
            gain =
                value < target && dt_rng_uniform(&bayes->rng) < bayes_works(bayes, likely->at[i]);
        }
        gains += gain;
    }
    return (double)gains / DRAWS_EACH;
}

/* Probability that some candidate is better than the incumbent by more than 0.5 %; accurate
 * only below `enough`. */
static double bayes_gain(struct bayes *bayes, double enough)
{
    const double target = bayes_incumbent(bayes) + log1p(-DT_GAIN);
    struct likely likely = {0};
    for (int k = 0; k < bayes->candidates.cloud.count; k++)
        if (!bayes->candidates.seen[k])
            likely_insert(&likely, k, chance_of(bayes, k, target));
    if (likely.n == 0)
        return 0;
    if (likely.chance[0] >= enough) /* the first alone suffices */
        return likely.chance[0];
    double chance = 0;
    const int models = bayes_models(bayes);
    for (int m = 0; m < models; m++) {
        double weight = models == 1 ? 1 : m == WARM ? bayes->weight : 1 - bayes->weight;
        chance += weight * gain_drawn(bayes, m, &likely, target);
    }
    return fmin(chance + likely.rest, 1);
}

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
    [TOP] = {"top",
             "with --prior: number of its best plans, at most an eighth of them, from which the "
             "first trials are chosen",
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

static dt_status bayes_init(void *state, const struct dt_search_opts *opts)
{
    struct bayes *bayes = state;
    *bayes = (struct bayes){.opts = *opts,
                            .rng = dt_rng_at(opts->seed, "bayes"),
                            .stop = {.gain = 1, .best = INFINITY}};
    DT_TRY(dt_candidates_init(&bayes->candidates, opts->space, (int)bayes->opts.knobs[CANDIDATES],
                              &bayes->rng));
    bayes->spread = dt_design_kernel(&bayes->candidates);
    dt_status status = bayes_open(bayes);
    if (status < 0)
        bayes_fini(bayes);
    return status;
}

static void outstanding_remove(struct bayes *bayes, int candidate)
{
    for (int i = 0; i < bayes->outstanding.count; i++)
        if (bayes->outstanding.at[i] == candidate) {
            for (int j = i + 1; j < bayes->outstanding.count; j++)
                bayes->outstanding.at[j - 1] = bayes->outstanding.at[j];
            bayes->outstanding.count--;
            return;
        }
}

static dt_status outstanding_add(struct bayes *bayes, int candidate)
{
    DT_TRY(DT_GROW(bayes->outstanding.at, bayes->outstanding.count, 1));
    bayes->outstanding.at[bayes->outstanding.count++] = candidate;
    bayes->candidates.seen[candidate] = true;
    return DT_OK;
}

/* Adds the candidates from `count` on to the models. */
static void candidates_show(struct bayes *bayes, int count)
{
    if (bayes->candidates.cloud.count == count)
        return;
    dt_status status = bayes_columns(bayes, count, bayes->candidates.cloud.count);
    if (status < 0)
        bayes->status = status;
}

/* Number of the point's candidate; a pool adds the point. */
static int candidate_place(struct bayes *bayes, const struct dt_point *point)
{
    const int count = bayes->candidates.cloud.count;
    int candidate = dt_candidates_add(&bayes->candidates, point);
    candidates_show(bayes, count);
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
    candidates_show(bayes, count);
}

static void bayes_tell(void *state, const struct dt_trial *trial)
{
    struct bayes *bayes = state;
    bayes_wake(bayes);
    int candidate = candidate_place(bayes, &trial->point);
    if (candidate < 0)
        return;
    outstanding_remove(bayes, candidate);
    bayes->outstanding.waiting = false;
    bayes->candidates.seen[candidate] = true;
    bayes->told += !bayes->answered[candidate];
    bayes->answered[candidate] = true;
    dt_status status = bayes_learn(bayes, candidate, trial);
    if (status < 0)
        bayes->status = status;
    look_closer(bayes, trial);
}

/* A fit would disturb trials that are being timed, so it waits for their answers. When asked again
 * with no answer in between, it counts the missing ones as lost. */
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
    double chance = bayes->opts.knobs[STOP];
    return chance >= 0 ? chance : bayes->opts.seconds > 0 ? 0.05 : 0;
}

/* Stop because a gain is too unlikely: not before LEAST answers, and not on one verdict,
 * since the trials in between correct an overconfident model. Never with a pool, which does
 * not contain all plans. */
static bool has_enough(struct bayes *bayes)
{
    double chance = least_chance(bayes);
    if (!(chance > 0) || !bayes->candidates.whole || bayes_answers(bayes) < LEAST)
        return false;
    bayes->stop.gain = bayes_gain(bayes, chance);
    bayes->stop.unlikely = bayes->stop.gain < chance ? bayes->stop.unlikely + 1 : 0;
    return bayes->stop.unlikely >= IN_A_ROW;
}

static dt_status ask_model(struct bayes *bayes, int *candidate)
{
    if (bayes_answers(bayes) >= bayes->opts.knobs[GROWTH] * bayes->model[COLD].fitted) {
        if (must_wait(bayes))
            return DT_WAIT;
        DT_TRY(bayes_refit(bayes));
    }
    DT_TRY(bayes_believe(bayes));
    if (has_enough(bayes))
        return DT_DONE;
    *candidate = bayes_choose(bayes);
    return DT_OK;
}

/* The next design point comes from the prior: every second one, so that the answers show whether
 * the prior is right, and not before the first success, since the prior's
 * plans may all fail here. */
static bool prior_is_next(struct bayes *bayes)
{
    bool early = (int64_t)bayes->opts.knobs[DESIGN] > bayes->opts.seen->count;
    bool may = bayes->models > 1 && early && bayes_answers(bayes) > 0;
    return may && bayes->explored++ % 2 == 0 && !dt_hint_fails(&bayes->hint);
}

/* A point before there is a model: one the prior favours, or one far from those seen. */
static int explore_next(struct bayes *bayes)
{
    int candidate = -1;
    if (prior_is_next(bayes))
        candidate = dt_hint_next(&bayes->hint, &bayes->candidates, &bayes->spread,
                                 (int)bayes->opts.knobs[TOP], &bayes->rng);
    if (candidate >= 0)
        return candidate;
    return dt_design_next(&bayes->candidates, &bayes->spread, (int)bayes->opts.knobs[DRAWS],
                          &bayes->rng);
}

static dt_status bayes_ask(void *state, struct dt_point *point)
{
    struct bayes *bayes = state;
    DT_TRY(bayes->status);
    int candidate = -1;
    if (bayes_answers(bayes) < 2 || (int64_t)bayes->opts.knobs[DESIGN] > bayes->opts.seen->count)
        candidate = explore_next(bayes);
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
    candidate = candidate_place(bayes, point); /* a pool may have duplicates: take the first */
    if (candidate < 0)
        return DT_OK;
    if (dt_seen_has(bayes->opts.seen, point)) { /* asked for already; the core asks again */
        bayes->candidates.seen[candidate] = true;
        return DT_OK;
    }
    return outstanding_add(bayes, candidate);
}

/* The rest of the design, but for plans of the prior, which depend on the answers, as do
 * the points of a pool. */
static int64_t bayes_ahead(void *state)
{
    const struct bayes *bayes = state;
    bool fixed = bayes->models == 1 && bayes->candidates.whole;
    return fixed ? (int64_t)bayes->opts.knobs[DESIGN] - bayes->opts.seen->count : 0;
}

static void bayes_note(const void *state, struct dt_text *out)
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
    if (bayes_models(bayes) > 1)
        dt_text_add(out, "%sthe prior weighs %.2f", between, bayes->weight);
}

static struct dt_refits bayes_refits(const void *state)
{
    return ((const struct bayes *)state)->refits;
}

/* Computed for the stopping rule, which needs no accuracy above its limit. */
static struct dt_chance bayes_chance(const void *state)
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
    .init = bayes_init,
    .ask = bayes_ask,
    .tell = bayes_tell,
    .ahead = bayes_ahead,
    .fini = bayes_fini,
    .note = bayes_note,
    .refits = bayes_refits,
    .chance = bayes_chance,
};

enum { TRIALS = 300, PLANS = 4000 };

static bool has_value(const struct dt_trial *trial)
{
    return isfinite(trial->value) && trial->value > 0;
}

/* Adds at most TRIALS of them, evenly spread. */
static dt_status importance_learn(struct dt_process *process, struct dt_candidates *candidates,
                                  const struct dt_trial trials[], int n)
{
    int valued = 0, seen = 0;
    for (int i = 0; i < n; i++)
        valued += has_value(&trials[i]);
    const int every = 1 + (valued - 1) / TRIALS;
    for (int i = 0; i < n; i++) {
        if (!has_value(&trials[i]) || seen++ % every != 0)
            continue;
        const int known = candidates->cloud.count,
                  k = dt_candidates_add(candidates, &trials[i].point);
        if (k >= known)
            DT_TRY(dt_process_columns(process, known, candidates->cloud.count));
        if (k >= 0)
            DT_TRY(dt_process_add(process, k, log(trials[i].value), fmax(trials[i].variance, 0)));
    }
    return DT_OK;
}

/* Variance of the axis' marginal means over that of all predictions. */
static double share_of(const struct dt_candidates *candidates, const double predicted[], int plans,
                       int axis)
{
    const int values = dt_space_axis(candidates->space, axis)->count;
    double mean = 0, between = 0, total = 0;
    dt_auto_free double *sum = calloc((size_t)values + 1, sizeof *sum);
    dt_auto_free int *count = calloc((size_t)values + 1, sizeof *count);
    for (int k = 0; k < plans; k++)
        mean += predicted[k] / plans;
    for (int k = 0; sum != NULL && count != NULL && k < plans; k++) {
        struct dt_point point;
        dt_candidates_at(candidates, k, &point);
        sum[point.index[axis]] += predicted[k] - mean;
        count[point.index[axis]]++;
        total += (predicted[k] - mean) * (predicted[k] - mean);
    }
    for (int v = 0; sum != NULL && count != NULL && v < values; v++)
        between += count[v] > 0 ? sum[v] * sum[v] / count[v] : 0;
    return total > 0 ? fmin(between / total, 1) : 0;
}

static bool importance_shares(const struct dt_process *process,
                              const struct dt_candidates *candidates, int plans, double share[])
{
    double low = INFINITY, high = -INFINITY;
    dt_auto_free double *predicted = calloc((size_t)plans + 1, sizeof *predicted);
    for (int k = 0; predicted != NULL && k < plans; k++) {
        predicted[k] = dt_process_mean(process, k);
        low = fmin(low, predicted[k]);
        high = fmax(high, predicted[k]);
    }
    const bool differ = high > low;
    for (int a = 0; differ && a < dt_space_axes(candidates->space); a++)
        share[a] = share_of(candidates, predicted, plans, a);
    return differ;
}

bool dt_importance(const struct dt_space *space, const struct dt_trial trials[], int n,
                   uint64_t seed, double share[])
{
    double fallbacks[KNOBS];
    for (int i = 0; i < KNOBS; i++)
        fallbacks[i] = knobs[i].fallback;
    const struct dt_process_priors priors = bayes_priors(fallbacks);
    struct dt_rng rng = dt_rng_at(seed, "importance");
    DT_CLEANUP(dt_candidates_fini) struct dt_candidates candidates = {.space = NULL};
    DT_CLEANUP(dt_process_fini) struct dt_process process = {.n = 0};
    if (dt_candidates_init(&candidates, space, PLANS, &rng) < 0)
        return false;
    const int plans = candidates.cloud.count; /* without plans of trials that a pool gets */
    return dt_process_init(&process, &candidates.cloud, &priors) == DT_OK &&
           importance_learn(&process, &candidates, trials, n) == DT_OK &&
           process.n >= DT_IMPORTANCE_LEAST && dt_process_fit(&process, &rng) == DT_OK &&
           importance_shares(&process, &candidates, plans, share);
}
