/* SPDX-License-Identifier: MIT */
/* Time of a step by kind of work, and each kind's rate relative to the device's ceiling (docs/measuring.md). One table for cores
 * and GPUs: the phases that the worker reported, operations and bytes computed from the shapes, and the ceilings measured
 * beside the plan (Williams, Waterman, Patterson, CACM 52, 2009). */
#include "tuner/measure/record/result_json.h"

#include "base/figures.h"
#include "space/json/json.h"

#include <math.h>
#include <string.h>

/* ---- where a step goes */

#define IDENTITY_SHARE 0.01 /* largest difference between phases and step */

/* A number of the object; NAN when missing. */
static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Amount of a kind of work on one rank (an even share), and its ceiling: operations or bytes a second. */
struct work {
    const char *unit; /* "flops" or "bytes"; NULL: not known */
    double amount, ceiling;
};

static struct work work_of(const char *kind, const struct dt_result *result,
                           const struct dt_target *target)
{
    double share = (double)result->batch / (result->ranks > 0 ? result->ranks : 1);
    double flop_rate =
        result->report.flop_peak > 0 ? result->report.flop_peak / result->ranks : NAN;
    double byte_rate =
        result->report.copy_peak > 0 ? result->report.copy_peak / result->ranks : NAN;
    double attention = target->image.attention_flops;
    if (attention > 0 && strcmp(kind, "attention") == 0)
        return (struct work){"flops", attention * share, flop_rate};
    if (attention > 0 && strcmp(kind, "gemm") == 0)
        return (struct work){"flops", (target->image.flops - attention) * share, flop_rate};
    if (target->image.rest_bytes > 0 && strcmp(kind, "rest") == 0)
        return (struct work){"bytes", target->image.rest_bytes * share, byte_rate};
    return (struct work){NULL, NAN, NAN};
}

/* times: of one step */
static json_t *kind_json(const json_t *kind, double steps, double whole,
                         const struct dt_result *result, const struct dt_target *target)
{
    double seconds = number_at(kind, "ns") * 1e-9 / steps,
           flight = number_at(kind, "in_flight_ns") * 1e-9 / steps;
    struct work work = work_of(dt_json_text_at(kind, "name"), result, target);
    double rate = seconds > 0 ? work.amount / seconds : NAN;
    json_t *row = json_pack(
        "{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o}", "name", dt_json_text_at(kind, "name"),
        "seconds", dt_json_number(seconds), "share", dt_json_number(seconds / whole), "unit",
        work.unit, "amount", dt_json_number(work.amount), "rate", dt_json_number(rate), "ceiling",
        dt_json_number(work.ceiling), "fraction", dt_json_number(rate / work.ceiling));
    if (isfinite(flight)) {
        json_object_set_new(row, "bytes", dt_json_number(number_at(kind, "bytes") / steps));
        json_object_set_new(row, "in_flight_seconds", dt_json_number(flight));
        json_object_set_new(row, "exposed_share",
                            dt_json_number(flight > 0 ? seconds / flight : NAN));
    }
    return row;
}

/* Bandwidths of one exchange: busbw counts the bytes a rank sends to others over the time in flight; a rank keeps one
 * of the n blocks of an all-to-all's buffer (nccl-tests, doc/PERFORMANCE.md). */
static json_t *exchange_json(const json_t *exchange, double steps)
{
    double count = number_at(exchange, "count"), ranks = number_at(exchange, "ranks"),
           flight = number_at(exchange, "in_flight_ns") * 1e-9,
           bytes = number_at(exchange, "bytes");
    bool all = strcmp(dt_json_text_at(exchange, "kind"), "alltoall") == 0;
    double busbw = flight > 0 ? bytes / flight : NAN;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     dt_json_text_at(exchange, "name"), "kind", dt_json_text_at(exchange, "kind"),
                     "ranks", dt_json_number(ranks), "count", dt_json_number(count / steps),
                     "bytes", dt_json_number(bytes / steps), "exposed_seconds",
                     dt_json_number(number_at(exchange, "ns") * 1e-9 / steps), "in_flight_seconds",
                     dt_json_number(flight / steps), "exposed_share",
                     dt_json_number(flight > 0 ? number_at(exchange, "ns") * 1e-9 / flight : NAN),
                     "algbw", dt_json_number(all ? busbw * ranks / (ranks - 1) : busbw), "busbw",
                     dt_json_number(busbw));
}

json_t *dt_roofline(const struct dt_result *result, const struct dt_target *target)
{
    const json_t *phases = result->report.phases, *kinds = json_object_get(phases, "kinds"),
                 *exchanges = json_object_get(phases, "exchanges");
    double steps = number_at(phases, "steps"), whole = number_at(phases, "step_ns") * 1e-9 / steps,
           host = number_at(phases, "host_ns") * 1e-9 / steps, sum = 0;
    if (!(steps > 0) || !(whole > 0))
        return NULL;
    json_t *rows = json_array(), *list = json_array();
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        json_t *row = kind_json(json_array_get(kinds, i), steps, whole, result, target);
        sum += number_at(row, "seconds");
        json_array_append_new(rows, row);
    }
    for (size_t i = 0; i < json_array_size(exchanges); i++)
        json_array_append_new(list, exchange_json(json_array_get(exchanges, i), steps));
    double off = sum / (isfinite(host) ? host : whole) - 1;
    return json_pack("{s:f, s:O*, s:f, s:o, s:o, s:o, s:b, s:o, s:o}", "steps", steps, "rank",
                     json_object_get(phases, "rank"), "step_seconds", whole, "host_seconds",
                     dt_json_number(host), "sum_seconds", dt_json_number(sum), "identity_error",
                     dt_json_number(off), "identity", fabs(off) <= IDENTITY_SHARE, "kinds", rows,
                     "exchanges", list);
}

static void roofline_add_seconds(double seconds, struct dt_text *out)
{
    struct dt_text cell = {0};
    dt_figure_time(seconds, &cell);
    dt_text_add(out, "%12s", dt_text_at(&cell));
    dt_text_fini(&cell);
}

static void roofline_add_kind(const json_t *row, struct dt_text *out)
{
    bool flops = strcmp(dt_json_text_at(row, "unit"), "flops") == 0;
    double rate = number_at(row, "rate"), flight = number_at(row, "in_flight_seconds");
    dt_text_add(out, "  %-10.20s %5.1f %% ", dt_json_text_at(row, "name"),
                100 * number_at(row, "share"));
    roofline_add_seconds(number_at(row, "seconds"), out);
    if (isfinite(rate))
        dt_text_add(out, "  %.4g %s", rate * 1e-9, flops ? "GFLOP/s" : "GB/s");
    if (isfinite(number_at(row, "fraction")))
        dt_text_add(out, ", %.0f %% of %.4g", 100 * number_at(row, "fraction"),
                    number_at(row, "ceiling") * 1e-9);
    if (flight > 0)
        dt_text_add(out, "  (%.3g MB sent, %.0f %% of the time in flight exposed)",
                    number_at(row, "bytes") * 1e-6, 100 * number_at(row, "exposed_share"));
    dt_text_add(out, "\n");
}

static void roofline_add_exchange(const json_t *row, struct dt_text *out)
{
    dt_text_add(out, "    %-8.20s         ", dt_json_text_at(row, "name"));
    roofline_add_seconds(number_at(row, "exposed_seconds"), out);
    dt_text_add(out, "  %.3g of %.20s among %.0f ranks, %.3g MB", number_at(row, "count"),
                dt_json_text_at(row, "kind"), number_at(row, "ranks"),
                number_at(row, "bytes") * 1e-6);
    if (isfinite(number_at(row, "busbw")))
        dt_text_add(out, ", algbw %.4g and busbw %.4g GB/s, %.0f %% exposed",
                    number_at(row, "algbw") * 1e-9, number_at(row, "busbw") * 1e-9,
                    100 * number_at(row, "exposed_share"));
    dt_text_add(out, "\n");
}

void dt_roofline_text(const json_t *roofline, struct dt_text *out)
{
    const json_t *kinds = json_object_get(roofline, "kinds"),
                 *exchanges = json_object_get(roofline, "exchanges");
    if (roofline == NULL)
        return;
    dt_text_add(out, "breakdown of the critical rank, mean of %.0f steps of ",
                number_at(roofline, "steps"));
    dt_figure_time(number_at(roofline, "step_seconds"), out);
    dt_text_add(out, ":\n");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const json_t *kind = json_array_get(kinds, i);
        roofline_add_kind(kind, out);
        for (size_t k = 0; strcmp(dt_json_text_at(kind, "name"), "exchange") == 0 &&
                           k < json_array_size(exchanges);
             k++)
            roofline_add_exchange(json_array_get(exchanges, k), out);
    }
    if (!json_is_true(json_object_get(roofline, "identity")))
        dt_text_add(out,
                    "warning: the phases add up to %s, %.3g %% off the %s of the same steps by the "
                    "host's clock\n",
                    dt_figure_of(number_at(roofline, "sum_seconds")).text,
                    100 * number_at(roofline, "identity_error"),
                    dt_figure_of(number_at(roofline, "host_seconds")).text);
}

/* ---- a plan */

/* What --json prints of a plan. */

static double positive_or_nan(double value)
{
    return value > 0 ? value : NAN;
}

/* NAN: null. */
static json_t *numbers_json(const double x[], int n)
{
    json_t *array = json_array();
    for (int i = 0; x != NULL && i < n; i++)
        json_array_append_new(array, dt_kind_real.write(&x[i]));
    return array;
}

static json_t *interval_json(struct dt_interval interval)
{
    return numbers_json((const double[]){interval.low, interval.high}, 2);
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
        .medians_seconds = several ? numbers_json(samples->process_seconds, samples->processes.n)
                                   : numbers_json(&result->summary.median, samples->n > 0),
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
        .samples_seconds = numbers_json(samples->seconds, samples->n),
        .rank_seconds = numbers_json(samples->rank_seconds, samples->n > 0 ? result->ranks : 0),
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
