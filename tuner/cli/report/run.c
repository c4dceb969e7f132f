/* SPDX-License-Identifier: MIT */
/* The report on one plan, and that of `run`. */
#include "base/columns.h"
#include "base/figures.h"
#include "stats/fit.h"
#include "stats/stats.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLD_MARGIN 0.95 /* below this share two times differ enough for a sentence */

static double block_median(const struct dt_result *result)
{
    const struct dt_phase_sums *phases = result != NULL ? result->report.phases : NULL;
    double median = NAN;
    int64_t most = 0;
    for (int i = 0; phases != NULL && i < phases->blocks.count; i++) {
        const struct dt_phase_row *block = &phases->blocks.at[i];
        if (block->count.value > most) {
            most = block->count.value;
            median = (double)block->median_ns.value * 1e-9;
        }
    }
    return median;
}

bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out)
{
    double blocks = block_median(plan), before = block_median(one);
    if (plan == NULL || one == NULL || dt_point_equal(target->space, &plan->point, &one->point))
        return false;
    if (!(blocks < COLD_MARGIN * before) ||
        !(COLD_MARGIN * plan->facts.cold_seconds > one->facts.cold_seconds))
        return false;
    dt_text_add(out,
                "Cold against warm: the blocks got faster (%s -> %s each) while the cold run got "
                "slower (%s -> %s): the first step pays once for connections, buffers and first "
                "use of every shape, and more ranks pay more of it; a timing without warm-up would "
                "call this plan slower.\n",
                dt_figure_of(before).text, dt_figure_of(blocks).text,
                dt_figure_of(one->facts.cold_seconds).text,
                dt_figure_of(plan->facts.cold_seconds).text);
    return true;
}

/* " each; by layer from 1 ms (number 2) to 1.2 ms (number 3)": medians. */
static void add_layers(const struct dt_amounts *layers, struct dt_text *out)
{
    int least = 0, most = 0;
    for (int i = 1; i < layers->count; i++) {
        least = layers->at[i] < layers->at[least] ? i : least;
        most = layers->at[i] > layers->at[most] ? i : most;
    }
    dt_text_add(out, " each");
    if (layers->count > 1)
        dt_text_add(out, "; by layer from %s (number %d) to %s (number %d)",
                    dt_figure_of((double)layers->at[least] * 1e-9).text, least + 1,
                    dt_figure_of((double)layers->at[most] * 1e-9).text, most + 1);
    dt_text_add(out, "\n");
}

/* Cores that each rank kept busy while it measured. */
static void add_busy(const struct dt_phase_sums *phases, struct dt_text *out)
{
    const struct dt_amounts *cpu = &phases->cpu_ns, *wall = &phases->wall_ns;
    if (cpu->count == 0 || cpu->count != wall->count)
        return;
    dt_text_add(out, "cores busy  ");
    for (int i = 0; i < cpu->count; i++)
        dt_text_add(out, "%s%s", i > 0 ? ", " : "",
                    dt_figure_number((double)cpu->at[i] / (double)wall->at[i]).text);
    dt_text_add(out, " by rank, waiting included\n");
}

static void add_phases(const struct dt_result *result, const struct dt_target *target,
                       struct dt_text *out)
{
    const struct dt_phase_sums *phases = result->report.phases;
    if (!dt_roofline_text(result, target, out))
        return;
    for (int i = 0; i < phases->blocks.count; i++) {
        const struct dt_phase_row *block = &phases->blocks.at[i];
        dt_text_add(out, "  %-10s %lld a step, %s", block->name.text,
                    (long long)(block->count.value / phases->steps.value),
                    dt_figure_of((double)block->median_ns.value * 1e-9).text);
        add_layers(&block->layers_ns, out);
    }
    add_busy(phases, out);
}

void dt_report_warnings(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_series *series = &result->summary.series;
    if (!result->samples.steady)
        dt_text_add(out, "warning: no steady state was reached in %d steps\n",
                    result->report.steps);
    if (series->drifting || series->stepped)
        dt_text_add(out, "warning: the samples %s: the machine was not quiet\n",
                    series->drifting ? "drift" : "step");
    if (series->bimodal)
        dt_text_add(out, "warning: the samples have two modes\n");
    if (result->summary.unreliable)
        dt_text_add(
            out,
            "warning: neighbouring samples depend on each other: the interval is too narrow\n");
    if (result->throttling.count > 0)
        dt_text_add(out, "warning: %d samples were taken below 95 %% of the session's clock: %s\n",
                    result->throttling.count,
                    result->throttling.all ? "there were no others" : "they are left out");
    dt_device_report_warnings(result, out);
    if (dt_remarks_note(result->report.remarks)[0] != '\0')
        dt_text_add(out, "note: %s\n", dt_remarks_note(result->report.remarks));
    for (int i = 0; i < dt_remarks_count(result->report.remarks); i++) {
        dt_text_add(out, "warning: ");
        dt_remarks_text(result->report.remarks, i, out);
        dt_text_add(out, "\n");
    }
    if (series->outliers_severe > 0)
        dt_text_add(out, "note: %d severe outliers among %d samples (kept)\n",
                    series->outliers_severe, result->samples.n);
}

/* Which intervals hold for the next process, too. */
static void add_processes(const struct dt_result *result, const char *metric, struct dt_text *out)
{
    if (result->samples.process_seconds == NULL) {
        dt_text_add(out, " of one process\n");
        return;
    }
    struct dt_unit unit = dt_figure_time_unit(result->summary.median);
    dt_text_add(out, "\nprocesses   %d fresh ones%s: medians", result->samples.processes.n,
                dt_figure_tells(result->summary.interval.low, result->summary.interval.high)
                    ? ", the interval is over them"
                    : " differ too much for an interval, and --processes with more narrows it");
    for (int i = 0; i < result->samples.processes.n; i++) {
        double seconds = result->samples.process_seconds[i];
        dt_text_add(out, " %s",
                    dt_figure_number(metric != NULL ? 1 / seconds : seconds / unit.size).text);
    }
    dt_text_add(out, " %s\n", metric != NULL ? metric : unit.name);
}

/* " A request: 2 steps of transformer, 2 calls; 3 steps of transformer_2, 2 calls." */
static void add_step_kinds(const json_t *step_kinds, struct dt_text *out)
{
    const json_t *item;
    size_t i;
    json_array_foreach((json_t *)step_kinds, i, item)
    {
        json_int_t count = dt_json_integer_at(item, "count");
        dt_text_add(out, "%s%lld step%s of ", i == 0 ? " A request: " : "; ", (long long)count,
                    count == 1 ? "" : "s");
        dt_text_show(dt_json_text_at(item, "say"), out);
    }
    dt_text_add(out, step_kinds != NULL ? "." : "");
}

void dt_report_image(const struct dt_target *target, const struct dt_result *result,
                     const char *gain, struct dt_text *out)
{
    const struct dt_image_work *image = &target->image;
    double step = result->summary.median;
    if (image->is_image) {
        dt_text_add(out,
                    "What is called a step here is a whole image of %d denoising steps, with "
                    "text encoder and VAE.",
                    image->steps);
        add_step_kinds(image->step_kinds, out);
        return;
    }
    dt_text_add(out, "%s, %d steps of %s",
                dt_figure_of(dt_target_image_seconds(target, step, result->batch)).text,
                image->sampler_steps, dt_figure_of(step).text);
    if (image->text_and_vae_ns > 0)
        dt_text_add(out, " and %s of text encoder and VAE (%s)",
                    dt_figure_of((double)image->text_and_vae_ns * 1e-9).text,
                    image->given ? "given" : "measured");
    dt_text_add(out, "%s%s", gain,
                image->text_and_vae_ns > 0
                    ? "."
                    : "; text encoder and VAE are not in it, --text-and-vae TIME adds them.");
    add_step_kinds(image->step_kinds, out);
}

static void add_verified(const struct dt_result *result, const struct dt_target *target,
                         struct dt_text *out)
{
    const char *plan = target->image.starts ? "default" : "1-rank";
    dt_auto_text blind = {0};
    dt_text_add(out, "\nverified    differs from the %s plan by %.2g", plan,
                result->facts.verified_error);
    dt_report_image_error(result, out);
    dt_target_blind(target, &blind);
    dt_text_add(out, blind.size > 0 ? "; %s\n" : "\n", dt_text_at(&blind));
}

void dt_report_image_error(const struct dt_result *result, struct dt_text *out)
{
    if (isfinite(result->facts.image_error))
        dt_text_add(out, "; after all steps the image differs by %.2g", result->facts.image_error);
    if (isfinite(result->facts.repeat_error))
        dt_text_add(out, ", a second one of the 1-rank plan by %.2g", result->facts.repeat_error);
}

void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out)
{
    const struct dt_summary *summary = &result->summary;
    dt_text_add(out, "plan        ");
    dt_point_text(target->space, &result->point, out);
    dt_text_add(out, "%s\n",
                dt_target_oversubscribed(target, &result->point) ? "  (oversubscribed)" : "");
    if (dt_target_hardware(target) != NULL)
        dt_text_add(out, "hardware    %s\n", dt_target_hardware(target));
    dt_text_add(out, "cold step   %s", dt_figure_of(result->facts.cold_seconds).text);
    dt_text_add(out, target->objective->metric != NULL ? "\nvalue       " : "\nwarm step   ");
    dt_figure_value(target->objective->metric, summary->median, summary->interval.low,
                    summary->interval.high, out);
    if (dt_figure_tells(summary->interval.low, summary->interval.high))
        dt_text_add(out, " (%.1f %% interval)", 100 * summary->level);
    dt_text_add(out, ", %d samples after %d warm-up steps", result->samples.n,
                result->samples.start);
    add_processes(result, target->objective->metric, out);
    if (target->objective->metric != NULL) {
        dt_text_add(out, "memory      %s in its largest process\n",
                    dt_figure_bytes_of(result->facts.peak_bytes).text);
        dt_report_warnings(result, out);
        return;
    }
    dt_text_add(out, "ranks       ");
    for (int r = 0; r < result->ranks; r++) {
        dt_text_add(out, r > 0 ? ", " : "");
        dt_text_add(out, "%s (last %d)", dt_figure_of(result->samples.rank_seconds[r]).text,
                    result->samples.last[r]);
    }
    dt_text_add(out, "; skew %s\n", dt_figure_of(result->samples.skew_seconds).text);
    if (dt_result_parts(result) > 1) {
        dt_text_add(out, "together    ");
        dt_result_replicas_text(result, out);
        dt_text_add(out, "\n");
    }
    dt_text_add(out, "memory      %s on the largest rank\nspeed       %s image-steps/s",
                dt_figure_bytes_of(result->facts.peak_bytes).text,
                dt_figure_number(dt_result_images(result) / summary->median).text);
    if (target->image.flops > 0)
        dt_text_add(out, ", %.4g GFLOP/s",
                    target->image.flops * dt_result_images(result) / summary->median * 1e-9);
    if (target->image.flops > 0 && result->ceilings.flop_rate > 0)
        dt_text_add(out, ", %.0f %% of the GEMM peak",
                    100 * target->image.flops * dt_result_images(result) / summary->median /
                        result->ceilings.flop_rate);
    if (target->image.known) {
        dt_text_add(out, "\n%s", target->image.is_image ? "" : "image       ");
        dt_report_image(target, result, "", out);
    }
    if (isfinite(result->facts.verified_error))
        add_verified(result, target, out);
    else
        dt_text_add(out, "\nverified    no: the worker gave nothing to compare\n");
    dt_device_report_text(result, out);
    add_phases(result, target, out);
    dt_report_warnings(result, out);
}

/* ---- lines fitted to measurements, as JSON and as a line of text each
 * (docs/measuring-appendix.md, docs/json.md) */

/* Fields common to all fits; `name` is that of the points' x. fitted: false with too few points. */
static json_t *common_fit(const char *name, const double x[], const double seconds[],
                          const struct dt_line *line)
{
    json_t *points = json_array();
    for (int i = 0; i < line->n; i++)
        json_array_append_new(
            points,
            json_pack("{s:I, s:f, s:o}", name, (json_int_t)x[i], "seconds", seconds[i], "residual",
                      dt_json_number(line->why == NULL ? line->residual[i] : NAN)));
    return json_pack("{s:o, s:o, s:s?}", "points", points, "degrees_of_freedom",
                     line->why == NULL ? json_integer(line->n - 2) : json_null(), "reason",
                     line->why);
}

static void set_fit(json_t *fit, const struct dt_line *line, const char *name, double value)
{
    json_object_set_new(fit, name, line->why == NULL ? dt_json_number(value) : json_null());
}

static json_t *fits_ranks(const double ranks[], const double seconds[], int n)
{
    struct dt_amdahl fit = dt_stats_amdahl(ranks, seconds, n);
    json_t *object = common_fit("ranks", ranks, seconds, &fit.line);
    set_fit(object, &fit.line, "serial_fraction", fit.serial);
    set_fit(object, &fit.line, "serial_error", fit.serial_error);
    set_fit(object, &fit.line, "one_rank_seconds", fit.seconds);
    json_object_set_new(object, "bounded", json_boolean(fit.bounded != 0));
    return object;
}

static json_t *fits_batch(const double batches[], const double seconds[], int n)
{
    struct dt_line line = dt_stats_line(batches, seconds, n);
    json_t *object = common_fit("batch", batches, seconds, &line);
    set_fit(object, &line, "seconds", line.a);
    set_fit(object, &line, "seconds_error", line.a_error);
    set_fit(object, &line, "seconds_per_image", line.b);
    set_fit(object, &line, "seconds_per_image_error", line.b_error);
    return object;
}

/* Bandwidths of a point: bytes over time, and what the links carried of it (nccl-tests,
 * doc/PERFORMANCE.md): a rank keeps one block of an all-to-all to itself. */
static void add_bandwidths(const struct dt_timed_exchange *exchange, json_t *points)
{
    double n = exchange->ranks, factor = strcmp(exchange->kind, "alltoall") == 0 ? (n - 1) / n : 1;
    json_t *point;
    size_t i;
    json_array_foreach(points, i, point)
    {
        double rate = json_number_value(json_object_get(point, "bytes")) /
                      json_number_value(json_object_get(point, "seconds"));
        json_object_set_new(point, "algbw", dt_json_number(rate));
        json_object_set_new(point, "busbw", dt_json_number(rate * factor));
    }
}

static json_t *fit_exchange(const struct dt_timed_exchange *exchange)
{
    double bytes[DT_FIT_MOST] = {0}, seconds[DT_FIT_MOST] = {0}, times[DT_EXCHANGE_TIMES];
    int n = exchange->timed ? DT_EXCHANGE_SIZES : 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < DT_EXCHANGE_TIMES; k++)
            times[k] = (double)exchange->ns[i * DT_EXCHANGE_TIMES + k] * 1e-9;
        seconds[i] = dt_stats_median(times, DT_EXCHANGE_TIMES);
        bytes[i] = (double)exchange->bytes[i];
    }
    struct dt_alpha_beta fit = dt_stats_alpha_beta(bytes, seconds, n);
    json_t *object = common_fit("bytes", bytes, seconds, &fit.line);
    add_bandwidths(exchange, json_object_get(object, "points"));
    json_object_set_new(object, "kind", json_string(exchange->kind));
    json_object_set_new(object, "ranks", json_integer(exchange->ranks));
    json_object_set_new(object, "stride", json_integer(exchange->stride));
    set_fit(object, &fit.line, "alpha_seconds", fit.seconds);
    set_fit(object, &fit.line, "alpha_error", fit.seconds_error);
    set_fit(object, &fit.line, "bytes_per_second", fit.bytes_per_second);
    set_fit(object, &fit.line, "bytes_per_second_error", fit.bytes_per_second_error);
    if (exchange->reason[0] != '\0')
        json_object_set_new(object, "reason", json_string(exchange->reason));
    return object;
}

static json_t *fits_exchanges(const struct dt_result *result)
{
    json_t *list = json_array();
    for (int i = 0; i < result->exchange_count; i++)
        json_array_append_new(list, fit_exchange(&result->exchanges[i]));
    return list;
}

static double number_at(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static double residual_at(const json_t *points, size_t i)
{
    return number_at(json_array_get(points, i), "residual");
}

static void add_percent(double share, struct dt_text *out)
{
    if (share < 5e-4)
        dt_text_add(out, "less than 0.05 %%");
    else
        dt_text_add(out, share < 0.1 ? "%.2g %%" : "%.0f %%", 100 * share);
}

/* "; fit over 3 batches" at the end of the formula, then the line that says the same in words. */
static void begin_words(const json_t *fit, const char *points, struct dt_text *out)
{
    dt_text_add(out, "; fit over %zu %s\n            in words: ",
                json_array_size(json_object_get(fit, "points")), points);
}

/* "; the farthest, batch 4, took 12 % longer than it says, the typical point is 3 % off" */
static void add_residuals(const json_t *fit, const char *x, struct dt_text *out)
{
    const json_t *points = json_object_get(fit, "points");
    double sizes[DT_FIT_MOST];
    size_t worst = 0, n = 0;
    for (size_t i = 0; i < json_array_size(points); i++)
        worst = fabs(residual_at(points, i)) > fabs(residual_at(points, worst)) ? i : worst;
    for (; n < json_array_size(points) && n < DT_FIT_MOST; n++)
        sizes[n] = fabs(residual_at(points, n));
    double off = residual_at(points, worst);
    if (fabs(off) < 5e-4) {
        dt_text_add(out, "; the points are all of them on it within 0.05 %%\n");
        return;
    }
    dt_text_add(out, "; the farthest, %.0f %s, took ", number_at(json_array_get(points, worst), x),
                x);
    add_percent(fabs(off), out);
    dt_text_add(out, " %s than it says, the typical point is ", off > 0 ? "longer" : "less");
    add_percent(dt_stats_median(sizes, (int)n), out); /* half of them are nearer to the fit */
    dt_text_add(out, " off\n");
}

/* The reason why there is no fit; false: there is one. */
static bool add_reason(const json_t *fit, struct dt_text *out)
{
    const char *reason = json_string_value(json_object_get(fit, "reason"));
    if (reason != NULL)
        dt_text_add(out, "no fit: %s\n", reason);
    return reason != NULL;
}

/* A latency below zero is a residual of the fit, not a time. */
static void add_exchange(const json_t *fit, struct dt_text *out)
{
    bool shift = strcmp(json_string_value(json_object_get(fit, "kind")), "shift") == 0;
    const char *where = json_string_value(json_object_get(fit, "at"));
    double alpha = number_at(fit, "alpha_seconds");
    dt_text_add(out, "%-12sof %.0f ranks", shift ? "P2P" : "all-to-all", number_at(fit, "ranks"));
    if (number_at(fit, "stride") > 1)
        dt_text_add(out, " that are %.0f apart", number_at(fit, "stride"));
    dt_text_add(out, "%s%s: ", where != NULL ? ", with " : "", where != NULL ? where : "");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "latency %s (+- %s), bandwidth %.3g GB/s (+- %.2g)", dt_figure_of(alpha).text,
                dt_figure_of(number_at(fit, "alpha_error")).text,
                number_at(fit, "bytes_per_second") * 1e-9,
                number_at(fit, "bytes_per_second_error") * 1e-9);
    begin_words(fit, "sizes", out);
    dt_text_add(out, "an empty exchange takes %s, and each MB takes %s",
                alpha > 0 ? dt_figure_of(alpha).text : "no time that can be measured",
                dt_figure_of(1e6 / number_at(fit, "bytes_per_second")).text);
    dt_text_add(out, alpha > 0 ? " more" : "");
    add_residuals(fit, "bytes", out);
}

static void add_ranks(const json_t *fit, struct dt_text *out)
{
    double serial = number_at(fit, "serial_fraction");
    dt_text_add(out, "scaling     ");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "%s x (s + (1 - s) / ranks), serial part s = %.3g (+- %.2g)",
                dt_figure_of(number_at(fit, "one_rank_seconds")).text, serial,
                number_at(fit, "serial_error"));
    begin_words(fit, "rank counts", out);
    dt_text_add(out, "Amdahl: %.3g %% of the step does not get faster with more ranks",
                100 * serial);
    if (json_is_true(json_object_get(fit, "bounded")))
        dt_text_add(out, serial > 0 ? " (the limit: more ranks did not make it faster)"
                                    : " (the limit: it got faster by more than the ranks)");
    add_residuals(fit, "ranks", out);
}

static void add_batch(const json_t *fit, struct dt_text *out)
{
    double fixed = number_at(fit, "seconds");
    dt_text_add(out, "batch       ");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "%s (+- %s) + %s (+- %s) an image", dt_figure_of(fixed).text,
                dt_figure_of(number_at(fit, "seconds_error")).text,
                dt_figure_of(number_at(fit, "seconds_per_image")).text,
                dt_figure_of(number_at(fit, "seconds_per_image_error")).text);
    begin_words(fit, "batches", out);
    dt_text_add(out, "each image adds %s", dt_figure_of(number_at(fit, "seconds_per_image")).text);
    if (fixed > 0) {
        dt_text_add(out, " to %s that a step takes with any batch", dt_figure_of(fixed).text);
    } else {
        dt_text_add(out, ", and a step takes nothing beside its images");
    }
    add_residuals(fit, "batch", out);
}

static void fits_text(const json_t *fits, struct dt_text *out)
{
    const json_t *fit, *ranks = json_object_get(fits, "ranks"),
                       *batch = json_object_get(fits, "batch");
    size_t i;
    json_array_foreach(json_object_get(fits, "exchanges"), i, fit)
    {
        add_exchange(fit, out);
    }
    if (ranks != NULL)
        add_ranks(ranks, out);
    if (batch != NULL)
        add_batch(batch, out);
}

/* ---- run: one plan, or a sweep */

#define LABEL 12 /* columns of a line's name, in front of what it says */

/* The time of a whole batch of images, and what it is made of; null where the steps of an image
 * are not known. */
static json_t *image_json(const struct dt_result *result, const struct dt_target *target)
{
    const struct dt_image_work *image = &target->image;
    double seconds = dt_target_image_seconds(target, result->summary.median, result->batch);
    if (!image->known)
        return json_null();
    return json_pack("{s:i, s:I, s:s?, s:O*, s:o}", "steps", image->steps, "text_and_vae_ns",
                     (json_int_t)image->text_and_vae_ns, "source",
                     image->text_and_vae_ns == 0 ? NULL
                     : image->given              ? "given"
                                                 : "measured",
                     "step_kinds", image->step_kinds, "seconds", dt_json_number(seconds));
}

json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target)
{
    json_t *object = dt_result_json(result, target);
    dt_auto_text cold = {0};
    json_object_set_new(object, "title", json_string(target->identity.title));
    json_object_set_new(object, "baseline",
                        one->samples.n > 0 ? dt_result_json(one, target) : json_null());
    json_object_set_new(object, "speedup",
                        one->samples.n > 0 ? json_real(one->summary.median / result->summary.median)
                                           : json_null());
    bool said = dt_report_cold(result, one->samples.n > 0 ? one : NULL, target, &cold);
    json_object_set_new(object, "image", image_json(result, target));
    json_object_set_new(object, "cold_note", said ? json_string(dt_text_at(&cold)) : json_null());
    json_object_set_new(object, "fits", json_pack("{s:o}", "exchanges", fits_exchanges(result)));
    return object;
}

json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason)
{
    return json_pack("{s:i, s:s}", sweep->ranks ? "ranks" : "batch", value, "left_out", reason);
}

/* Adds fits of another row to the list, of kinds that no other row had in it. */
static void add_other_kinds(const struct dt_sweep *sweep, const json_t *row, json_t *list)
{
    const char *name = sweep->ranks ? "ranks" : "batch";
    const json_t *fit;
    size_t i, k, before = json_array_size(list);
    json_array_foreach(json_object_get(json_object_get(row, "fits"), "exchanges"), i, fit)
    {
        const char *kind = dt_json_text_at(fit, "kind");
        for (k = 0; k < before; k++)
            if (strcmp(dt_json_text_at(json_array_get(list, k), "kind"), kind) == 0)
                break;
        if (k < before)
            continue;
        json_t *copy = dt_json_copy(fit);
        json_object_set_new(copy, "at", json_sprintf("%s=%.0f", name, number_at(row, name)));
        json_array_append_new(list, copy);
    }
}

/* Exchanges of the row of the most ranks (the last of them); of a kind that it has not, those of
 * the next. */
static json_t *sweep_exchanges(const struct dt_sweep *sweep, const json_t *rows)
{
    json_t *list = json_array();
    double most = INFINITY;
    while (most > 0) {
        double next = 0;
        for (size_t i = json_array_size(rows); i-- > 0;) {
            const json_t *row = json_array_get(rows, i);
            double ranks = number_at(row, "ranks");
            if (ranks == most)
                add_other_kinds(sweep, row, list);
            next = ranks < most ? fmax(next, ranks) : next;
        }
        most = next;
    }
    return list;
}

/* {"exchanges": fits, "batch": fit}, or {.., "ranks": fit}, of what the sweep measured. */
static json_t *fit_sweep(const struct dt_sweep *sweep, const json_t *rows)
{
    double x[DT_LIST_MAX], seconds[DT_LIST_MAX];
    int n = (int)json_array_size(rows);
    bool oversubscribed = false;
    for (int i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, (size_t)i);
        x[i] = json_number_value(json_object_get(row, sweep->ranks ? "ranks" : "batch"));
        seconds[i] = json_number_value(json_object_get(row, "median_seconds"));
        oversubscribed = oversubscribed || json_is_true(json_object_get(row, "oversubscribed"));
    }
    json_t *fit = sweep->ranks ? fits_ranks(x, seconds, n) : fits_batch(x, seconds, n);
    json_object_set_new(fit, "oversubscribed", json_boolean(oversubscribed));
    return json_pack("{s:o, s:o}", sweep->ranks ? "ranks" : "batch", fit, "exchanges",
                     sweep_exchanges(sweep, rows));
}

/* Speed-up over the row of the smallest value: of a step, in a sweep of batches of the images a
 * second; and in one of ranks the efficiency. */
static void add_scaling(const struct dt_sweep *sweep, json_t *rows)
{
    const char *name = sweep->ranks ? "ranks" : "batch";
    const json_t *least = json_array_get(rows, 0);
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        least = number_at(row, name) < number_at(least, name) ? row : least;
    }
    double first = number_at(least, name), rate = number_at(least, "samples_per_second");
    json_array_foreach(rows, i, row)
    {
        double speed = number_at(row, "samples_per_second") / rate;
        json_object_set_new(row, "scaling_speedup", dt_json_number(speed));
        if (sweep->ranks)
            json_object_set_new(row, "scaling_efficiency",
                                dt_json_number(speed * first / number_at(row, name)));
    }
}

static json_t *report_list(const struct dt_sweep *sweep, json_t *list)
{
    size_t i;
    if (sweep->values.count == 0)
        return json_incref(json_array_get(list, 0));
    json_t *rows = json_array(), *left_out = json_array(), *row;
    json_array_foreach(list, i, row)
    {
        json_array_append(dt_json_has(row, "left_out") ? left_out : rows, row);
    }
    add_scaling(sweep, rows);
    json_t *fits = fit_sweep(sweep, rows);
    return json_pack("{s:o, s:o, s:o}", "sweep", rows, "left_out", left_out, "fits", fits);
}

void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out)
{
    dt_auto_text text = {0};
    json_auto_t *fits = json_pack("{s:o}", "exchanges", fits_exchanges(result));
    dt_text_add(&text, "%s%s\n", target->foreign ? "worker      " : "network     ",
                target->identity.title);
    if (!target->foreign) {
        dt_text_add(&text, "back end    ");
        dt_target_units(target, target->hardware.cores, &text);
        dt_text_add(&text, "\n");
    }
    dt_report_result(result, target, &text);
    fits_text(fits, &text);
    if (one->samples.n > 0) {
        /* measured one after the other: what happened meanwhile is in the ratio */
        dt_text_add(&text, "1 rank      ");
        dt_figure_value(target->objective->metric, one->summary.median, NAN, NAN, &text);
        dt_text_add(&text,
                    " warm, %s cold; %.3f times this plan's step (unpaired: not evidence; dittune "
                    "--against compares)\n",
                    dt_figure_of(one->facts.cold_seconds).text,
                    one->summary.median / result->summary.median);
        dt_report_cold(result, one, target, &text);
    }
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, LABEL, out);
}

/* Columns whose figures share a unit. */
struct columns {
    const struct dt_sweep *sweep;
    struct dt_unit time, memory;
};

static void add_sweep_row(const struct columns *columns, const json_t *row, struct dt_text *out)
{
    const json_t *kinds = json_object_get(json_object_get(row, "roofline"), "kinds");
    const json_t *exchange = dt_json_named(kinds, "exchange"); /* that the slowest rank waits for */
    const json_t *image = json_object_get(row, "image");
    double images = json_is_object(image) ? number_at(row, "batch") / number_at(image, "seconds")
                                          : number_at(row, "samples_per_second"); /* for a step */
    const char *why = json_string_value(json_object_get(row, "left_out"));
    dt_text_add(out, "%8.0f", number_at(row, columns->sweep->ranks ? "ranks" : "batch"));
    if (why != NULL) {
        dt_text_add(out, "    left out: %s\n", why);
        return;
    }
    dt_text_add(out, "%12s%14s%10.2fx",
                dt_figure_number(number_at(row, "median_seconds") / columns->time.size).text,
                dt_figure_number(images).text, number_at(row, "scaling_speedup"));
    if (columns->sweep->ranks)
        dt_text_add(out, "%10.0f %%", 100 * number_at(row, "scaling_efficiency"));
    if (exchange != NULL)
        dt_text_add(out, "%8.1f %%", 100 * number_at(exchange, "share"));
    else
        dt_text_add(out, "%10s", "-");
    dt_text_add(out, "%13s\n",
                dt_figure_number(number_at(row, "peak_bytes") / columns->memory.size).text);
}

static struct columns choose_columns(const struct dt_sweep *sweep, const json_t *rows)
{
    double seconds = INFINITY, bytes = INFINITY;
    const json_t *row;
    size_t i;
    json_array_foreach((json_t *)rows, i, row)
    {
        seconds = fmin(seconds, number_at(row, "median_seconds"));
        bytes = fmin(bytes, number_at(row, "peak_bytes"));
    }
    return (struct columns){sweep, dt_figure_time_unit(seconds),
                            dt_figure_bytes_unit(fmax(bytes, 1024))};
}

/* Adds the meaning of the columns. */
static void add_notes(const struct dt_sweep *sweep, const json_t *rows, struct dt_text *out)
{
    const json_t *row = json_array_get(rows, 0), *image = json_object_get(row, "image");
    size_t i;
    json_array_foreach((json_t *)rows, i, row)
    {
        if (json_is_true(json_object_get(row, "oversubscribed")))
            dt_text_add(out, "%s=%.0f: more ranks than devices: its time says little\n",
                        sweep->ranks ? "ranks" : "batch",
                        number_at(row, sweep->ranks ? "ranks" : "batch"));
    }
    if (json_is_object(image))
        dt_text_add(out, "images/s: of %.0f steps, %s text encoder and VAE\n",
                    number_at(image, "steps"),
                    number_at(image, "text_and_vae_ns") > 0 ? "with" : "without");
    if (json_array_size(rows) > 1)
        dt_text_add(out, sweep->ranks
                             ? "speed-up and efficiency: over the fewest ranks, unpaired (not "
                               "evidence)\n"
                             : "speed-up: of images a second over the smallest batch, unpaired "
                               "(not evidence)\n");
}

static void add_sweep(const struct dt_sweep *sweep, const json_t *list, const json_t *record,
                      struct dt_text *out)
{
    const json_t *rows = json_object_get(record, "sweep"), *row = json_array_get(rows, 0);
    struct columns columns = choose_columns(sweep, rows);
    bool whole = json_is_object(json_object_get(row, "image"));
    dt_auto_text text = {0};
    char step[24], memory[24];
    size_t i;
    snprintf(step, sizeof step, "step, %s", columns.time.name);
    snprintf(memory, sizeof memory, "memory, %s", columns.memory.name);
    dt_text_add(&text, "%s\n%8s%12s%14s%11s%s%10s%13s\n",
                json_string_value(json_object_get(row, "title")), sweep->ranks ? "ranks" : "batch",
                step, whole ? "images/s" : "image-steps/s", "speed-up",
                sweep->ranks ? "  efficiency" : "", "exchange", memory);
    json_array_foreach((json_t *)list, i, row)
    {
        add_sweep_row(&columns, row, &text);
    }
    add_notes(sweep, rows, &text);
    fits_text(json_object_get(record, "fits"), &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, LABEL, out);
}

dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text, bool json)
{
    json_auto_t *record = report_list(sweep, list);
    if (json)
        return dt_print_json(json_incref(record));
    if (sweep->values.count > 0) {
        dt_text_clear(text);
        add_sweep(sweep, list, record, text);
    }
    return dt_print_text(text);
}
