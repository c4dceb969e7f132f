/* SPDX-License-Identifier: MIT */
/* The report on one plan. */
#include "base/figures.h"
#include "tuner/cli/report/report.h"
#include "tuner/measure/measure.h"

#include <math.h>

#define COLD_MARGIN 0.95 /* below this share two times differ enough for a sentence */

static double block_median(const struct dt_result *result)
{
    json_t *blocks = result != NULL ? json_object_get(result->report.phases, "blocks") : NULL;
    double median = NAN;
    int64_t most = 0;
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        json_t *block = json_array_get(blocks, i);
        int64_t count = json_integer_value(json_object_get(block, "count"));
        if (count > most) {
            most = count;
            median = (double)json_integer_value(json_object_get(block, "median_ns")) * 1e-9;
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
    if (!(blocks < COLD_MARGIN * before) || !(COLD_MARGIN * plan->cold_seconds > one->cold_seconds))
        return false;
    dt_text_add(out, "Cold against warm: the blocks got faster (");
    dt_figure_time(before, out);
    dt_text_add(out, " -> ");
    dt_figure_time(blocks, out);
    dt_text_add(out, " each) while the cold run got slower (");
    dt_figure_time(one->cold_seconds, out);
    dt_text_add(out, " -> ");
    dt_figure_time(plan->cold_seconds, out);
    dt_text_add(out, "): the first step pays once for connections, buffers and first use of every "
                     "shape, and more ranks "
                     "pay more of it; a timing without warm-up would call this plan slower.\n");
    return true;
}

static double seconds_at(const json_t *list, size_t i)
{
    return (double)json_integer_value(json_array_get(list, i)) * 1e-9;
}

/* " each; by layer from 1 ms (number 2) to 1.2 ms (number 3)": medians. */
static void add_layers(const json_t *layers, struct dt_text *out)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < json_array_size(layers); i++) {
        least = seconds_at(layers, i) < seconds_at(layers, least) ? i : least;
        most = seconds_at(layers, i) > seconds_at(layers, most) ? i : most;
    }
    dt_text_add(out, " each");
    if (json_array_size(layers) > 1) {
        dt_text_add(out, "; by layer from ");
        dt_figure_time(seconds_at(layers, least), out);
        dt_text_add(out, " (number %zu) to ", least + 1);
        dt_figure_time(seconds_at(layers, most), out);
        dt_text_add(out, " (number %zu)", most + 1);
    }
    dt_text_add(out, "\n");
}

/* Cores that each rank kept busy while it measured. */
static void add_busy(const json_t *phases, struct dt_text *out)
{
    const json_t *cpu = json_object_get(phases, "cpu_ns"),
                 *wall = json_object_get(phases, "wall_ns");
    if (json_array_size(cpu) == 0 || json_array_size(cpu) != json_array_size(wall))
        return;
    dt_text_add(out, "cores busy  ");
    for (size_t i = 0; i < json_array_size(cpu); i++) {
        dt_text_add(out, "%s", i > 0 ? ", " : "");
        dt_figure_add(seconds_at(cpu, i) / seconds_at(wall, i), out);
    }
    dt_text_add(out, " by rank, waiting included\n");
}

static void add_phases(const struct dt_result *result, const struct dt_target *target,
                       struct dt_text *out)
{
    json_t *roofline = dt_roofline(result, target),
           *blocks = json_object_get(result->report.phases, "blocks");
    int64_t steps = json_integer_value(json_object_get(result->report.phases, "steps"));
    if (roofline == NULL || steps <= 0) {
        json_decref(roofline);
        return;
    }
    dt_roofline_text(roofline, out);
    json_decref(roofline);
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        json_t *block = json_array_get(blocks, i);
        dt_text_add(out, "  %-10s %lld a step, ", json_string_value(json_object_get(block, "name")),
                    (long long)(json_integer_value(json_object_get(block, "count")) / steps));
        dt_figure_time((double)json_integer_value(json_object_get(block, "median_ns")) * 1e-9, out);
        add_layers(json_object_get(block, "layers_ns"), out);
    }
    add_busy(result->report.phases, out);
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
    if (dt_json_text_at(result->report.remarks, "read")[0] != '\0')
        dt_text_add(out, "note: %s\n", dt_json_text_at(result->report.remarks, "read"));
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
    dt_text_add(out, "\nprocesses   %d fresh ones, the interval is over them: medians",
                result->samples.processes.n);
    for (int i = 0; i < result->samples.processes.n; i++) {
        dt_text_add(out, " ");
        double seconds = result->samples.process_seconds[i];
        dt_figure_add(metric != NULL ? 1 / seconds : seconds / unit.size, out);
    }
    dt_text_add(out, " %s\n", metric != NULL ? metric : unit.name);
}

void dt_report_image(const struct dt_target *target, const struct dt_result *result,
                     const char *gain, struct dt_text *out)
{
    const struct dt_image_work *image = &target->image;
    double step = result->summary.median;
    if (image->whole) {
        dt_text_add(out,
                    "What is called a step here is a whole image of %d denoising steps, with "
                    "text encoder and VAE.",
                    image->steps);
        return;
    }
    dt_figure_time(dt_target_image_seconds(target, step, result->batch), out);
    dt_text_add(out, ", %d steps of ", image->sampler_steps);
    dt_figure_time(step, out);
    if (image->text_and_vae_ns > 0) {
        dt_text_add(out, " and ");
        dt_figure_time((double)image->text_and_vae_ns * 1e-9, out);
        dt_text_add(out, " of text encoder and VAE (%s)", image->given ? "given" : "measured");
    }
    dt_text_add(out, "%s%s", gain,
                image->text_and_vae_ns > 0
                    ? "."
                    : "; text encoder and VAE are not in it, --text-and-vae TIME adds them.");
}

static void add_verified(const struct dt_result *result, const struct dt_target *target,
                         struct dt_text *out)
{
    const char *plan = target->image.starts ? "default" : "1-rank";
    struct dt_text blind = {0};
    dt_text_add(out, "\nverified    differs from the %s plan by %.2g", plan,
                result->verified_error);
    dt_report_image_error(result, out);
    dt_target_blind(target, &blind);
    dt_text_add(out, blind.size > 0 ? "; %s\n" : "\n", dt_text_at(&blind));
    dt_text_fini(&blind);
}

void dt_report_image_error(const struct dt_result *result, struct dt_text *out)
{
    if (isfinite(result->image_error))
        dt_text_add(out, "; after all steps the image differs by %.2g", result->image_error);
    if (isfinite(result->repeat_error))
        dt_text_add(out, ", a second one of the 1-rank plan by %.2g", result->repeat_error);
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
    dt_text_add(out, "cold step   ");
    dt_figure_time(result->cold_seconds, out);
    dt_text_add(out, target->objective->metric != NULL ? "\nvalue       " : "\nwarm step   ");
    dt_figure_value(target->objective->metric, summary->median, summary->interval.low,
                    summary->interval.high, out);
    dt_text_add(out, " (%.1f %% interval), %d samples after %d warm-up steps", 100 * summary->level,
                result->samples.n, result->samples.start);
    add_processes(result, target->objective->metric, out);
    if (target->objective->metric != NULL) {
        dt_text_add(out, "memory      ");
        dt_figure_bytes(result->peak_bytes, out);
        dt_text_add(out, " in its largest process\n");
        dt_report_warnings(result, out);
        return;
    }
    dt_text_add(out, "ranks       ");
    for (int r = 0; r < result->ranks; r++) {
        dt_text_add(out, r > 0 ? ", " : "");
        dt_figure_time(result->samples.rank_seconds[r], out);
        dt_text_add(out, " (last %d)", result->samples.last[r]);
    }
    dt_text_add(out, "; skew ");
    dt_figure_time(result->samples.skew_seconds, out);
    dt_text_add(out, "\nmemory      ");
    dt_figure_bytes(result->peak_bytes, out);
    dt_text_add(out, " on the largest rank\nspeed       ");
    dt_figure_add(result->batch / summary->median, out);
    dt_text_add(out, " image-steps/s");
    if (target->image.flops > 0)
        dt_text_add(out, ", %.4g GFLOP/s",
                    target->image.flops * result->batch / summary->median * 1e-9);
    if (target->image.flops > 0 && result->report.flop_peak > 0)
        dt_text_add(out, ", %.0f %% of the GEMM peak",
                    100 * target->image.flops * result->batch / summary->median /
                        result->report.flop_peak);
    if (target->image.told) {
        dt_text_add(out, "\n%s", target->image.whole ? "" : "image       ");
        dt_report_image(target, result, "", out);
    }
    if (isfinite(result->verified_error))
        add_verified(result, target, out);
    else
        dt_text_add(out, "\nverified    no: the worker gave nothing to compare\n");
    dt_device_report_text(result, out);
    add_phases(result, target, out);
    dt_report_warnings(result, out);
}
