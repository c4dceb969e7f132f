/* SPDX-License-Identifier: MIT */
/* Compares one plan with itself like the final comparison of a session: sets of fresh processes,
 * mirrored random rounds, but always all 16 sets, for the best resolution a session can have. */
#include "base/clock.h"
#include "base/figures.h"
#include "space/json/json.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"
#include "tuner/session/session.h"

#include <math.h>
#include <stdio.h>

#define STOP_SECONDS 0.6 /* to stop the group */

static json_t *noise_json(const struct dt_entrant copies[2], const struct dt_noise *noise,
                          const struct dt_target *target, const struct dt_sets *sets)
{
    struct dt_noise_floor floor = dt_noise_floor_of(noise);
    struct dt_levels levels = dt_levels(copies, sets);
    json_t *object = dt_record_json(&dt_record_noise_floor, &floor);
    json_t *list = json_array();
    for (int i = 0; i < 2; i++)
        json_array_append_new(list, dt_result_json(&copies[i].result, target));
    json_object_set_new(object, "title", json_string(target->identity.title));
    json_object_set_new(object, "plan", dt_point_json(target->space, &copies[0].point));
    json_object_set_new(object, "rounds", json_integer(dt_sets_rounds(sets)));
    json_object_set_new(object, "levels",
                        json_pack("{s:i, s:o, s:o, s:o}", "sets", levels.sets, "visit",
                                  dt_json_number(levels.visit), "residency",
                                  dt_json_number(levels.residency), "start",
                                  dt_json_number(levels.start)));
    json_object_set_new(object, "interval_level", json_real(copies[0].result.summary.level));
    json_object_set_new(object, "cv", json_real(noise->cv));
    json_object_set_new(object, "noisy", json_boolean(noise->noisy));
    json_object_set_new(object, "differs", json_boolean(noise->differs));
    json_object_set_new(object, "copies", list);
    return object;
}

static void add_copy(const char *name, const char *metric, const struct dt_entrant *copy,
                     struct dt_text *out)
{
    const struct dt_summary *summary = &copy->result.summary;
    const struct dt_series *series = &summary->series;
    dt_text_add(out, "copy %s      ", name);
    dt_figure_value(metric, summary->median, summary->interval.low, summary->interval.high, out);
    dt_text_add(out, ", %d visits%s%s%s%s\n", copy->result.samples.n,
                series->drifting ? ", drifting" : "", series->stepped ? ", stepped" : "",
                series->bimodal ? ", two modes" : "",
                series->autocorrelated ? ", neighbours depend on each other" : "");
}

static void add_text(const struct dt_entrant copies[2], const struct dt_noise *noise,
                     const struct dt_target *target, const struct dt_sets *sets,
                     struct dt_text *out)
{
    struct dt_levels levels = dt_levels(copies, sets);
    dt_text_add(out, "%s\nplan        ", target->identity.title);
    dt_point_text(target->space, &copies[0].point, out);
    dt_text_add(out, "\n");
    add_copy("A", target->objective->metric, &copies[0], out);
    add_copy("B", target->objective->metric, &copies[1], out);
    dt_text_add(out, "B against A ");
    dt_figure_ratio(noise->ratio, noise->interval.low, noise->interval.high, out);
    dt_text_add(out, " times as long (%.1f %% interval), %d interleaved pairs of %d sets\n",
                100 * copies[0].result.summary.level, noise->pairs, noise->sets);
    dt_text_add(out,
                "spread      %s from visit to visit, %s from residency to residency, %s from start "
                "to start\n",
                dt_figure_percent(levels.visit).text, dt_figure_percent(levels.residency).text,
                dt_figure_percent(levels.start).text);
    dt_text_add(out,
                "The smallest difference this machine can resolve now is %s: a plan that is "
                "faster or slower by less cannot be distinguished from the same plan run twice.\n",
                noise->margin > DT_NOISE_LOST ? "more than a factor of two"
                                              : dt_figure_percent(noise->margin).text);
    dt_auto_text note = {0};
    dt_noise_note(noise, &note);
    if (note.size > 0)
        dt_text_add(out, "warning: %s\n", dt_text_at(&note));
}

/* A plan that hung until the end of the budget may only have lacked time. */
static dt_status judge_copies(const struct dt_entrant copies[2], const struct dt_sets *sets,
                              bool late)
{
    for (int i = 0; i < 2; i++)
        if (copies[i].out && !(late && copies[i].result.outcome == DT_TRIAL_HUNG))
            return dt_result_status(&copies[i].result);
    int quiet = dt_sets_quiet(sets);
    if (quiet < DT_SETS_LEAST && quiet < sets->count)
        return dt_fail(DT_EPROVISIONAL,
                       "other programs were busy in %d of %d sets of fresh processes, "
                       "and fewer than %d others decide nothing (DITTUNE_LOAD=none measures beside "
                       "them)",
                       sets->count - quiet, sets->count, DT_SETS_LEAST);
    if (quiet < DT_SETS_LEAST)
        return dt_fail(
            DT_EPROVISIONAL,
            "the budget ended after %d sets of fresh processes, and fewer than %d decide "
            "nothing: give it more, as in --budget 2m",
            quiet, DT_SETS_LEAST);
    return DT_OK;
}

static dt_status compare_copies(const struct dt_options *options, const struct dt_target *target,
                                int64_t deadline_ns, struct dt_entrant copies[2])
{
    struct dt_rig rig;
    struct dt_progress progress;
    struct dt_sets sets = {0};
    dt_progress_init(&progress, target, dt_print_voice(options, true), deadline_ns);
    progress.comparison = "noise";
    dt_rig_init(&rig, target, (uint64_t)options->job.seed);
    rig.end_ns = deadline_ns;
    struct dt_compare how = {.deadline_ns = deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .sets = DT_SETS_USUAL,
                             .every_set = true,
                             .seed = (uint64_t)options->job.seed + 1,
                             .progress = dt_progress_set,
                             .context = &progress};
    dt_status status = dt_compare_run(&rig, copies, 2, &how, &sets);
    dt_progress_end(&progress);
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    if (status == DT_OK)
        status = judge_copies(copies, &sets, dt_clock_ns() >= how.deadline_ns);
    if (status < 0)
        return status;
    struct dt_noise noise = dt_noise_of(&copies[0], &copies[1]);
    struct dt_text text = {0};
    add_text(copies, &noise, target, &sets, &text);
    return dt_print_either(options, DT_OK, noise_json(copies, &noise, target, &sets), &text);
}

dt_status dt_command_noise(const struct dt_options *options)
{
    struct dt_job job;
    DT_CLEANUP(dt_target_free_at) struct dt_target *target = NULL;
    struct dt_entrant copies[2] = {{.role = DT_ENTRANT_DEFAULT}, {.role = DT_ENTRANT_TWIN}};
    DT_TRY(dt_options_job(options, options->job.plan, &job));
    DT_TRY(dt_alone(options));
    int64_t deadline_ns = dt_clock_ns() + options->job.budget_ns;
    DT_TRY(dt_target_new(&job, &target));
    dt_print_cores(&target->hardware.backend, options->print.quiet);
    DT_TRY(dt_target_devices_free(target));
    DT_TRY(dt_target_check(target));
    struct dt_point point = target->fallback;
    if (options->job.plan != NULL)
        DT_TRY(dt_target_plan(target, options->job.plan, &point));
    copies[0].point = copies[1].point = point;
    dt_print_crowded(target, &point);
    dt_status status = compare_copies(options, target, deadline_ns, copies);
    dt_entrant_fini(&copies[0]);
    dt_entrant_fini(&copies[1]);
    return status;
}
