/* SPDX-License-Identifier: MIT */
#include "tuner/trial/compare.h"

#include "base/clock.h"
#include "base/rng.h"
#include "tuner/trial/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VISIT_SECONDS 0.02

void dt_entrant_fini(struct dt_entrant *entrant)
{
    dt_result_fini(&entrant->result);
}

bool dt_entrant_faster(const struct dt_entrant *entrant)
{
    return dt_judge_faster(&entrant->ratio);
}

bool dt_entrant_slower(const struct dt_entrant *entrant)
{
    return dt_judge_slower(&entrant->ratio);
}

bool dt_entrant_twin(const struct dt_entrant *entrant)
{
    return strcmp(entrant->role, "twin") == 0;
}

static dt_status make_resident(struct dt_rig *rig, struct dt_entrant *entrant, int64_t deadline_ns)
{
    DT_TRY(dt_rig_prepare(rig, &entrant->point, deadline_ns, &entrant->resident));
    dt_rig_describe(&entrant->resident, &entrant->result);
    if (entrant->resident.outcome != DT_TRIAL_OK) {
        dt_rig_release(rig, &entrant->resident);
        entrant->out = true;
        return DT_OK;
    }
    struct dt_result warm;
    dt_result_init(&warm, rig->target, &entrant->point);
    warm.cold_seconds = entrant->result.cold_seconds;
    dt_status status = dt_rig_run(rig, &entrant->resident, 2, "warmup",
                                  dt_measure_deadline(&warm, 2, deadline_ns), &warm);
    entrant->out = warm.outcome != DT_TRIAL_OK;
    if (entrant->out) {
        entrant->result.outcome = warm.outcome;
        memcpy(entrant->result.cause, warm.cause, sizeof warm.cause);
        dt_rig_release(rig, &entrant->resident);
    }
    dt_result_fini(&warm);
    return status;
}

double dt_visit_seconds(const struct dt_result *result, int from, int steps)
{
    double seconds[DT_VISIT_STEPS];
    dt_stats_over_ranks(result->ns + (size_t)from * (size_t)result->ranks, steps, result->ranks,
                        seconds, NULL);
    return dt_stats_median(seconds, steps);
}

static int steps_of_visit(const struct dt_entrant *entrant)
{
    const struct dt_result *result = &entrant->result;
    double step =
        result->steps > 0 ? dt_visit_seconds(result, result->steps - 1, 1) : result->cold_seconds;
    double n = step > 0 ? VISIT_SECONDS / step : 1;
    return n < 1 ? 1 : n > DT_VISIT_STEPS ? DT_VISIT_STEPS : (int)ceil(n);
}

/* One untimed step, then the timed ones. A group that died under another entrant is replaced first. */
static dt_status visit(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                       int64_t deadline_ns)
{
    entrant->visits[round] = NAN;
    if (!dt_group_alive(entrant->resident.group))
        DT_TRY(make_resident(rig, entrant, deadline_ns));
    if (entrant->out)
        return DT_OK;
    int steps = steps_of_visit(entrant);
    struct dt_result lead;
    dt_result_init(&lead, rig->target, &entrant->point);
    lead.cold_seconds = entrant->result.cold_seconds;
    dt_status status = dt_rig_run(rig, &entrant->resident, 1, "warmup",
                                  dt_measure_deadline(&lead, 1, deadline_ns), &lead);
    if (status == DT_OK && lead.outcome == DT_TRIAL_OK) {
        status =
            dt_rig_run(rig, &entrant->resident, steps, "measure",
                       dt_measure_deadline(&entrant->result, steps, deadline_ns), &entrant->result);
    } else if (status == DT_OK) {
        entrant->result.outcome = lead.outcome;
        memcpy(entrant->result.cause, lead.cause, sizeof lead.cause);
    }
    entrant->out = status == DT_OK && entrant->result.outcome != DT_TRIAL_OK;
    if (status == DT_OK && !entrant->out)
        entrant->visits[round] =
            dt_visit_seconds(&entrant->result, entrant->result.steps - steps, steps);
    dt_result_fini(&lead);
    return status;
}

void dt_compare_order(int order[], int n, int round, uint64_t seed)
{
    struct dt_rng rng = {
        .seed = seed, .stream = dt_rng_stream("compare"), .index = (uint64_t)(round / 2) * 64};
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)dt_rng_below(&rng, (uint64_t)i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
    for (int i = 0; round % 2 == 1 && i < n / 2; i++) {
        int keep = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = keep;
    }
}

/* The entrants as numbers; values: room for each, NAN where a visit failed. */
static void look_at(const struct dt_target *target, const struct dt_entrant entrants[], int n,
                    double values[][DT_ROUNDS_MOST], struct dt_judged judged[])
{
    for (int i = 0; i < n; i++) {
        const struct dt_entrant *entrant = &entrants[i];
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = target->objective->value(entrant->visits[k], entrant->result.batch,
                                                    entrant->result.devices);
        judged[i] = (struct dt_judged){.values = values[i],
                                       .out = entrant->out,
                                       .decisive = entrant->decisive,
                                       .twin = dt_entrant_twin(entrant),
                                       .ratio = entrant->ratio};
    }
}

/* After `rounds` rounds, the last of all when `last`; true: decided. */
static bool judge(const struct dt_target *target, struct dt_entrant entrants[], int n, int rounds,
                  bool last)
{
    double values[DT_ENTRANTS][DT_ROUNDS_MOST];
    struct dt_judged judged[DT_ENTRANTS];
    bool decided = false;
    look_at(target, entrants, n, values, judged);
    if (last)
        dt_judge_end(judged, n, rounds);
    else
        decided = dt_judge_look(judged, n, rounds);
    for (int i = 0; i < n; i++)
        entrants[i].ratio = judged[i].ratio;
    return decided;
}

/* One round in its order; *ended is set when the time was up before it was complete. */
static dt_status one_round(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                           const struct dt_compare *how, int round, bool *ended)
{
    int order[DT_ENTRANTS] = {0};
    dt_compare_order(order, n, round, how->seed);
    for (int k = 0; k < n; k++)
        entrants[k].visits[round] = NAN;
    for (int k = 0; k < n; k++) {
        struct dt_entrant *entrant = &entrants[order[k]];
        if (entrant->out || entrant->rests)
            continue;
        DT_TRY(visit(rig, entrant, round, how->deadline_ns + DT_NS_PER_SECOND));
        if (entrant->out && dt_clock_ns() >= how->deadline_ns) {
            entrant->result.outcome = DT_TRIAL_OK; /* not its fault: the comparison's time is up */
            entrant->out = false;
            *ended = true;
            return DT_OK;
        }
    }
    return DT_OK;
}

/* A twin must not cost the comparison its verdict: it goes when eight rounds like those before may not fit. */
static void spare_twin(struct dt_entrant entrants[], int n, const struct dt_compare *how, int round,
                       int64_t began_ns)
{
    int64_t now = dt_clock_ns();
    if (round == 0 || round >= dt_look_samples[0] || how->every_round)
        return;
    int64_t missing = (now - began_ns) / round * (dt_look_samples[0] - round);
    if (now + missing + missing / 4 <= how->deadline_ns)
        return;
    for (int i = 0; i < n; i++)
        if (dt_entrant_twin(&entrants[i]) && !entrants[i].out) {
            entrants[i].out = true;
            entrants[i].result.outcome = DT_TRIAL_INTERRUPTED;
        }
}

/* True: no further round is worth its time. */
static bool after_round(const struct dt_target *target, struct dt_entrant entrants[], int n,
                        const struct dt_compare *how, int rounds)
{
    bool decided = judge(target, entrants, n, rounds, false);
    if (how->decide != NULL)
        decided = how->decide(how->judge, entrants, n, rounds);
    return decided && !how->every_round;
}

/* Rounds until decided, the last look, or the time is up: a round that may not fit is not begun. */
static dt_status rounds_until(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                              const struct dt_compare *how, int *rounds)
{
    int64_t longest = 0, first = dt_clock_ns();
    int most = dt_look_samples[how->looks - 1];
    bool ended = false;
    dt_status status = DT_OK;
    while (*rounds < most && !entrants[0].out) {
        int64_t began = dt_clock_ns();
        spare_twin(entrants, n, how, *rounds, first);
        if (began + longest + longest / 4 > how->deadline_ns)
            break;
        status = one_round(rig, entrants, n, how, *rounds, &ended);
        if (status < 0 || ended)
            break;
        int64_t took = dt_clock_ns() - began;
        longest = took > longest ? took : longest;
        ++*rounds;
        if (how->progress != NULL)
            how->progress(how->context, *rounds, most);
        if (after_round(rig->target, entrants, n, how, *rounds))
            return DT_OK;
    }
    judge(rig->target, entrants, n, *rounds, true);
    return status;
}

/* The published samples are the visits, not their steps: steps in a row are not independent. */
static dt_status finish(struct dt_entrant *entrant, int rounds)
{
    struct dt_result *result = &entrant->result;
    if (result->steps == 0)
        return DT_OK;
    DT_TRY(dt_result_finish(result, dt_judge_level(rounds), false, 0));
    int n = 0;
    for (int k = 0; k < rounds; k++)
        if (isfinite(entrant->visits[k]))
            result->seconds[n++] = entrant->visits[k];
    if (n > 0) {
        result->n = n;
        result->summary = dt_stats_summary(result->seconds, n, dt_judge_level(rounds));
    }
    return DT_OK;
}

/* A twin that hangs must not use up the time of the plans: it gets what all before it took, and a second. */
static int64_t twin_deadline(const struct dt_compare *how, int64_t began_ns)
{
    int64_t now = dt_clock_ns(), until = now + (now - began_ns) + DT_NS_PER_SECOND;
    return until < how->deadline_ns ? until : how->deadline_ns;
}

dt_status dt_compare_run(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                         const struct dt_compare *how, int *rounds)
{
    int64_t entered = dt_clock_ns();
    *rounds = 0;
    dt_rig_fresh(rig, DT_NS_PER_SECOND);
    rig->pinned = true;
    dt_status status = DT_OK;
    for (int i = 0; i < n; i++) {
        dt_result_init(&entrants[i].result, rig->target, &entrants[i].point);
        entrants[i].result.clocks = &rig->clocks;
        entrants[i].resident = (struct dt_resident){0};
        entrants[i].ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
        entrants[i].out = false;
    }
    int64_t began = dt_clock_ns();
    for (int i = 0; i < n && status == DT_OK; i++)
        status = make_resident(rig, &entrants[i],
                               dt_entrant_twin(&entrants[i]) ? twin_deadline(how, began)
                                                             : how->deadline_ns);
    if (status == DT_OK)
        status = rounds_until(rig, entrants, n, how, rounds);
    for (int i = 0; i < n; i++) {
        dt_status finished = finish(&entrants[i], *rounds);
        status = status < 0 ? status : finished;
        dt_rig_release(rig, &entrants[i].resident);
    }
    rig->pinned = false;
    rig->compared_ns += dt_clock_ns() - entered;
    return status;
}

/* It was out when the round was over: an entrant that failed a visit was not asked again. */
static bool fell(const struct dt_entrant *entrant, int rounds)
{
    for (int k = 0; k < rounds; k++)
        if (!isfinite(entrant->visits[k]))
            return true;
    return false;
}

dt_status dt_compare_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                           int looks, int *rounds)
{
    bool out[DT_ENTRANTS] = {false}, decided = false;
    int made = 0, most = dt_look_samples[looks - 1];
    for (int i = 0; i < n; i++) {
        entrants[i].ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
        out[i] = entrants[i].out;
    }
    while (made < *rounds && made < most && !decided) {
        made++;
        for (int i = 0; i < n; i++)
            entrants[i].out = fell(&entrants[i], made);
        decided = judge(target, entrants, n, made, false);
    }
    for (int i = 0; i < n; i++)
        entrants[i].out = out[i];
    if (!decided && n > 0)
        judge(target, entrants, n, made, true);
    *rounds = made;
    for (int i = 0; i < n; i++)
        DT_TRY(finish(&entrants[i], made));
    return DT_OK;
}
