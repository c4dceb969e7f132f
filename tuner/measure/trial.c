/* SPDX-License-Identifier: MIT */
/* Warm-up: two more steps after the two of verification, always, and as long as requested; then the steady part of the
 * measured series is found by dt_stats_steady at every look, so that a slow start is excluded by index and an endless
 * one is reported. A slow start at a constant level that outlasts the first look cannot be detected: the long warm-up
 * is for that. */
#include "tuner/measure/trial.h"

#include "base/clock.h"
#include "search/racing.h"
#include "tuner/measure/exchange.h"
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARMUP_STEPS 2
#define WARMUP_MOST  256 /* limit of warm-up steps */
#define WARMUP_CHUNK 16  /* steps per request: the clock is checked in between */
#define PATIENCE     2   /* a request that has had so many times what its steps should take hangs */
#define MOST_STEPS   96  /* limit of all steps: 64 steady ones and a long warm-up */

int64_t dt_measure_deadline(const struct dt_result *result, int steps, int64_t deadline_ns)
{
    double cold = isfinite(result->cold_seconds) ? result->cold_seconds : 60.0;
    int64_t most = dt_clock_ns() + (int64_t)(fmin(5.0 + 10.0 * cold * steps, 1e6) * 1e9);
    return most < deadline_ns ? most : deadline_ns;
}

static dt_status steps(struct dt_rig *rig, struct dt_resident *resident, int n, enum dt_mode mode,
                       const struct dt_measure *how, struct dt_result *result)
{
    int64_t began = dt_clock_ns(), deadline_ns = dt_measure_deadline(result, n, how->deadline_ns);
    dt_status status = dt_rig_run(rig, resident, n, mode, deadline_ns, result);
    double given = (double)(how->deadline_ns - began) * 1e-9;
    result->report.share_ended =
        deadline_ns == how->deadline_ns && !(given > PATIENCE * result->cold_seconds * n);
    result->report.wall_seconds = (double)(dt_clock_ns() - began) * 1e-9 / n;
    return status;
}

/* Samples to ask for so that the trial's time limit is not overrun; at least one. */
static int affordable(const struct dt_result *result, const struct dt_measure *how, int wanted)
{
    double last = result->report.steps > 0
                      ? fmax(dt_result_seconds(result, 1), result->report.wall_seconds)
                      : result->cold_seconds;
    if (result->report.start_count > 0) /* the first start was made by the prepare */
        last = fmax(last, result->cold_seconds);
    double left = (double)(how->deadline_ns - dt_clock_ns()) * 1e-9 * 0.9;
    if (!(last > 0) || left >= last * wanted)
        return wanted;
    int n = (int)(left / last);
    return n < 1 ? 1 : n;
}

static bool past(const struct dt_measure *how)
{
    return dt_clock_ns() >= how->deadline_ns;
}

/* Warms up until the steps, or the wall clock, have taken the time. */
static dt_status warm_up(struct dt_rig *rig, struct dt_resident *resident,
                         const struct dt_measure *how, struct dt_result *result)
{
    int n = WARMUP_STEPS;
    int64_t end = dt_clock_ns() + (int64_t)(how->warm_seconds * 1e9);
    while (n > 0) {
        DT_TRY(steps(rig, resident, n, DT_MODE_WARMUP, how, result));
        if (result->outcome != DT_TRIAL_OK || past(how) || dt_clock_ns() >= end)
            return DT_OK;
        double missing = (how->warm_seconds - dt_result_seconds(result, result->report.steps)) /
                         dt_result_seconds(result, 1);
        int room = WARMUP_MOST - result->report.steps;
        room = room < WARMUP_CHUNK ? room : WARMUP_CHUNK;
        n = missing < room ? (int)ceil(missing) : room;
        n = n > 0 ? affordable(result, how, n) : 0;
    }
    return DT_OK;
}

/* Objective values of a result's samples, or of its starts. */
static int values_of(const struct dt_target *target, const struct dt_result *result, double out[])
{
    bool starts = result->report.start_count > 0;
    const double *seconds = starts ? result->samples.process_seconds : result->samples.seconds;
    int n = starts ? result->samples.processes.n : result->samples.n;
    n = n < MOST_STEPS ? n : MOST_STEPS;
    for (int i = 0; i < n; i++)
        out[i] = target->objective->value(seconds[i], result->batch, result->devices);
    return n;
}

/* Races against the incumbent; waits while throttled samples are being replaced. */
static enum dt_race_next race(const struct dt_target *target, const struct dt_result *result,
                              const struct dt_measure *how)
{
    double ours[1 + MOST_STEPS] = {result->cold_seconds}, best[MOST_STEPS];
    int until;
    if (how->incumbent == NULL || result->throttling.waits)
        return DT_RACE_MORE;
    struct dt_race race = {
        .best = best, .best_count = values_of(target, how->incumbent, best), .most = MOST_STEPS};
    for (int i = 0; i < race.best_count && how->incumbent_times > 0; i++)
        best[i] *= how->incumbent_times;
    return dt_race_look(&race, ours, 1 + values_of(target, result, ours + 1), &until);
}

static bool narrow(const struct dt_result *result, const struct dt_measure *how)
{
    const struct dt_summary *summary = &result->summary;
    double width = (summary->interval.high - summary->interval.low) / 2;
    return width <= how->half_width * summary->median && result->samples.steady;
}

/* Starts to ask for where each step is one: the first, then those that the look misses, by how many steps each has. */
static int starts_wanted(const struct dt_result *result, bool racing)
{
    int made = result->report.start_count;
    if (made == 0)
        return 1;
    if (racing && made < DT_RACE_WARM)
        return DT_RACE_WARM - made;
    double each = (double)dt_result_counted(result) / made;
    return (int)ceil((dt_look_samples[result->look] - dt_result_counted(result)) / each);
}

/* No further start fits: what there is counts. */
static bool no_more_starts(const struct dt_result *result, const struct dt_measure *how)
{
    return result->report.start_count > 0 &&
           (double)(how->deadline_ns - dt_clock_ns()) * 1e-9 < result->cold_seconds;
}

/* Timed steps of a trial, at most. */
static int most_steps(const struct dt_target *target)
{
    int most = target->worker.samples;
    return most > 0 && most < MOST_STEPS ? most : MOST_STEPS;
}

static dt_status looks(struct dt_rig *rig, struct dt_resident *resident,
                       const struct dt_measure *how, struct dt_result *result)
{
    int least = result->report.steps, most = most_steps(rig->target);
    while (dt_result_next(result)) {
        bool first = result->report.request_count == 0 && how->incumbent != NULL;
        int missing = dt_look_samples[result->look] - dt_result_counted(result);
        int n = affordable(result, how,
                           rig->target->image.starts ? starts_wanted(result, how->incumbent != NULL)
                           : first                   ? DT_RACE_WARM
                                                     : missing);
        int left = least + most - result->report.steps;
        n = rig->target->image.starts || n < left ? n : left;
        DT_TRY(steps(rig, resident, n, DT_MODE_MEASURE, how, result));
        if (result->outcome != DT_TRIAL_OK)
            return DT_OK;
        DT_TRY(dt_result_look(result));
        enum dt_race_next next = race(rig->target, result, how);
        if (next == DT_RACE_DROP) {
            result->outcome = DT_TRIAL_SLOW;
            snprintf(result->cause, sizeof result->cause, "dropped after %d samples",
                     result->samples.n);
            return DT_OK;
        }
        if (past(how) || no_more_starts(result, how) ||
            (result->report.start_count == 0 && result->report.steps - least >= most))
            return DT_OK;
        if (dt_result_counted(result) < dt_look_samples[result->look])
            continue;
        if (next == DT_RACE_SLOWER || narrow(result, how) ||
            (how->rest_ns > 0 && dt_clock_ns() >= how->rest_ns))
            return DT_OK;
    }
    return DT_OK;
}

/* An extra request; *answer may be NULL when the worker fails it (which fails the trial only if it should write the
 * output). */
static dt_status ask(struct dt_resident *resident, json_t *request, const char *want,
                     const struct dt_measure *how, struct dt_result *result, json_t **answer)
{
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    dt_status status =
        dt_group_call(resident->group, request, want, how->deadline_ns, answer, &failure);
    json_decref(request);
    if (status != DT_FAILED)
        return status;
    if (strcmp(want, "written") == 0) {
        result->outcome = failure.outcome;
        memcpy(result->cause, failure.cause, sizeof result->cause);
    }
    if (!dt_group_alive(resident->group))
        resident->group = NULL;
    return DT_OK;
}

static dt_status measure_peak(struct dt_resident *resident, const struct dt_measure *how,
                              struct dt_result *result)
{
    json_t *answer = NULL;
    DT_TRY(ask(resident, json_pack("{s:s}", "op", "peak"), "peak", how, result, &answer));
    result->report.flop_peak = json_number_value(json_object_get(answer, "flop_rate"));
    result->report.copy_peak = json_number_value(json_object_get(answer, "copy_bytes_per_second"));
    json_decref(answer);
    return DT_OK;
}

/* A worker without it does not fail the trial. */
static dt_status trace(struct dt_resident *resident, const struct dt_measure *how,
                       struct dt_result *result)
{
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    json_t *answer = NULL, *request = json_pack("{s:s, s:i, s:i}", "op", "trace", "handle",
                                                resident->handle, "n", how->trace);
    dt_status status =
        dt_group_call(resident->group, request, "traced", how->deadline_ns, &answer, &failure);
    json_decref(request);
    if (status < 0 && status != DT_FAILED)
        return status;
    json_decref(result->report.trace);
    result->report.trace =
        status == DT_FAILED ? json_pack("{s:s}", "reason", failure.cause) : answer;
    if (!dt_group_alive(resident->group))
        resident->group = NULL;
    return DT_OK;
}

static dt_status write_output(struct dt_resident *resident, const struct dt_measure *how,
                              struct dt_result *result)
{
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s, s:i, s:s}", "op", "write", "handle", resident->handle,
                                "path", how->output);
    DT_TRY(ask(resident, request, "written", how, result, &answer));
    json_decref(answer);
    return DT_OK;
}

static dt_status measure_resident(struct dt_rig *rig, struct dt_resident *resident,
                                  const struct dt_measure *how, struct dt_result *result)
{
    if (!rig->target->image.starts)
        DT_TRY(warm_up(rig, resident, how, result));
    if (result->outcome == DT_TRIAL_OK)
        DT_TRY(looks(rig, resident, how, result));
    if (how->output != NULL && result->outcome == DT_TRIAL_OK)
        DT_TRY(write_output(resident, how, result));
    if (result->outcome == DT_TRIAL_OK && !past(how))
        DT_TRY(dt_rig_verify_again(rig, resident, dt_measure_deadline(result, 3, how->deadline_ns),
                                   result));
    if (how->trace > 0 && resident->group != NULL && result->outcome == DT_TRIAL_OK)
        DT_TRY(trace(resident, how, result));
    if (how->exchanges && resident->group != NULL)
        DT_TRY(dt_exchange_measure(rig->target, resident, how->deadline_ns, result));
    if (how->peak && resident->group != NULL)
        DT_TRY(measure_peak(resident, how, result));
    return DT_OK;
}

/* A plan whose preparation was extended beyond the deadline still has time for its first look. */
static int64_t deadline_of_steps(const struct dt_result *result, const struct dt_measure *how)
{
    if (!past(how))
        return how->deadline_ns;
    return dt_measure_deadline(result, WARMUP_STEPS + dt_look_samples[0], how->until_ns);
}

static dt_status measure_plan(struct dt_rig *rig, const struct dt_point *point,
                              const struct dt_measure *how, struct dt_result *result)
{
    struct dt_resident resident;
    int64_t began = dt_clock_ns(), reference_ns = rig->costs.setup_ns - rig->costs.start_ns;
    struct dt_measure timed = *how;
    rig->until_ns = how->until_ns;
    dt_result_init(result, rig->target, point);
    result->throttling.clocks = &rig->clocks;
    dt_status status = dt_rig_prepare(rig, point, how->deadline_ns, &resident);
    if (status == DT_OK) {
        dt_rig_describe(&resident, result);
        timed.deadline_ns = deadline_of_steps(result, how);
        if (resident.outcome == DT_TRIAL_OK)
            status = measure_resident(rig, &resident, &timed, result);
        if (status == DT_OK)
            status = dt_clocks_learn(&rig->clocks, result);
        dt_rig_release(rig, &resident);
    }
    result->cost_seconds = (double)(dt_clock_ns() - began) * 1e-9;
    result->reference_seconds =
        (double)(rig->costs.setup_ns - rig->costs.start_ns - reference_ns) * 1e-9;
    return status;
}

/* With what others did on the cores meanwhile. */
dt_status dt_measure_plan(struct dt_rig *rig, const struct dt_point *point,
                          const struct dt_measure *how, struct dt_result *result)
{
    struct dt_load_reading *readings = malloc(2 * sizeof *readings);
    if (readings == NULL) {
        dt_result_init(result, rig->target, point);
        return dt_fail(DT_ENOMEM, "out of memory");
    }
    rig->gpu_use = (struct dt_gpu_use){.count = NAN};
    dt_load_read(&readings[0]);
    dt_status status = measure_plan(rig, point, how, result);
    dt_load_read(&readings[1]);
    if (status == DT_OK)
        status = dt_rig_watch_gpus(rig, DT_GPUS_COMPUTE);
    struct dt_load load = dt_load_between(&readings[0], &readings[1]);
    result->busy = load.ours;
    result->others = load.others;
    result->gpus = rig->gpu_use.count;
    free(readings);
    return status == DT_OK && how->keep != NULL ? how->keep(how->context, result) : status;
}

dt_status dt_measure_ceilings(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              struct dt_result *result)
{
    const struct dt_measure how = {.deadline_ns = deadline_ns};
    struct dt_resident resident;
    DT_TRY(dt_rig_prepare(rig, point, deadline_ns, &resident));
    dt_status status = resident.outcome == DT_TRIAL_OK && resident.group != NULL
                           ? measure_peak(&resident, &how, result)
                           : DT_OK;
    dt_rig_release(rig, &resident);
    return status;
}
