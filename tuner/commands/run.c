/* SPDX-License-Identifier: MIT */
/* One plan, measured like a trial, with its phases and the 1-rank plan beside it (which also is the reference its
 * output is compared with). A sweep does it for each batch or rank count. */
#include "base/clock.h"
#include "tuner/print.h"
#include "tuner/session/report.h"
#include "tuner/trial/fits.h"
#include "tuner/trial/processes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_SECONDS 1800

static dt_status measure_both(struct dt_rig *rig, const struct dt_point *point,
                              const struct dt_options *options, struct dt_result *result,
                              struct dt_result *one)
{
    struct dt_measure how = {.deadline_ns = dt_clock_ns() + RUN_SECONDS * DT_NS_PER_SECOND,
                             .half_width = 0.005,
                             .hopeless = INFINITY,
                             .good_enough = INFINITY,
                             .peak = true,
                             .exchanges = true,
                             .output = options->output};
    DT_TRY(dt_measure_processes(rig, point, &how, (int)options->processes, result));
    struct dt_point base = rig->target->baseline;
    int batch = dt_space_role(rig->target->space, DT_ROLE_BATCH);
    if (batch >= 0)
        base.index[batch] = point->index[batch];
    if (result->outcome != DT_TRIAL_OK || dt_point_equal(rig->target->space, &base, point) ||
        !dt_space_feasible(rig->target->space, &base))
        return DT_OK;
    how.half_width = 0.05;
    how.peak = how.exchanges = false;
    how.output = NULL;
    dt_rig_fresh(rig, DT_NS_PER_SECOND);
    return dt_measure_plan(rig, &base, &how, one);
}

static json_t *run_json(const struct dt_result *result, const struct dt_result *one,
                        const struct dt_target *target)
{
    json_t *object = dt_result_json(result, target);
    struct dt_text cold = {0};
    json_object_set_new(object, "title", json_string(target->title));
    json_object_set_new(object, "baseline", one->n > 0 ? dt_result_json(one, target) : json_null());
    json_object_set_new(object, "speedup",
                        one->n > 0 ? json_real(one->summary.median / result->summary.median)
                                   : json_null());
    bool said = dt_report_cold(result, one->n > 0 ? one : NULL, target, &cold);
    json_object_set_new(object, "cold_note", said ? json_string(dt_text_at(&cold)) : json_null());
    json_object_set_new(object, "fits",
                        json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->exchanges)));
    dt_text_fini(&cold);
    return object;
}

static void add_text(const struct dt_result *result, const struct dt_result *one,
                     const struct dt_target *target, struct dt_text *out)
{
    json_t *fits = json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->exchanges));
    dt_report_result(result, target, out);
    dt_fits_text(fits, out);
    json_decref(fits);
    if (one->n == 0)
        return;
    dt_text_add(out, "1 rank      ");
    dt_report_time(one->summary.median, out);
    dt_text_add(out, " warm, ");
    dt_report_time(one->cold_seconds, out);
    dt_text_add(out, " cold: this plan is %.3f times as fast\n",
                one->summary.median / result->summary.median);
    dt_report_cold(result, one, target, out);
}

/* Measures the plan, or with a value (not 0) the plan at that step of the sweep, and appends to json or text. */
static dt_status run_one(const struct dt_options *options, int value, json_t *list,
                         struct dt_text *text)
{
    bool ranks = options->sweep.ranks;
    struct dt_text full = {0};
    dt_text_add(&full, "%s", options->plan != NULL ? options->plan : "");
    if (value > 0)
        dt_text_add(&full, " %s=%d", ranks ? "ranks" : "batch", value);
    struct dt_target_opts opts = {.size = options->sizes.count > 0 ? options->sizes.values[0] : 0,
                                  .for_run = true,
                                  .plan = dt_text_at(&full),
                                  .batch = ranks ? 0 : value};
    struct dt_target *target = NULL;
    struct dt_point point;
    struct dt_result result = {0}, one = {0};
    struct dt_rig rig;
    dt_status status = dt_target_new(options, &opts, &target);
    if (status < 0) {
        dt_text_fini(&full);
        return status;
    }
    status = dt_target_check(target);
    if (status == DT_OK)
        status = dt_target_plan(target, dt_text_at(&full), &point);
    dt_rig_init(&rig, target, (uint64_t)options->seed);
    if (status == DT_OK && dt_target_oversubscribed(target, &point))
        fprintf(stderr,
                "dittune: warning: %d ranks on %d cores: oversubscribed, the times mean little\n",
                dt_target_ranks(target, &point), target->cores);
    if (status == DT_OK)
        status = measure_both(&rig, &point, options, &result, &one);
    if (status == DT_OK)
        status = dt_result_status(&result);
    if (status == DT_OK && options->json)
        json_array_append_new(list, run_json(&result, &one, target));
    else if (status == DT_OK)
        add_text(&result, &one, target, text);
    dt_rig_fini(&rig, 10 * DT_NS_PER_SECOND);
    dt_result_fini(&result);
    dt_result_fini(&one);
    dt_text_fini(&full);
    dt_target_free(target);
    return status;
}

static void add_curve(const struct dt_sweep *sweep, const json_t *list, struct dt_text *text)
{
    const char *name = sweep->ranks ? "ranks" : "batch";
    dt_text_add(text, "%8s %12s %14s %14s\n", name, "step, ms", "samples/s", "GFLOP/s");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *row = json_array_get(list, i);
        dt_text_add(text, "%8lld %12.4g %14.4g %14.4g\n",
                    (long long)json_integer_value(json_object_get(row, name)),
                    json_number_value(json_object_get(row, "median_seconds")) * 1e3,
                    json_number_value(json_object_get(row, "samples_per_second")),
                    json_number_value(json_object_get(row, "flop_rate")) * 1e-9);
    }
}

/* {"batch": fit} or {"ranks": fit} of what the sweep measured. */
static json_t *fit_sweep(const struct dt_sweep *sweep, const json_t *list)
{
    double x[DT_LIST_MAX], seconds[DT_LIST_MAX];
    int n = (int)json_array_size(list);
    bool oversubscribed = false;
    for (int i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        x[i] = sweep->values.values[i];
        seconds[i] = json_number_value(json_object_get(row, "median_seconds"));
        oversubscribed = oversubscribed || json_is_true(json_object_get(row, "oversubscribed"));
    }
    json_t *fit = sweep->ranks ? dt_fits_ranks(x, seconds, n) : dt_fits_batch(x, seconds, n);
    json_object_set_new(fit, "oversubscribed", json_boolean(oversubscribed));
    return json_pack("{s:o}", sweep->ranks ? "ranks" : "batch", fit);
}

static dt_status sweep_plan(const struct dt_options *options)
{
    const struct dt_sweep *sweep = &options->sweep;
    struct dt_options quiet = *options;
    struct dt_text text = {0};
    json_t *list = json_array(), *fits = NULL;
    dt_status status = DT_OK;
    quiet.json = true;
    for (int i = 0; i < sweep->values.count && status == DT_OK; i++)
        status = run_one(&quiet, sweep->values.values[i], list, NULL);
    if (status == DT_OK)
        fits = fit_sweep(sweep, list);
    if (status == DT_OK && options->json) {
        status = dt_print_json(json_pack("{s:O, s:O}", "sweep", list, "fits", fits));
    } else if (status == DT_OK) {
        add_curve(sweep, list, &text);
        dt_fits_text(fits, &text);
    }
    dt_status printed = dt_print_text(&text);
    json_decref(fits);
    json_decref(list);
    return status < 0 ? status : printed;
}

/* Before minutes of measuring: can the output be written where it shall go? */
static dt_status check_output(const struct dt_options *options)
{
    struct stat info, other;
    const char *path = options->output;
    const char *const sources[] = {options->input, options->weights};
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (size >= sizeof folder)
        return dt_fail(DT_EIO, "cannot write %.200s...: the path is too long", path);
    memcpy(folder, path, size);
    folder[size] = '\0';
    if (access(size > 0 ? folder : ".", W_OK | X_OK) != 0)
        return dt_fail(DT_EIO, "cannot write %s: %s", path, strerror(errno));
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return dt_fail(DT_EIO, "cannot write %s: it is not a regular file", path);
    for (int i = 0; i < 2; i++)
        if (sources[i] != NULL && stat(path, &info) == 0 && stat(sources[i], &other) == 0 &&
            info.st_ino == other.st_ino && info.st_dev == other.st_dev)
            return dt_fail(DT_EUSAGE, "--output %s is the file that is read from", path);
    return DT_OK;
}

dt_status dt_command_run(const struct dt_options *options)
{
    if (options->sizes.count > 1)
        return dt_fail(DT_EUSAGE, "'dittune run' takes one --size, not %d", options->sizes.count);
    if (options->processes < 1 || options->processes > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "--processes %lld is not a count of 1 to %d",
                       (long long)options->processes, DT_PROCESSES_MOST);
    if (options->output != NULL && options->input == NULL)
        return dt_fail(
            DT_EUSAGE,
            "--output needs --input: the output of one forward pass of that file is written");
    if (options->output != NULL)
        DT_TRY(check_output(options));
    if (options->sweep.values.count > 0 && options->input != NULL)
        return dt_fail(DT_EUSAGE, "--sweep does not go with --input: the batch is the file's");
    if (options->input != NULL && options->batches.count > 0)
        return dt_fail(DT_EUSAGE, "--batch does not go with --input: the batch is the file's");
    if (options->sweep.values.count > 0)
        return sweep_plan(options);
    struct dt_text text = {0};
    json_t *list = json_array();
    dt_status status = run_one(options, 0, list, &text);
    dt_status printed = dt_print_text(&text);
    if (status == DT_OK && options->json)
        printed = dt_print_json(json_incref(json_array_get(list, 0)));
    json_decref(list);
    return status < 0 ? status : printed;
}
