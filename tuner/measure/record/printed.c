/* SPDX-License-Identifier: MIT */
/* What --json prints of a plan. */
#include "tuner/measure/record/result_json.h"

#include "space/json/json.h"

#include <math.h>

static double positive_or_nan(double value)
{
    return value > 0 ? value : NAN;
}

/* NAN: null. */
static json_t *numbers(const double x[], int n)
{
    json_t *array = json_array();
    for (int i = 0; x != NULL && i < n; i++)
        json_array_append_new(array, dt_kind_real.write(&x[i]));
    return array;
}

static json_t *interval_json(struct dt_interval interval)
{
    return numbers((const double[]){interval.low, interval.high}, 2);
}

static struct dt_printed_series series_of(const struct dt_result *result)
{
    const struct dt_series *series = &result->summary.series;
    return (struct dt_printed_series){.known = true,
                                      .autocorrelated = series->autocorrelated,
                                      .drifting = series->drifting,
                                      .stepped = series->stepped,
                                      .bimodal = series->bimodal,
                                      .throttled = result->throttling.count > 0,
                                      .interval_unreliable = result->summary.unreliable,
                                      .outliers_mild = series->outliers_mild,
                                      .outliers_severe = series->outliers_severe,
                                      .lag1 = series->lag1};
}

/* One process, unless more were requested: an interval over its samples need not hold for the next process. */
static struct dt_printed_processes processes_of(const struct dt_result *result)
{
    const struct dt_samples *samples = &result->samples;
    bool several = samples->process_seconds != NULL;
    struct dt_interval none = {NAN, NAN};
    return (struct dt_printed_processes){
        .known = true,
        .count = several ? samples->processes.n : 1,
        .medians_seconds = several ? numbers(samples->process_seconds, samples->processes.n)
                                   : numbers(&result->summary.median, samples->n > 0),
        .median_seconds = result->summary.median,
        .interval_seconds = interval_json(several ? samples->processes.interval : none)};
}

static struct dt_printed_samples samples_of(const struct dt_result *result)
{
    const struct dt_samples *samples = &result->samples;
    const struct dt_summary *summary = &result->summary;
    return (struct dt_printed_samples){
        .known = true,
        .median_seconds = summary->median,
        .interval_seconds = interval_json(summary->interval),
        .interval_level = summary->level,
        .samples_seconds = numbers(samples->seconds, samples->n),
        .rank_seconds = numbers(samples->rank_seconds, samples->n > 0 ? result->ranks : 0),
        .skew_seconds = samples->skew_seconds,
        .last_counts = dt_json_ints(samples->last, result->ranks),
        .warmup_steps = samples->start,
        .throttled_steps = result->throttling.count,
        .steady = samples->steady,
        .series = series_of(result),
        .processes = processes_of(result)};
}

static struct dt_printed_rates rates_of(const struct dt_result *result,
                                        const struct dt_target *target)
{
    double step = result->summary.median, flops = target->image.flops * result->batch;
    double rate = positive_or_nan(flops) / step, peak = positive_or_nan(result->report.flop_peak);
    double image = step * target->image.sampler_steps;
    return (struct dt_printed_rates){.known = true,
                                     .samples_per_second = result->batch / step,
                                     .flops = flops > 0 ? (int64_t)flops : 0,
                                     .flop_rate = rate,
                                     .peak_flop_rate = peak,
                                     .peak_fraction = rate / peak,
                                     .images_per_second = result->batch / image,
                                     .device_seconds_per_image =
                                         image * result->devices / result->batch};
}

static struct dt_printed_device device_of(const struct dt_result *result)
{
    const struct dt_device_report *report = &result->device;
    if (report->ns == NULL && report->host_ns == NULL && report->telemetry == NULL &&
        report->memory == NULL)
        return (struct dt_printed_device){.known = false};
    struct dt_two_clocks clocks = dt_device_clocks(result);
    struct dt_device_memory memory = dt_device_memory(result);
    return (struct dt_printed_device){.known = true,
                                      .median_seconds = clocks.device_seconds,
                                      .excess_seconds = clocks.excess_seconds,
                                      .judged = clocks.judged,
                                      .clocks_disagree = clocks.disagree,
                                      .telemetry = json_incref(report->telemetry),
                                      .throttle_reasons = dt_device_report_reasons(result),
                                      .memory = json_incref(report->memory),
                                      .memory_used = memory.used,
                                      .memory_taken = memory.taken,
                                      .memory_full = memory.full};
}

json_t *dt_result_samples_json(const struct dt_result *result)
{
    struct dt_printed_samples samples = samples_of(result);
    return dt_record_json(&dt_record_printed_samples, &samples);
}

/* Owns its JSON values. */
static struct dt_printed_plan plan_of(const struct dt_result *result,
                                      const struct dt_target *target)
{
    return (struct dt_printed_plan){
        .known = true,
        .plan = dt_point_json(target->space, &result->point),
        .outcome = dt_outcome_text(result->outcome),
        .cause = result->cause[0] != '\0' ? result->cause : NULL,
        .value = target->objective->metric != NULL ? 1 / result->summary.median : NAN,
        .cold_seconds = result->cold_seconds,
        .peak_bytes = result->peak_bytes,
        .verified_error = result->verified_error,
        .image_error = result->image_error,
        .repeat_error = result->repeat_error,
        .ranks = result->ranks,
        .batch = result->batch,
        .oversubscribed = dt_target_oversubscribed(target, &result->point),
        .warnings = dt_remarks_sentences(result->report.remarks),
        .samples = samples_of(result),
        .rates = rates_of(result, target),
        .device = device_of(result)};
}

json_t *dt_trial_json(const struct dt_result *result, const struct dt_target *target)
{
    struct dt_printed_plan plan = plan_of(result, target);
    return dt_record_json(&dt_record_printed_plan, &plan);
}

json_t *dt_result_json(const struct dt_result *result, const struct dt_target *target)
{
    struct dt_printed_plan plan = plan_of(result, target);
    plan.phases = json_incref(result->report.phases);
    plan.roofline = dt_roofline(result, target);
    return dt_record_json(&dt_record_printed_plan, &plan);
}
