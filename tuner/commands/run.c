/* SPDX-License-Identifier: MIT */
/* One plan, measured like a trial, with its phases and the 1-rank plan beside it (which also is the reference its
 * output is compared with). A sweep does it for each batch or rank count. */
#include "base/clock.h"
#include "tuner/alone.h"
#include "tuner/print.h"
#include "tuner/session/history.h"
#include "tuner/session/record.h"
#include "tuner/session/report.h"
#include "tuner/trial/processes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_SECONDS  1800
#define WARM_SECONDS 1

struct run {
    const struct dt_options *options;
    struct dt_journal *raw; /* NULL: none is asked for */
    const struct dt_target *target;
    const char *role;    /* of what is measured: "plan" or "baseline" */
    json_t *list;        /* what is to be printed of each plan */
    struct dt_text text; /* of the plan, unless a sweep's list says it all */
};

static dt_status keep(void *context, const struct dt_result *result)
{
    const struct run *run = context;
    return dt_history_measurement(run->raw, run->target, run->role, result);
}

static dt_status measure_both(struct run *run, struct dt_rig *rig, const struct dt_point *point,
                              struct dt_result *result, struct dt_result *one)
{
    const struct dt_options *options = run->options;
    struct dt_measure how = {.deadline_ns = dt_clock_ns() + RUN_SECONDS * DT_NS_PER_SECOND,
                             .warm_seconds = WARM_SECONDS,
                             .half_width = 0.005,
                             .peak = true,
                             .exchanges = true,
                             .keep = keep,
                             .context = run,
                             .output = options->output};
    run->role = "plan";
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
    run->role = "baseline";
    dt_rig_fresh(rig, DT_NS_PER_SECOND);
    return dt_measure_plan(rig, &base, &how, one);
}

/* The plan's text with the value of a sweep's step (0: there is none). */
static void name_plan(const struct dt_options *options, int value, struct dt_text *out)
{
    dt_text_add(out, "%s", options->plan != NULL ? options->plan : "");
    if (value > 0)
        dt_text_add(out, " %s=%d", options->sweep.ranks ? "ranks" : "batch", value);
}

static dt_status run_plan(struct run *run, const struct dt_point *point)
{
    const struct dt_target *target = run->target;
    struct dt_result result = {0}, one = {0};
    struct dt_rig rig;
    dt_rig_init(&rig, target, (uint64_t)run->options->seed);
    if (dt_target_oversubscribed(target, point))
        fprintf(stderr,
                "dittune: warning: %d ranks on %d %ss: oversubscribed, the times mean little\n",
                dt_target_ranks(target, point), target->cores, target->unit);
    dt_status status = measure_both(run, &rig, point, &result, &one);
    if (status == DT_OK)
        status = dt_result_status(&result);
    if (status == DT_OK) {
        json_array_append_new(run->list, dt_record_run(&result, &one, target));
        dt_report_run(&result, &one, target, &run->text);
    }
    dt_rig_fini(&rig, 10 * DT_NS_PER_SECOND);
    dt_result_fini(&result);
    dt_result_fini(&one);
    return status;
}

/* Measures the plan, or with a value (not 0) the plan at that step of the sweep. */
static dt_status run_one(struct run *run, int value)
{
    const struct dt_options *options = run->options;
    struct dt_text plan = {0};
    name_plan(options, value, &plan);
    struct dt_target_opts opts = {.size = options->sizes.count > 0 ? options->sizes.values[0] : 0,
                                  .for_run = true,
                                  .plan = dt_text_at(&plan),
                                  .batch = options->sweep.ranks ? 0 : value};
    struct dt_target *target = NULL;
    struct dt_point point;
    dt_status status = dt_target_new(options, &opts, &target);
    if (status == DT_OK)
        status = dt_target_check(target);
    if (status == DT_OK)
        status = dt_target_plan(target, dt_text_at(&plan), &point);
    run->target = target;
    if (status == DT_OK && json_array_size(run->list) == 0)
        dt_print_cores(&target->backend, options->quiet);
    if (status == DT_OK)
        status = dt_target_devices_free(target);
    if (status == DT_OK)
        status = dt_history_run(run->raw, target, &options->sweep, value);
    if (status == DT_OK)
        status = run_plan(run, &point);
    dt_text_fini(&plan);
    dt_target_free(target);
    return status;
}

static dt_status run_all(const struct dt_options *options)
{
    const struct dt_ints *values = &options->sweep.values;
    struct run run = {.options = options, .list = json_array()};
    dt_status status = DT_OK;
    if (options->raw != NULL)
        status = dt_journal_create(options->raw, &run.raw);
    if (status == DT_OK && values->count == 0)
        status = run_one(&run, 0);
    for (int i = 0; i < values->count && status == DT_OK; i++)
        status = run_one(&run, values->values[i]);
    if (status == DT_OK)
        status = dt_print_run(&options->sweep, run.list, &run.text, options->json);
    dt_journal_close(run.raw);
    dt_text_fini(&run.text);
    json_decref(run.list);
    return status;
}

/* Before minutes of measuring: can the file of that option be written where it shall go? */
static dt_status check_writable(const struct dt_options *options, const char *option,
                                const char *path)
{
    struct stat info, other;
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
            return dt_fail(DT_EUSAGE, "--%s %s is the file that is read from", option, path);
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
        DT_TRY(check_writable(options, "output", options->output));
    if (options->raw != NULL)
        DT_TRY(check_writable(options, "raw", options->raw));
    if (options->sweep.values.count > 0 && options->input != NULL)
        return dt_fail(DT_EUSAGE, "--sweep does not go with --input: the batch is the file's");
    if (options->input != NULL && options->batches.count > 0)
        return dt_fail(DT_EUSAGE, "--batch does not go with --input: the batch is the file's");
    DT_TRY(dt_alone(options));
    return run_all(options);
}
