/* SPDX-License-Identifier: MIT */
/* Runs both models. The warm one is based on the prior and has only the candidates the prior knows; the cold one has
 * all. Their weights come from leave-one-out predictions of the answers. */
#include "base/clock.h"
#include "search/bayes/bayes_int.h"

#include <math.h>
#include <stdlib.h>

struct dt_process_priors dt_bayes_priors(const double knobs[])
{
    return (struct dt_process_priors){
        .length = {knobs[LENGTH], knobs[LENGTH_SPREAD]},
        .signal = {1, 1.5},
        .noise = {knobs[NOISE], 1.5},
        .share = {1, 1},
        .constant = 1,
        .slope = knobs[SLOPE] * knobs[SLOPE],
        .starts = (int)knobs[STARTS],
        .points = 300,
    };
}

dt_status dt_bayes_open(struct bayes *bayes)
{
    const struct dt_cloud *cloud = &bayes->candidates.cloud;
    const double *knobs = bayes->knobs;
    const struct dt_process_priors priors = dt_bayes_priors(knobs);
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

void dt_bayes_close(struct bayes *bayes)
{
    for (int m = 0; m < bayes->models; m++)
        dt_process_fini(&bayes->model[m]);
    dt_memory_fini(&bayes->memory);
    dt_hint_fini(&bayes->hint);
    dt_vote_fini(&bayes->vote);
    free(bayes->answered);
    free(bayes->outstanding.at);
}

int dt_bayes_answers(const struct bayes *bayes)
{
    return bayes->model[COLD].n - bayes->fantasies[COLD];
}

static bool knows(const struct bayes *bayes, int model, int candidate)
{
    return model == COLD || bayes->hint.kind[candidate] == DT_HINT_VALUE;
}

int dt_bayes_models(const struct bayes *bayes)
{
    return bayes->models > 1 && bayes->model[WARM].fitted > 0 ? 2 : 1;
}

bool dt_bayes_warm(const struct bayes *bayes, int candidate)
{
    return dt_bayes_models(bayes) > 1 && knows(bayes, WARM, candidate);
}

double dt_bayes_mean(const struct bayes *bayes, int candidate)
{
    double mean = dt_process_mean(&bayes->model[COLD], candidate);
    if (!dt_bayes_warm(bayes, candidate))
        return mean;
    return mean + bayes->weight * (dt_process_mean(&bayes->model[WARM], candidate) - mean);
}

void dt_bayes_wake(struct bayes *bayes)
{
    for (int m = 0; m < bayes->models; m++)
        for (; bayes->fantasies[m] > 0; bayes->fantasies[m]--)
            dt_process_pop(&bayes->model[m]);
    bayes->outstanding.believed = 0;
}

/* An outstanding point counts as an answer equal to its predicted mean (kriging believer; Ginsbourger, Le Riche,
 * Carraro 2010), so that the next one lies elsewhere. */
dt_status dt_bayes_believe(struct bayes *bayes)
{
    for (; bayes->outstanding.believed < bayes->outstanding.count; bayes->outstanding.believed++) {
        int k = bayes->outstanding.at[bayes->outstanding.believed];
        for (int m = 0; m < bayes->models; m++)
            if (knows(bayes, m, k) && m < dt_bayes_models(bayes)) {
                DT_TRY(
                    dt_process_add(&bayes->model[m], k, dt_process_mean(&bayes->model[m], k), 0));
                bayes->fantasies[m]++;
            }
    }
    return DT_OK;
}

dt_status dt_bayes_learn(struct bayes *bayes, int candidate, const struct dt_trial *trial)
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
        if (knows(bayes, m, candidate))
            DT_TRY(dt_process_add(&bayes->model[m], candidate, log(trial->value),
                                  fmax(trial->variance, 0)));
    return DT_OK;
}

dt_status dt_bayes_columns(struct bayes *bayes, int first, int last)
{
    if (bayes->models > 1)
        dt_hint_ask(&bayes->hint, &bayes->candidates, bayes->opts.prior, first, last);
    for (int m = 0; m < bayes->models; m++)
        DT_TRY(dt_process_columns(&bayes->model[m], first, last));
    DT_TRY(dt_process_columns(&bayes->memory.process, first, last));
    dt_vote_refit(&bayes->vote, &bayes->vote.kernel, first, last);
    return DT_OK;
}

/* Compares the models on the answers that both have; the warm one's are an ordered subset of the cold one's. */
static dt_status weigh(struct bayes *bayes)
{
    const struct dt_process *cold = &bayes->model[COLD], *warm = &bayes->model[WARM];
    double *first = calloc((size_t)cold->n + 1, sizeof *first);
    double *second = calloc((size_t)warm->n + 1, sizeof *second);
    if (first == NULL || second == NULL) {
        free(first);
        free(second);
        return dt_fail(DT_ENOMEM, "out of memory for %d answers", cold->n);
    }
    dt_status status = dt_process_leave_one_out(cold, first);
    if (status == DT_OK)
        status = dt_process_leave_one_out(warm, second);
    int n = 0;
    for (int i = 0; i < cold->n && status == DT_OK; i++)
        if (knows(bayes, WARM, cold->at[i]))
            first[n++] = first[i];
    if (status == DT_OK)
        bayes->weight = dt_hint_stack(first, second, n, bayes->knobs[TRUST]);
    free(first);
    free(second);
    return status;
}

/* Draws the pool anew, around the plans with the least expected values. */
static dt_status renew(struct bayes *bayes)
{
    enum { CENTRES = 8 };
    const struct dt_process *cold = &bayes->model[COLD];
    struct dt_point centres[CENTRES];
    double least[CENTRES];
    int n = 0;
    if (bayes->candidates.whole)
        return DT_OK;
    for (int i = 0; i < cold->n; i++) {
        double mean = dt_bayes_mean(bayes, cold->at[i]);
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
    return dt_bayes_columns(bayes, 0, bayes->candidates.cloud.count);
}

dt_status dt_bayes_refit(struct bayes *bayes)
{
    int64_t start = dt_clock_thread_ns();
    dt_bayes_wake(bayes);
    DT_TRY(renew(bayes));
    for (int m = 0; m < bayes->models; m++)
        if (bayes->model[m].n > 0)
            DT_TRY(dt_process_fit(&bayes->model[m], &bayes->rng));
    dt_vote_refit(&bayes->vote, &bayes->model[COLD].kernel, 0, bayes->candidates.cloud.count);
    if (bayes->memory.process.n > 1)
        DT_TRY(dt_process_fit(&bayes->memory.process, &bayes->rng));
    if (bayes->models > 1)
        DT_TRY(weigh(bayes));
    bayes->refits.count++;
    bayes->refits.seconds += (double)(dt_clock_thread_ns() - start) / (double)DT_NS_PER_SECOND;
    return DT_OK;
}
