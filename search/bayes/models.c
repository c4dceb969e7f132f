/* SPDX-License-Identifier: MIT */
#include "search/bayes/models.h"
#include "base/array.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALF_LOG_TWO_PI 0.918938533204672741780

/* For u = -z > 0: phi(u) - u Q(u) = phi(u) (1 - u / h(u)), where h = phi / Q is the
 * hazard. The difference loses u^2 units of the last place; beyond FAR it is 1 / u^2 - 3 /
 * u^4 to the same precision. */
#define FAR 1e3

double dt_log_improvement(double z)
{
    if (z > -1)
        return log(exp(-z * z / 2 - HALF_LOG_TWO_PI) + z * gsl_cdf_ugaussian_P(z));
    double u = -z;
    if (u > FAR)
        return -z * z / 2 - HALF_LOG_TWO_PI - 2 * log(u) + log1p(-3 / (u * u));
    return -z * z / 2 - HALF_LOG_TWO_PI + log1p(-u / gsl_sf_hazard(u));
}

/* Q(u) >= u phi(u) / (1 + u^2) gives phi(u) / (1 + u^2) (Gordon 1941); above zero phi(z) + z. */
double dt_log_improvement_bound(double z)
{
    if (z < 0)
        return -z * z / 2 - HALF_LOG_TWO_PI - log1p(z * z);
    return log(0.39894228040143268 + z);
}

double dt_log_sum(double a, double b)
{
    double most = fmax(a, b);
    return most == -INFINITY ? most : most + log1p(exp(fmin(a, b) - most));
}

/* vote - probability that a candidate fails, learnt from failed trials
 *
 * Every answer votes on a candidate's success with the weight M(r) of the kernel; `weight` votes at
 * the average rate are the prior (the distance-weighted vote of Shepard 1968, smoothed).
 */

static void set_kernel(struct dt_vote *vote, const struct dt_kernel *kernel)
{
    vote->kernel = *kernel;
    vote->kernel.signal = vote->kernel.share = 1;
    vote->kernel.constant = vote->kernel.slope = 0;
}

dt_status dt_vote_init(struct dt_vote *vote, const struct dt_cloud *cloud, double weight)
{
    *vote = (struct dt_vote){.cloud = cloud, .weight = weight};
    for (int d = 0; d < cloud->dims; d++)
        vote->kernel.length[d] = 1;
    set_kernel(vote, &vote->kernel);
    vote->good = calloc(cloud->room + 1, sizeof *vote->good);
    vote->all = calloc(cloud->room + 1, sizeof *vote->all);
    vote->row = calloc(cloud->room + 1, sizeof *vote->row);
    if (vote->good == NULL || vote->all == NULL || vote->row == NULL) {
        dt_vote_fini(vote);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d plans", cloud->count);
    }
    return DT_OK;
}

void dt_vote_fini(struct dt_vote *vote)
{
    free(vote->at);
    free(vote->works);
    free(vote->good);
    free(vote->all);
    free(vote->row);
    *vote = (struct dt_vote){0};
}

static void count_votes(struct dt_vote *vote, int i, int first, int last)
{
    float *row = vote->row;
    dt_kernel_row(&vote->kernel, vote->cloud, vote->at[i], first, last - first, row);
    for (int k = first; k < last; k++) {
        vote->all[k] += row[k - first];
        vote->good[k] += vote->works[i] ? row[k - first] : 0;
    }
}

dt_status dt_vote_add(struct dt_vote *vote, int candidate, bool works)
{
    DT_TRY(DT_GROW(vote->at, vote->n, 1));
    DT_TRY(DT_GROW(vote->works, vote->n, 1));
    vote->at[vote->n] = candidate;
    vote->works[vote->n++] = works;
    vote->failures += !works;
    if (vote->failures == 1 && !works) /* votes are counted from the first failure on */
        dt_vote_refit(vote, &vote->kernel, 0, vote->cloud->count);
    else if (vote->failures > 0)
        count_votes(vote, vote->n - 1, 0, vote->cloud->count);
    return DT_OK;
}

void dt_vote_refit(struct dt_vote *vote, const struct dt_kernel *kernel, int first, int last)
{
    set_kernel(vote, kernel);
    for (int k = first; k < last; k++)
        vote->good[k] = vote->all[k] = 0;
    for (int i = 0; i < vote->n && vote->failures > 0; i++)
        count_votes(vote, i, first, last);
}

double dt_vote_works(const struct dt_vote *vote, int candidate)
{
    if (vote->failures == 0)
        return 1;
    double rate = (vote->n - vote->failures + 1.0) / (vote->n + 1.0);
    return ((double)vote->good[candidate] + vote->weight * rate) /
           ((double)vote->all[candidate] + vote->weight);
}

/* memory - probability that a candidate fits the memory, learnt from trials
 *
 * A process on the logarithm of the peak bytes. A plan that ran out of memory has no peak, but its
 * peak is above the capacity: it is observed as a normal with the mean and variance of the process'
 * prediction truncated at the capacity (Tobin 1958's censored value, by assumed density: Opper
 * 1998; Minka 2001), so that the model keeps its closed form. An unknown capacity is taken as that
 * of the largest plan that ran.
 */

enum { PEAKS = 2 }; /* needed for a model */

dt_status dt_memory_init(struct dt_memory *memory, const struct dt_cloud *cloud,
                         const struct dt_process_priors *priors, int64_t capacity_bytes)
{
    *memory = (struct dt_memory){.capacity = capacity_bytes > 0 ? log((double)capacity_bytes) : NAN,
                                 .largest = -INFINITY};
    return dt_process_init(&memory->process, cloud, priors);
}

void dt_memory_fini(struct dt_memory *memory)
{
    dt_process_fini(&memory->process);
}

/* Log bytes above which a plan does not fit. */
static double memory_limit(const struct dt_memory *memory)
{
    return isfinite(memory->capacity) ? memory->capacity : memory->largest;
}

dt_status dt_memory_ran(struct dt_memory *memory, int candidate, int64_t bytes)
{
    if (bytes <= 0)
        return DT_OK;
    memory->measured++;
    memory->largest = fmax(memory->largest, log((double)bytes));
    DT_TRY(dt_process_add(&memory->process, candidate, log((double)bytes), 0));
    /* Before the first fit the unit of the values would still be 1: two peaks give one. */
    return memory->measured <= PEAKS ? dt_process_scale(&memory->process) : DT_OK;
}

/* Mean and variance of a normal above a limit (Johnson, Kotz 1970, 13.7.1): with z = (limit - mean)
 * / deviation and the hazard h, mean + deviation h and variance (1 + z h - h^2). Divided by the
 * belief it leaves the normal observed. */
dt_status dt_memory_overran(struct dt_memory *memory, int candidate, bool *learnt)
{
    *learnt = memory->measured >= PEAKS;
    if (!*learnt)
        return DT_OK;
    memory->failures++;
    double mean = dt_process_mean(&memory->process, candidate);
    double deviation = dt_process_deviation(&memory->process, candidate);
    double z = (memory_limit(memory) - mean) / deviation, h = gsl_sf_hazard(z);
    double left = fmax(1 + z * h - h * h, 1e-6), above = mean + deviation * h;
    if (left > 1 - 1e-6) /* the model already expected it to be too large */
        return DT_OK;
    double variance = deviation * deviation * left / (1 - left);
    double value = mean + (above - mean) / (1 - left);
    return dt_process_add(&memory->process, candidate, value, variance);
}

double dt_memory_fits(const struct dt_memory *memory, int candidate)
{
    if (memory->measured < PEAKS || (memory->failures == 0 && !isfinite(memory->capacity)))
        return 1;
    double deviation = dt_process_deviation(&memory->process, candidate);
    return gsl_cdf_ugaussian_P(
        (memory_limit(memory) - dt_process_mean(&memory->process, candidate)) / deviation);
}

/* hint - a prior's values for the candidates, and its weight */

#define WORD   2.0 /* pseudo-trials for the prior's information on failures */
#define ROUNDS 50  /* steps of expectation maximisation; the weight converges to 1e-3 long before */

dt_status dt_hint_init(struct dt_hint *hint, const struct dt_candidates *candidates,
                       const struct dt_prior *prior)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    *hint = (struct dt_hint){.cloud = *cloud};
    hint->cloud.belief = calloc(cloud->room + 1, sizeof *hint->cloud.belief);
    hint->kind = calloc(cloud->room + 1, sizeof *hint->kind);
    if (hint->cloud.belief == NULL || hint->kind == NULL) {
        dt_hint_fini(hint);
        return dt_fail(DT_ENOMEM, "out of memory for what is believed of %d plans", cloud->count);
    }
    dt_hint_ask(hint, candidates, prior, 0, cloud->count);
    double sum = 0;
    for (int k = 0; k < cloud->count; k++)
        sum += (double)hint->cloud.belief[k];
    hint->centre = hint->values > 0 ? sum / hint->values : 0;
    for (int k = 0; k < cloud->count; k++)
        if (hint->kind[k] == DT_HINT_VALUE)
            hint->cloud.belief[k] -= (float)hint->centre;
    return DT_OK;
}

void dt_hint_fini(struct dt_hint *hint)
{
    free(hint->cloud.belief);
    free(hint->kind);
    *hint = (struct dt_hint){0};
}

void dt_hint_ask(struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_prior *prior, int first, int last)
{
    hint->cloud.count = candidates->cloud.count;
    for (int k = first; k < last; k++) {
        struct dt_point point;
        dt_candidates_at(candidates, k, &point);
        double value = prior->value(prior->context, &point);
        bool known = isfinite(value) && value > 0;
        hint->values += known - (hint->kind[k] == DT_HINT_VALUE);
        hint->kind[k] = (uint8_t)(known                       ? DT_HINT_VALUE
                                  : isinf(value) && value > 0 ? DT_HINT_FAILED
                                                              : DT_HINT_NONE);
        hint->cloud.belief[k] = known ? (float)(log(value) - hint->centre) : 0;
    }
}

enum { FAVOURED = 8 }; /* a prior favours at most one plan in so many */

struct believed {
    float value;
    int32_t candidate;
};

static int by_belief(const void *a, const void *b)
{
    const struct believed *x = a, *y = b;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

int dt_hint_next(const struct dt_hint *hint, const struct dt_candidates *candidates,
                 const struct dt_kernel *kernel, int top, struct dt_rng *rng)
{
    const struct dt_cloud *cloud = &hint->cloud;
    dt_auto_free struct believed *order = calloc((size_t)hint->values + 1, sizeof *order);
    int n = 0, best = -1, seen = 0;
    double most = -1;
    for (int k = 0; k < cloud->count && order != NULL; k++) {
        seen += candidates->seen[k];
        if (hint->kind[k] == DT_HINT_VALUE && !candidates->seen[k])
            order[n++] = (struct believed){cloud->belief[k], k};
    }
    if (n > 0)
        qsort(order, (size_t)n, sizeof *order, by_belief);
    int among = top < n / FAVOURED + 1 ? top : n / FAVOURED + 1; /* all of a small space are none */
    for (int i = 0; i < among && i < n; i++) {
        if (best >= 0 && (seen == 0 || dt_rng_below(rng, 2) == 0))
            continue;
        double distance = dt_candidates_nearest(candidates, kernel, order[i].candidate);
        if (best < 0 || distance > most) {
            most = distance;
            best = order[i].candidate;
        }
    }
    return best;
}

void dt_hint_answered(struct dt_hint *hint, int candidate, bool works)
{
    hint->tried[hint->kind[candidate]]++;
    hint->worked[hint->kind[candidate]] += works;
}

bool dt_hint_fails(const struct dt_hint *hint)
{
    return 2 * hint->worked[DT_HINT_VALUE] < hint->tried[DT_HINT_VALUE];
}

double dt_hint_works(const struct dt_hint *hint, int candidate)
{
    static const double rates[DT_HINT_KINDS] = {
        [DT_HINT_NONE] = 1, [DT_HINT_VALUE] = 1, [DT_HINT_FAILED] = 0.3};
    const int kind = hint->kind[candidate];
    if (kind == DT_HINT_NONE)
        return 1;
    return (hint->worked[kind] + rates[kind] * WORD) / (hint->tried[kind] + WORD);
}

double dt_hint_stack(const double first[], const double second[], int n, double trust)
{
    double weight = 0.5;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = trust;
        for (int i = 0; i < n; i++)
            sum += 1 / (1 + (1 - weight) / weight * exp(fmin(first[i] - second[i], 700)));
        weight = sum / (n + 2 * trust);
    }
    return weight;
}

/* cost - expected duration of a candidate's trial
 *
 *     seconds = setup + rate * value + switching [a new worker group must start]
 *
 * by least squares over the trials so far, with a little weight on the mean cost alone, so that one
 * trial is enough. A new group starts when an axis of role ranks or environment differs from the
 * previous trial. The weight of cost depends on the remaining budget: the exponent falls from 1 to
 * 0 (EI-cool; Lee, Perrone, Archambeau, Seeger 2020).
 */

#define RIDGE 0.1 /* in trials, as a share of a coefficient's scale */

enum { SETUP, RATE, SWITCHING, TERMS };

void dt_cost_init(struct dt_trial_cost *cost, const struct dt_space *space, double budget)
{
    *cost = (struct dt_trial_cost){.space = space, .budget = budget, .least = INFINITY};
}

/* A trial of the point starts a new worker group. */
static bool switches_weights(const struct dt_trial_cost *cost, const struct dt_point *point)
{
    for (int i = 0; i < dt_space_axes(cost->space) && cost->told; i++) {
        const struct dt_axis *axis = dt_space_axis(cost->space, i);
        bool starts = axis->role == DT_ROLE_RANKS || axis->role == DT_ROLE_REPLICAS;
        if ((starts || dt_axis_starts(axis)) && cost->before.index[i] != point->index[i])
            return true;
    }
    return !cost->told;
}

/* Ridge regression; a negative coefficient is left out and the others are fitted again. */
static void fit_trial_cost(struct dt_trial_cost *cost)
{
    bool out[TERMS] = {false};
    for (int round = 0; round < TERMS; round++) {
        double a[TERMS * TERMS], b[TERMS], x[TERMS];
        int worst = -1;
        for (int i = 0; i < TERMS; i++) {
            for (int j = 0; j < TERMS; j++)
                a[i * TERMS + j] = out[i] || out[j] ? 0 : cost->squares[i][j];
            double scale = i == SETUP ? 0 : cost->squares[i][i] / cost->n;
            a[i * TERMS + i] += out[i] ? 1 : RIDGE * scale + 1e-9 * (1 + cost->squares[i][i]);
            b[i] = out[i] ? 0 : cost->moments[i];
        }
        gsl_matrix_view left = gsl_matrix_view_array(a, TERMS, TERMS);
        gsl_vector_view right = gsl_vector_view_array(b, TERMS),
                        at = gsl_vector_view_array(x, TERMS);
        if (gsl_linalg_cholesky_decomp1(&left.matrix) != 0 ||
            gsl_linalg_cholesky_solve(&left.matrix, &right.vector, &at.vector) != 0)
            return;
        for (int i = 0; i < TERMS; i++)
            if (x[i] < 0 && (worst < 0 || x[i] < x[worst]))
                worst = i;
        memcpy(cost->line, x, sizeof x);
        if (worst < 0)
            return;
        out[worst] = true;
        cost->line[worst] = 0;
    }
}

void dt_cost_add(struct dt_trial_cost *cost, const struct dt_trial *trial)
{
    if (!(trial->cost > 0))
        return;
    cost->spent += trial->cost;
    if (isfinite(trial->value)) {
        const double term[TERMS] = {1, trial->value, switches_weights(cost, &trial->point)};
        for (int i = 0; i < TERMS; i++) {
            for (int j = 0; j < TERMS; j++)
                cost->squares[i][j] += term[i] * term[j];
            cost->moments[i] += term[i] * trial->cost;
        }
        cost->n++;
        cost->least = fmin(cost->least, trial->cost);
        fit_trial_cost(cost);
    }
    cost->before = trial->point;
    cost->told = true;
}

double dt_cost_seconds(const struct dt_trial_cost *cost, const struct dt_point *point, double value)
{
    if (cost->n == 0)
        return 1;
    double seconds = cost->line[SETUP] + cost->line[RATE] * value +
                     cost->line[SWITCHING] * switches_weights(cost, point);
    return fmax(seconds, cost->least / 2);
}

double dt_cost_exponent(const struct dt_trial_cost *cost)
{
    return cost->budget > 0 && cost->n > 0 ? fmax(0, 1 - cost->spent / cost->budget) : 0;
}
