/* SPDX-License-Identifier: MIT */
/* Measures one plan like a trial, with its phases, and beside it the 1-rank plan (which is also the
 * reference for its output). A sweep does it for each batch or rank count. */
#include "base/clock.h"
#include "base/figures.h"
#include "base/replace.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/measure/measure.h"
#include "tuner/session/replay.h"
#include "tuner/session/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_SECONDS  1800
#define WARM_SECONDS 1
#define TRACE_STEPS  8

/* ---- --trace: the parts of a step on each rank, as a file for Perfetto, and in figures.
 * Ranks of a host share its clock; those of other hosts are placed by the barrier that the step
 * began with. */

/* The worker's answer; a new reference, NULL where it has not one part a rank. */
static json_t *trace_of(const struct dt_result *result)
{
    json_t *trace = NULL;
    if (!result->traced ||
        dt_json_parse(result->trace, strlen(result->trace), "the answer traced", &trace) != DT_OK)
        return NULL;
    if ((int)json_array_size(json_object_get(trace, "ranks")) == result->ranks)
        return trace;
    json_decref(trace);
    return NULL;
}

/* Where the rank's step began after the first of its host. */
static double offset_of(const json_t *ranks, size_t rank)
{
    const json_t *mine = json_array_get(ranks, rank), *other;
    double first = dt_json_number_at(mine, "start_ns");
    size_t i;
    json_array_foreach((json_t *)ranks, i, other)
    {
        if (strcmp(dt_json_text_at(other, "host"), dt_json_text_at(mine, "host")) == 0)
            first = fmin(first, dt_json_number_at(other, "start_ns"));
    }
    double offset = dt_json_number_at(mine, "start_ns") - first;
    return isfinite(offset) ? offset : 0;
}

static void add_rank(const json_t *ranks, size_t rank, json_t *events)
{
    const json_t *mine = json_array_get(ranks, rank), *span;
    struct dt_text name = {0};
    double offset = offset_of(ranks, rank);
    size_t i;
    dt_text_add(&name, "rank %zu on %s", rank, dt_json_text_at(mine, "host"));
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "process_name",
                                            "ph", "M", "pid", (int)rank, "tid", 0, "args", "name",
                                            dt_text_at(&name)));
    dt_text_fini(&name);
    json_array_foreach(json_object_get(mine, "spans"), i, span)
    {
        const char *what = json_string_value(json_array_get(span, 0));
        const char *category = json_string_value(json_array_get(span, 1));
        double begin = json_number_value(json_array_get(span, 2)),
               ns = json_number_value(json_array_get(span, 3));
        if (what != NULL && category != NULL && begin >= 0 && ns > 0)
            json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i}", "name",
                                                    what, "cat", category, "ph", "X", "ts",
                                                    (offset + begin) * 1e-3, "dur", ns * 1e-3,
                                                    "pid", (int)rank, "tid", 0));
    }
}

static dt_status trace_write(const struct dt_result *result, const struct dt_target *target,
                             const char *path)
{
    json_auto_t *trace = trace_of(result);
    const json_t *ranks = json_object_get(trace, "ranks");
    if (trace == NULL)
        return dt_fail(DT_EUNSUP, "--trace: the worker reports no parts of a step: %s",
                       result->trace != NULL && !result->traced
                           ? result->trace
                           : "its answer has not one part a rank");
    json_t *events = json_array();
    dt_auto_text text = {0};
    for (size_t rank = 0; rank < json_array_size(ranks); rank++)
        add_rank(ranks, rank, events);
    dt_point_short(target->space, &result->point, &text);
    json_auto_t *file =
        json_pack("{s:o, s:s, s:{s:s, s:s}}", "traceEvents", events, "displayTimeUnit", "ms",
                  "otherData", "network", target->identity.title, "plan", dt_text_at(&text));
    dt_text_clear(&text);
    DT_TRY(dt_json_text(file, &text));
    return dt_replace_text(path, &text);
}

/* Layers of the same name that follow each other are one part of the line, with the least
 * and the most of them. */
static json_t *add_layers(const json_t *rank, struct dt_text *out)
{
    const json_t *layers = json_object_get(rank, "layers");
    json_t *list = json_array();
    size_t n = json_array_size(layers);
    for (size_t i = 0; i < n;) {
        const char *name = json_string_value(json_array_get(json_array_get(layers, i), 0));
        double low = INFINITY, high = 0, sum = 0;
        size_t first = i;
        for (; i < n; i++) {
            const json_t *layer = json_array_get(layers, i);
            const char *other = json_string_value(json_array_get(layer, 0));
            double seconds = json_number_value(json_array_get(layer, 1)) * 1e-9;
            if (name == NULL || other == NULL || strcmp(name, other) != 0)
                break;
            json_array_append_new(
                list, json_pack("{s:s, s:f}", "name", other, "median_seconds", seconds));
            low = fmin(low, seconds);
            high = fmax(high, seconds);
            sum += seconds;
        }
        if (i == first)
            break; /* not a layer */
        dt_text_add(out, "%s%s", first > 0 ? ", " : "", name);
        if (i - first > 1)
            dt_text_add(out, " x %zu %s (each %s to %s)", i - first, dt_figure_of(sum).text,
                        dt_figure_of(low).text, dt_figure_of(high).text);
        else
            dt_text_add(out, " %s", dt_figure_of(sum).text);
    }
    return list;
}

/* Cores that each rank kept busy; as text, unless `run` prints those of the measured steps. */
static json_t *add_cores(const struct dt_result *result, const json_t *ranks, struct dt_text *out)
{
    bool printed = result->report.phases != NULL && result->report.phases->cpu_ns.at != NULL;
    json_t *cores = json_array();
    const json_t *rank;
    dt_auto_text line = {0};
    size_t i;
    json_array_foreach((json_t *)ranks, i, rank)
    {
        double busy = dt_json_number_at(rank, "cpu_ns") / dt_json_number_at(rank, "wall_ns");
        json_array_append_new(cores, dt_json_number(busy));
        dt_text_add(&line, "%s%s", i > 0 ? ", " : "", dt_figure_number(busy).text);
    }
    if (!printed)
        dt_text_add(out, "cores busy  %s by rank, waiting included\n", dt_text_at(&line));
    return cores;
}

static json_t *trace_figures(const struct dt_result *result, struct dt_text *out)
{
    json_auto_t *trace = trace_of(result);
    const json_t *ranks = json_object_get(trace, "ranks");
    if (trace == NULL)
        return json_null();
    size_t last = 0; /* the rank whose step was the longest */
    for (size_t i = 1; i < json_array_size(ranks); i++)
        if (dt_json_number_at(json_array_get(ranks, i), "step_ns") >
            dt_json_number_at(json_array_get(ranks, last), "step_ns"))
            last = i;
    dt_text_add(out, "layers      ");
    json_t *layers = add_layers(json_array_get(ranks, last), out);
    dt_text_add(out, ": medians of %lld steps on rank %zu\n",
                (long long)dt_json_integer_at(trace, "n"), last);
    return json_pack("{s:i, s:o, s:o}", "rank", (int)last, "layers", layers, "cpu_cores",
                     add_cores(result, ranks, out));
}

/* ---- the command */

struct run {
    const struct dt_options *options;
    struct dt_job job;
    struct dt_journal *raw; /* NULL: not requested */
    const struct dt_target *target;
    struct dt_progress progress;
    enum dt_entrant_role role; /* role of the current plan: the plan or the baseline */
    int value;                 /* value of the sweep's step; 0: no sweep */
    int made;                  /* processes that have measured the plan */
    int measured;              /* steps of the sweep, or the plan */
    int failed;          /* steps of the sweep whose plan failed, infeasible ones not included */
    json_t *list;        /* JSON object of each plan */
    struct dt_text text; /* text of the plan, empty for a sweep */
};

/* "measuring", "batch=2, process 3 of 5" */
static void show_next(struct run *run, const struct dt_point *point)
{
    int all = (int)run->options->run.processes;
    char step[32] = "", process[48] = "";
    if (run->value > 0)
        snprintf(step, sizeof step, "%s=%d, ", run->options->run.sweep.ranks ? "ranks" : "batch",
                 run->value);
    if (all > 1)
        snprintf(process, sizeof process, "process %d of %d", run->made + 1, all);
    char what[96];
    snprintf(what, sizeof what, "%s%s:", step, all > 1 ? process : dt_entrant_role_text(run->role));
    dt_progress_now(&run->progress, point, what);
}

/* Shows the result of one of several processes, or of one step of a sweep. */
static void show_made(struct run *run, const struct dt_result *result)
{
    int all = (int)run->options->run.processes;
    dt_auto_text line = {0};
    run->made++;
    if (run->role != DT_ENTRANT_PLAN || result->samples.n == 0 || (all == 1 && run->value == 0))
        return;
    if (run->value > 0)
        dt_text_add(&line, "%s=%d, ", run->options->run.sweep.ranks ? "ranks" : "batch",
                    run->value);
    dt_text_add(&line, "process %d of %d: ", run->made, all);
    dt_figure_value(run->target->objective->metric, result->summary.median,
                    result->summary.interval.low, result->summary.interval.high, &line);
    dt_progress_note(&run->progress, "%s", dt_text_at(&line));
}

/* Writes a record of --raw, if that was asked for. */
static dt_status raw_add(const struct run *run, const struct dt_log_record *record)
{
    return dt_log_record_write(run->raw, record, run->target);
}

/* value 0: there is no sweep. */
static struct dt_run_step step_of(const struct dt_options *options, int value)
{
    return (struct dt_run_step){
        .sweeps = value > 0, .ranks = options->run.sweep.ranks, .value = value};
}

static dt_status keep_result(void *context, const struct dt_result *result)
{
    struct run *run = context;
    show_made(run, result);
    if (run->made < run->options->run.processes)
        show_next(run, &result->point);
    const struct dt_log_record record = {
        .kind = DT_LOG_TRIAL, .role = run->role, .result = *result};
    return raw_add(run, &record);
}

static dt_status measure_both(struct run *run, struct dt_rig *rig, const struct dt_point *point,
                              struct dt_result *result, struct dt_result *one)
{
    const struct dt_options *options = run->options;
    const bool quick = options->run.quick;
    struct dt_measure how = {.deadline_ns = dt_clock_ns() + RUN_SECONDS * DT_NS_PER_SECOND,
                             .rest_ns = quick ? dt_clock_ns() : 0, /* no look after the first */
                             .warm_seconds = quick ? 0 : WARM_SECONDS,
                             .half_width = 0.005,
                             .peak = !quick,
                             .exchanges = !quick,
                             .trace = options->run.trace != NULL ? TRACE_STEPS : 0,
                             .keep = keep_result,
                             .context = run,
                             .output = options->run.output};
    /* the 1-rank plan at the plan's batch, when that is another plan and feasible */
    const struct dt_space *space = rig->target->space;
    struct dt_point base = rig->target->baseline;
    int batch = dt_space_role(space, DT_ROLE_BATCH);
    if (batch >= 0)
        base.index[batch] = point->index[batch];
    run->role = DT_ENTRANT_PLAN;
    run->made = 0;
    show_next(run, point);
    DT_TRY(dt_measure_processes(rig, point, &how, (int)options->run.processes, result));
    if (result->outcome != DT_TRIAL_OK || dt_point_equal(space, &base, point) ||
        !dt_space_feasible(space, &base))
        return DT_OK;
    how.half_width = 0.05;
    how.peak = how.exchanges = false;
    how.trace = 0;
    how.output = NULL;
    run->role = DT_ENTRANT_BASELINE;
    dt_progress_now(&run->progress, &base, "the 1-rank plan:");
    dt_rig_fresh(rig, DT_NS_PER_SECOND);
    return dt_measure_plan(rig, &base, &how, one);
}

/* Adds a result, also when a signal ended it. */
static void add_result(struct run *run, const struct dt_result *result, const struct dt_result *one,
                       bool interrupted)
{
    json_t *record = dt_record_run(result, one, run->target);
    dt_report_run(result, one, run->target, &run->text);
    if (interrupted) {
        json_object_set_new(record, "interrupted", json_true());
        dt_text_add(&run->text, "warning: interrupted: these are the %d samples until then\n",
                    result->samples.n);
    }
    if (run->options->run.trace != NULL)
        json_object_set_new(record, "trace", trace_figures(result, &run->text));
    json_array_append_new(run->list, record);
    run->measured++;
}

static dt_status run_plan(struct run *run, const struct dt_point *point)
{
    const struct dt_target *target = run->target;
    struct dt_result result = {0}, one = {0};
    struct dt_rig rig;
    dt_rig_init(&rig, target, (uint64_t)run->options->job.seed);
    dt_print_crowded(target, point);
    dt_progress_init(&run->progress, target, dt_print_voice(run->options, false), 0);
    dt_status status = measure_both(run, &rig, point, &result, &one);
    dt_progress_end(&run->progress);
    bool interrupted = status == DT_EINTR;
    if (status == DT_OK) {
        status = dt_result_status(&result);
        run->failed += status == DT_FAILED;
        if (result.outcome == DT_TRIAL_INFEASIBLE && run->value > 0)
            status =
                dt_fail(DT_EINFEASIBLE, "%s", result.cause); /* the status of this step alone */
    }
    if ((status == DT_OK || interrupted) && result.samples.n > 0 && result.outcome == DT_TRIAL_OK)
        add_result(run, &result, &one, interrupted && one.samples.n == 0);
    if (status == DT_OK && run->options->run.trace != NULL)
        status = trace_write(&result, target, run->options->run.trace);
    dt_rig_fini(&rig, 10 * DT_NS_PER_SECOND);
    dt_result_fini(&result);
    dt_result_fini(&one);
    return interrupted ? dt_fail(DT_EINTR, "interrupted") : status;
}

/* Measures the plan, or with a value (not 0) the plan at that step of the sweep. */
static dt_status run_one(struct run *run, int value)
{
    const struct dt_options *options = run->options;
    dt_auto_text plan = {0};
    dt_text_add(&plan, "%s", options->job.plan != NULL ? options->job.plan : "");
    if (value > 0)
        dt_text_add(&plan, " %s=%d", options->run.sweep.ranks ? "ranks" : "batch", value);
    run->job.plan = dt_text_at(&plan);
    if (value > 0 && !options->run.sweep.ranks)
        run->job.batches = (struct dt_ints){.count = 1, .values = {value}};
    DT_CLEANUP(dt_target_free_at) struct dt_target *target = NULL;
    struct dt_point point;
    DT_TRY(dt_target_new(&run->job, &target));
    DT_TRY(dt_target_check(target));
    DT_TRY(dt_target_plan(target, dt_text_at(&plan), &point));
    run->target = target;
    run->value = value;
    if (json_array_size(run->list) == 0)
        dt_print_cores(&target->hardware.backend, options->print.quiet);
    DT_TRY(dt_target_devices_free(target));
    DT_TRY(
        raw_add(run, &(struct dt_log_record){.kind = DT_LOG_RUN, .run = step_of(options, value)}));
    return run_plan(run, &point);
}

/* A step whose plan does not fit, or fails, is left out and reported; when nothing was measured,
 * the first error counts. */
static dt_status sweep_all(struct run *run, const struct dt_ints *values)
{
    struct dt_error first = {DT_OK, ""};
    for (int i = 0; i < values->count; i++) {
        struct dt_error error = {DT_OK, ""};
        dt_status status = dt_error_keep(&error, run_one(run, values->values[i]));
        if (status == DT_OK)
            continue;
        if (status != DT_EINFEASIBLE && status != DT_FAILED)
            return status;
        if (first.status == DT_OK)
            first = error;
        json_array_append_new(run->list, dt_record_left_out(&run->options->run.sweep,
                                                            values->values[i], error.sentence));
        struct dt_log_record record = {.kind = DT_LOG_LEFT_OUT,
                                       .run = step_of(run->options, values->values[i])};
        record.run.reason = error.sentence;
        DT_TRY(raw_add(run, &record));
    }
    if (run->measured == 0)
        return dt_error_raise(&first);
    return run->failed > 0 ? dt_fail(DT_FAILED, "the plans of %d of %d steps of the sweep failed",
                                     run->failed, values->count)
                           : DT_OK;
}

static dt_status run_all(const struct dt_options *options, const struct dt_job *job)
{
    const struct dt_ints *values = &options->run.sweep.values;
    struct run run = {.options = options, .job = *job, .list = json_array()};
    dt_status status = DT_OK, printed = DT_OK;
    struct dt_error error = {DT_OK, ""};
    if (options->run.raw != NULL)
        status = dt_journal_create(options->run.raw, &run.raw);
    if (status == DT_OK)
        status = values->count > 0 ? sweep_all(&run, values) : run_one(&run, 0);
    dt_error_keep(&error, status);
    if (run.measured > 0)
        printed = dt_print_run(&options->run.sweep, run.list, &run.text, options->print.json);
    dt_status saved = run.raw != NULL ? dt_journal_save(run.raw) : DT_OK;
    printed = printed == DT_OK ? saved : printed;
    dt_journal_close(run.raw);
    dt_text_fini(&run.text);
    json_decref(run.list);
    return status < 0 ? dt_error_raise(&error) : printed;
}

/* Checks before minutes of measuring that the option's file can be written. */
static dt_status check_writable(const struct dt_options *options, const char *option,
                                const char *path)
{
    struct stat info, other;
    const char *const sources[] = {options->job.input, options->job.weights};
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
    struct dt_job job;
    if (options->run.processes < 1 || options->run.processes > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "--processes %lld is not a count of 1 to %d",
                       (long long)options->run.processes, DT_PROCESSES_MOST);
    if (options->run.output != NULL && options->job.input == NULL)
        return dt_fail(
            DT_EUSAGE,
            "--output needs --input: the output of one forward pass of that file is written");
    if (options->run.output != NULL)
        DT_TRY(check_writable(options, "output", options->run.output));
    if (options->run.raw != NULL)
        DT_TRY(check_writable(options, "raw", options->run.raw));
    if (options->run.trace != NULL && options->run.sweep.values.count > 0)
        return dt_fail(DT_EUSAGE, "--trace is of one plan, --sweep measures several");
    if (options->run.trace != NULL)
        DT_TRY(check_writable(options, "trace", options->run.trace));
    DT_TRY(dt_options_job(options, options->job.plan, &job));
    DT_TRY(dt_alone(options));
    return run_all(options, &job);
}
