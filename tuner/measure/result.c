/* SPDX-License-Identifier: MIT */
#include "tuner/measure/result.h"

#include "base/array.h"
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRIES_MOST 3 /* requests per trial to replace throttled samples */
#define DETECT_LEAST 8 /* measured steps needed to detect a steady part */

void dt_result_init(struct dt_result *result, const struct dt_target *target,
                    const struct dt_point *point)
{
    *result = (struct dt_result){.point = *point,
                                 .outcome = DT_TRIAL_OK,
                                 .ranks = dt_target_ranks(target, point),
                                 .batch = dt_target_batch(target, point),
                                 .devices = dt_target_devices(target, point),
                                 .cold_seconds = NAN,
                                 .verified_error = NAN,
                                 .image_error = NAN,
                                 .repeat_error = NAN,
                                 .busy = NAN,
                                 .others = NAN,
                                 .gpus = NAN,
                                 .summary = {.median = NAN, .interval = {NAN, NAN}}};
}

bool dt_result_disturbed(const struct dt_result *result)
{
    return result->others > DT_OTHERS_MOST || result->gpus > 0;
}

void dt_result_fini(struct dt_result *result)
{
    struct dt_worker_report *report = &result->report;
    struct dt_samples *samples = &result->samples;
    free(report->ns);
    free(report->requests);
    free(report->clock);
    json_decref(report->phases);
    json_decref(report->exchanges);
    json_decref(report->trace);
    json_decref(report->remarks);
    json_decref(report->loads);
    free(report->starts);
    *report = (struct dt_worker_report){0};
    dt_device_report_fini(&result->device);
    free(result->throttling.marks);
    result->throttling.marks = NULL;
    free(samples->seconds);
    free(samples->rank_seconds);
    free(samples->last);
    free(samples->process_seconds);
    *samples = (struct dt_samples){0};
}

/* value += other, saturating, since a worker may report any number. */
static void add_number(json_t *value, const json_t *other)
{
    json_int_t more = json_integer_value(other), sum;
    if (!json_is_integer(value))
        return;
    if (__builtin_add_overflow(json_integer_value(value), more, &sum))
        sum = more > 0 ? INT64_MAX : INT64_MIN;
    json_integer_set(value, sum);
}

static void add_integer(json_t *to, const json_t *from, const char *key)
{
    add_number(json_object_get(to, key), json_object_get(from, key));
}

/* One number a rank. */
static void add_ranks(json_t *to, const json_t *from, const char *key)
{
    json_t *list = json_object_get(to, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        add_number(json_array_get(list, i), json_array_get(json_object_get(from, key), i));
}

/* Adds rows of the same name; both lists come from one worker. */
static void add_rows(json_t *to, const json_t *from, const char *key)
{
    for (size_t i = 0; i < json_array_size(json_object_get(to, key)); i++) {
        json_t *row = json_array_get(json_object_get(to, key), i);
        const json_t *more = json_array_get(json_object_get(from, key), i);
        add_integer(row, more, "ns");
        add_integer(row, more, "bytes");
        add_integer(row, more, "in_flight_ns");
        add_integer(row, more, "count");
    }
}

/* Sums over all measured requests; a median of blocks stays that of the longest one. */
static dt_status add_phases(struct dt_worker_report *report, const struct dt_run *run)
{
    bool longest = run->steps > report->phase_steps || report->phases == NULL;
    json_t *sum = json_deep_copy(longest ? run->phases : report->phases);
    const json_t *other = longest ? report->phases : run->phases;
    if (sum == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (other != NULL) {
        add_integer(sum, other, "steps");
        add_integer(sum, other, "step_ns");
        add_integer(sum, other, "host_ns");
        add_ranks(sum, other, "cpu_ns");
        add_ranks(sum, other, "wall_ns");
        add_rows(sum, other, "exchanges");
        add_rows(sum, other, "kinds");
        add_rows(sum, other, "blocks");
    }
    json_decref(report->phases);
    report->phases = sum;
    report->phase_steps = longest ? run->steps : report->phase_steps;
    return DT_OK;
}

static dt_status add_request(struct dt_worker_report *report, int steps)
{
    DT_TRY(DT_RESIZE(report->requests, report->request_count + 1));
    report->warm_up_steps = report->request_count == 0 ? report->steps : report->warm_up_steps;
    report->requests[report->request_count++] = steps;
    return DT_OK;
}

/* old, more: values before and of this run; NAN where either has no clocks. */
static dt_status add_clock(struct dt_worker_report *report, const struct dt_run *run, size_t old,
                           size_t more)
{
    const size_t known = report->clock != NULL ? old : 0;
    DT_TRY(DT_RESIZE(report->clock, old + more));
    for (size_t i = known; i < old; i++)
        report->clock[i] = NAN;
    for (size_t i = 0; i < more; i++)
        report->clock[old + i] = run->clock != NULL ? run->clock[i] : NAN;
    return DT_OK;
}

static dt_status add_starts(struct dt_worker_report *report, const struct dt_run *run)
{
    if (run->starts == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(report->starts, report->start_count + run->start_count));
    memcpy(report->starts + report->start_count, run->starts,
           (size_t)run->start_count * sizeof *run->starts);
    report->start_count += run->start_count;
    return DT_OK;
}

dt_status dt_result_add(struct dt_result *result, const struct dt_run *run, bool measured)
{
    struct dt_worker_report *report = &result->report;
    size_t old = (size_t)report->steps * (size_t)run->ranks;
    size_t more = (size_t)run->steps * (size_t)run->ranks;
    DT_TRY(DT_RESIZE(report->ns, old + more));
    memcpy(report->ns + old, run->ns, more * sizeof *report->ns);
    DT_TRY(dt_device_report_add(&result->device, run, old, measured ? report->request_count : -1));
    if (run->clock != NULL || report->clock != NULL)
        DT_TRY(add_clock(report, run, old, more));
    if (measured)
        DT_TRY(add_request(report, run->steps));
    DT_TRY(add_starts(report, run));
    DT_TRY(dt_remarks_add(&report->remarks, run->remarks));
    report->steps += run->steps;
    result->ranks = run->ranks;
    return run->phases != NULL && measured ? add_phases(report, run) : DT_OK;
}

static dt_status make_room(const struct dt_result *result, struct dt_samples *samples)
{
    size_t steps = (size_t)result->report.steps + 1, ranks = (size_t)result->ranks + 1;
    free(samples->seconds);
    free(samples->rank_seconds);
    free(samples->last);
    samples->seconds = calloc(steps, sizeof *samples->seconds);
    samples->rank_seconds = calloc(ranks, sizeof *samples->rank_seconds);
    samples->last = calloc(ranks, sizeof *samples->last);
    if (samples->seconds == NULL || samples->rank_seconds == NULL || samples->last == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

dt_status dt_result_sum(struct dt_result *result, const long long *ns)
{
    struct dt_samples *samples = &result->samples;
    size_t ranks = (size_t)result->ranks;
    DT_TRY(make_room(result, samples));
    double *column = calloc((size_t)samples->n + 1, sizeof *column);
    if (column == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    samples->skew_seconds =
        dt_stats_over_ranks(ns, samples->n, result->ranks, samples->seconds, samples->last);
    for (size_t r = 0; r < ranks; r++) {
        for (int i = 0; i < samples->n; i++)
            column[i] = (double)ns[(size_t)i * ranks + r] * 1e-9;
        samples->rank_seconds[r] = dt_stats_median(column, samples->n);
    }
    free(column);
    return DT_OK;
}

/* Steps of one start depend on each other, and are printed after the program's own warm-up: a start is one observation, the median of its steps,
 * and the interval is over the starts, as over fresh processes. */
static dt_status finish_starts(struct dt_result *result, double level)
{
    struct dt_samples *samples = &result->samples;
    int count = 0;
    samples->steady = true;
    samples->start = 0;
    samples->n = result->report.steps;
    free(samples->process_seconds);
    samples->process_seconds = calloc((size_t)result->report.start_count, sizeof(double));
    if (samples->process_seconds == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(dt_result_sum(result, result->report.ns));
    for (int at = 0; count < result->report.start_count && at < samples->n; count++) {
        int steps = result->report.starts[count], left = samples->n - at;
        samples->process_seconds[count] =
            dt_stats_median(samples->seconds + at, steps < left ? steps : left);
        at += steps;
    }
    samples->processes = dt_stats_processes(samples->process_seconds, count, level);
    result->summary = dt_stats_summary(samples->process_seconds, count, level);
    if (count < result->report.steps) { /* some have several steps */
        result->summary.median = samples->processes.median;
        result->summary.interval = samples->processes.interval;
    }
    return DT_OK;
}

dt_status dt_result_finish(struct dt_result *result, double level, bool detect, int least)
{
    if (result->report.start_count > 0)
        return finish_starts(result, level);
    struct dt_samples *samples = &result->samples;
    int from = least < result->report.steps ? least : result->report.steps, start = 0;
    struct dt_kept kept;
    DT_TRY(make_room(result, samples));
    DT_TRY(dt_throttle_mark(result, from));
    DT_TRY(dt_throttle_keep(result, from, &kept));
    dt_stats_over_ranks(kept.ns, kept.n, result->ranks, samples->seconds, NULL);
    samples->steady = !detect || dt_stats_steady(samples->seconds, kept.n, &start);
    start = samples->steady ? start : 0;
    samples->start = start < kept.n ? kept.index[start] : from;
    samples->n = kept.n - start;
    dt_status status = dt_result_sum(result, kept.ns + (size_t)start * (size_t)result->ranks);
    dt_kept_fini(&kept);
    if (status == DT_OK)
        result->summary = dt_stats_summary(samples->seconds, samples->n, level);
    return status;
}

bool dt_result_detects(const struct dt_result *result)
{
    return result->report.steps - result->report.warm_up_steps >= DETECT_LEAST;
}

/* Number of samples that are not throttled. */
static int usable(const struct dt_result *result)
{
    return result->throttling.all ? 0 : result->samples.n;
}

/* A start counts as at most DT_START_SAMPLES samples, however many steps it has. */
static int count_starts(const struct dt_result *result)
{
    int counted = 0;
    for (int i = 0, at = 0; i < result->report.start_count && at < result->report.steps; i++) {
        int steps = result->report.starts[i];
        counted += steps < DT_START_SAMPLES ? steps : DT_START_SAMPLES;
        at += steps;
    }
    return counted;
}

int dt_result_counted(const struct dt_result *result)
{
    if (result->report.start_count > 0)
        return count_starts(result);
    return result->throttling.waits ? usable(result)
                                    : result->samples.n + result->throttling.unreplaced;
}

/* Requests replacements of throttled samples a few times; then the trial goes on without them. */
dt_status dt_result_look(struct dt_result *result)
{
    int need = dt_look_samples[result->look];
    if (result->report.start_count > 0) /* no clock tells of throttling */
        return dt_result_finish(result, 1 - dt_look_alpha[result->look], false, 0);
    DT_TRY(dt_result_finish(result, 1 - dt_look_alpha[result->look], dt_result_detects(result),
                            result->report.warm_up_steps));
    int n = usable(result), spoilt = result->throttling.count;
    bool lacking = spoilt > 0 && (n == 0 || (n < need && n + spoilt >= need));
    result->throttling.waits = lacking && result->throttling.retries < RETRIES_MOST;
    result->throttling.retries += result->throttling.waits;
    result->throttling.unreplaced =
        lacking && result->samples.n < need ? need - result->samples.n : 0;
    return DT_OK;
}

bool dt_result_next(struct dt_result *result)
{
    while (dt_result_counted(result) >= dt_look_samples[result->look]) {
        if (result->look + 1 == DT_LOOKS)
            return false;
        result->look++;
    }
    return true;
}

double dt_result_seconds(const struct dt_result *result, int n)
{
    double sum = 0;
    for (int i = result->report.steps - n; i < result->report.steps; i++) {
        const long long *row = result->report.ns + (size_t)i * (size_t)result->ranks;
        long long most = 0;
        for (int r = 0; r < result->ranks; r++)
            most = row[r] > most ? row[r] : most;
        sum += (double)most * 1e-9;
    }
    return sum;
}

dt_status dt_result_status(const struct dt_result *result)
{
    switch (result->outcome) {
    case DT_TRIAL_OK:
        return DT_OK;
    case DT_TRIAL_INFEASIBLE:
        return dt_fail(DT_EUSAGE, "%s", result->cause);
    case DT_TRIAL_MEMORY:
        return dt_fail(DT_EINFEASIBLE, "%s", result->cause);
    default:
        return dt_fail(DT_FAILED, "the plan failed (%s): %s", dt_outcome_text(result->outcome),
                       result->cause);
    }
}

double dt_result_slowdown(const struct dt_result *result)
{
    return result->slowdown > 0 ? result->slowdown : 1;
}

struct dt_trial dt_result_trial(const struct dt_result *result, const struct dt_target *target)
{
    struct dt_trial trial = {.point = result->point,
                             .outcome = result->outcome,
                             .value = NAN,
                             .low = NAN,
                             .high = NAN,
                             .seconds = result->summary.median,
                             .peak_bytes = result->peak_bytes,
                             .cost = result->cost_seconds};
    memcpy(trial.cause, result->cause, sizeof trial.cause);
    if (result->outcome == DT_TRIAL_OK || result->outcome == DT_TRIAL_SLOW) {
        const struct dt_objective *objective = target->objective;
        const struct dt_summary *summary = &result->summary;
        double times = dt_result_slowdown(result);
        trial.value = objective->value(summary->median / times, result->batch, result->devices);
        trial.low = objective->value(summary->interval.low / times, result->batch, result->devices);
        trial.high =
            objective->value(summary->interval.high / times, result->batch, result->devices);
        double variance = dt_stats_log_variance(&result->summary);
        trial.variance = isfinite(variance) ? variance : 0;
    }
    return trial;
}
