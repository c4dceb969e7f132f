/* SPDX-License-Identifier: MIT */
#include "tuner/measure/result.h"

#include "base/array.h"
#include "base/figures.h"
#include "tuner/runner/load.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- throttled steps */

#define LEAST_SHARE 0.95 /* least share of the reference */

void dt_clocks_fini(struct dt_clocks *clocks)
{
    free(clocks->rate);
    *clocks = (struct dt_clocks){0};
}

dt_status dt_clocks_copy(const struct dt_clocks *from, struct dt_clocks *to)
{
    dt_clocks_fini(to);
    DT_TRY(DT_RESIZE(to->rate, from->ranks));
    if (from->ranks > 0)
        memcpy(to->rate, from->rate, (size_t)from->ranks * sizeof *to->rate);
    to->ranks = from->ranks;
    return DT_OK;
}

/* Median clock of a rank over the steps from `from` on; NAN where the worker reported none.
 * column: room for the steps. */
static double median_clock(const struct dt_result *result, int rank, int from, double column[])
{
    int n = 0;
    for (int i = from; i < result->report.steps; i++) {
        double clock = result->report.clock[(size_t)i * (size_t)result->ranks + (size_t)rank];
        if (isfinite(clock))
            column[n++] = clock;
    }
    return dt_stats_median(column, n);
}

/* References of all ranks of the result: known ones, and its own medians for the others. */
static dt_status clock_references(const struct dt_clocks *known, const struct dt_result *result,
                                  int from, double **out)
{
    double *rate = calloc((size_t)result->ranks + (size_t)result->report.steps, sizeof *rate);
    if (rate == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int r = 0; r < result->ranks; r++)
        rate[r] = known != NULL && r < known->ranks && isfinite(known->rate[r])
                      ? known->rate[r]
                      : median_clock(result, r, from, rate + result->ranks);
    *out = rate;
    return DT_OK;
}

dt_status dt_clocks_learn(struct dt_clocks *clocks, const struct dt_result *trial)
{
    dt_auto_free double *rate = NULL;
    if (trial->report.clock == NULL || trial->report.steps <= trial->report.warm_up_steps)
        return DT_OK;
    DT_TRY(clock_references(clocks, trial, trial->report.warm_up_steps, &rate));
    int most = clocks->ranks > trial->ranks ? clocks->ranks : trial->ranks;
    DT_TRY(DT_RESIZE(clocks->rate, most));
    memcpy(clocks->rate, rate, (size_t)trial->ranks * sizeof *rate);
    clocks->ranks = most;
    return DT_OK;
}

dt_status dt_throttle_mark(struct dt_result *result, int least)
{
    const struct dt_run *report = &result->report;
    struct dt_throttling *throttling = &result->throttling;
    dt_auto_free double *rate = NULL;
    free(throttling->marks);
    throttling->marks = NULL;
    throttling->count = throttling->marked = 0;
    throttling->all = false;
    if (report->clock == NULL || least >= report->steps)
        return DT_OK;
    DT_TRY(clock_references(throttling->clocks, result, least, &rate));
    throttling->marks = calloc((size_t)report->steps, sizeof *throttling->marks);
    throttling->marked = throttling->marks != NULL ? report->steps : 0;
    for (int i = least; throttling->marks != NULL && i < report->steps; i++) {
        const double *clock = report->clock + (size_t)i * (size_t)result->ranks;
        for (int r = 0; r < result->ranks; r++)
            throttling->marks[i] = throttling->marks[i] || clock[r] < LEAST_SHARE * rate[r];
        throttling->count += throttling->marks[i];
    }
    throttling->all = throttling->count == report->steps - least;
    return throttling->marks != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* The step is throttled and excluded from the samples. */
static bool throttle_drops(const struct dt_throttling *throttling, int step)
{
    return step < throttling->marked && throttling->marks[step] && !throttling->all;
}

void dt_counted_fini(struct dt_counted *counted)
{
    free(counted->ns);
    free(counted->index);
    *counted = (struct dt_counted){0};
}

dt_status dt_throttle_count(const struct dt_result *result, int from, struct dt_counted *out)
{
    size_t ranks = (size_t)result->ranks, most = (size_t)(result->report.steps - from);
    struct dt_counted counted = {.ns = calloc(most * ranks + 1, sizeof *counted.ns),
                                 .index = calloc(most + 1, sizeof *counted.index)};
    if (counted.ns == NULL || counted.index == NULL) {
        dt_counted_fini(&counted);
        return dt_fail(DT_ENOMEM, "out of memory");
    }
    for (int i = from; i < result->report.steps; i++) {
        if (throttle_drops(&result->throttling, i))
            continue;
        memcpy(counted.ns + (size_t)counted.n * ranks, result->report.ns + (size_t)i * ranks,
               ranks * sizeof *counted.ns);
        counted.index[counted.n++] = i;
    }
    *out = counted;
    return DT_OK;
}

/* ---- what the devices reported */

#define APART_SHARE   0.02
#define APART_SECONDS 50e-6
#define FULL_SHARE    0.95

/* A step's times, one a rank, by either clock. */
struct step_times {
    const long long *host, *device;
};

static struct step_times times_of(const struct dt_result *result, int step)
{
    const size_t at = (size_t)step * (size_t)result->ranks;
    const struct dt_run *report = &result->report;
    const long long *judged = report->ns + at;
    return report->host_ns != NULL ? (struct step_times){report->host_ns + at, judged}
                                   : (struct step_times){judged, report->device_ns + at};
}

static bool step_counts(const struct dt_result *result, struct step_times times, int step)
{
    for (int r = 0; r < result->ranks; r++)
        if (times.device[r] <= 0 || times.host[r] <= 0)
            return false;
    return !throttle_drops(&result->throttling, step);
}

struct dt_two_clocks dt_device_clocks(const struct dt_result *result)
{
    struct dt_two_clocks clocks = {
        .device_seconds = NAN, .excess_seconds = NAN, .judged = result->report.host_ns != NULL};
    dt_auto_free double *device = calloc(2 * (size_t)result->report.steps + 1, sizeof *device);
    if (device == NULL || (result->report.device_ns == NULL && !clocks.judged))
        return clocks;
    double *apart = device + result->report.steps;
    for (int i = result->samples.start; i < result->report.steps; i++) {
        struct step_times times = times_of(result, i);
        if (!step_counts(result, times, i))
            continue;
        int last = dt_stats_slowest(times.host, result->ranks);
        device[clocks.steps] =
            (double)times.device[dt_stats_slowest(times.device, result->ranks)] * 1e-9;
        apart[clocks.steps++] = (double)(times.host[last] - times.device[last]) * 1e-9;
    }
    clocks.device_seconds = dt_stats_median(device, clocks.steps);
    clocks.excess_seconds = dt_stats_median(apart, clocks.steps);
    double off = fabs(clocks.excess_seconds);
    clocks.disagree = off > APART_SECONDS || off > APART_SHARE * clocks.device_seconds;
    return clocks;
}

static double bytes_of(const struct dt_amounts *bytes, int rank)
{
    return rank < bytes->count ? (double)bytes->at[rank] : NAN;
}

struct dt_device_memory dt_device_memory(const struct dt_result *result)
{
    const struct dt_device_bytes *memory = &result->memory;
    double predicted =
        memory->resident.known ? (double)memory->resident.value : (double)result->facts.peak_bytes;
    struct dt_device_memory report = {NAN, NAN, false};
    for (int r = 0; r < result->ranks; r++) {
        double total = bytes_of(&memory->total, r);
        report.used = fmax(report.used, total > 0 ? 1 - bytes_of(&memory->free, r) / total : NAN);
        report.taken =
            fmax(report.taken, predicted > 0 ? bytes_of(&memory->taken, r) / predicted : NAN);
    }
    report.full = report.used > FULL_SHARE;
    return report;
}

/* Heat, or a fault of the power supply: not a limit that was set, nor an idle device. */
static bool is_fault(const char *name)
{
    return strncmp(name, "hw_", 3) == 0 || strcmp(name, "sw_thermal") == 0;
}

struct dt_reasons dt_device_report_reasons(const struct dt_result *result)
{
    const struct dt_run *report = &result->report;
    const struct dt_throttling *throttling = &result->throttling;
    struct dt_reasons names = {.count = 0};
    int step = report->warm_up_steps;
    bool all = report->clock == NULL && throttling->count == 0;
    for (int k = 0; k < report->reason_count && all; k++)
        dt_reasons_add(&names, &report->reasons[k]);
    for (int k = 0; k < report->request_count && throttling->count > 0; k++) {
        bool throttled = throttling->marks == NULL; /* several processes: warned already */
        for (int i = 0; i < report->requests[k] && !throttled && step + i < report->steps; i++)
            throttled = step + i < throttling->marked && throttling->marks[step + i];
        step += report->requests[k];
        if (throttled && k < report->reason_count)
            dt_reasons_add(&names, &report->reasons[k]);
    }
    for (int i = names.count; i-- > 0;) /* a low clock of an idle device is no fault */
        if (all ? !is_fault(names.at[i]) : strcmp(names.at[i], "gpu_idle") == 0)
            memmove(names.at[i], names.at[i + 1], (size_t)(--names.count - i) * sizeof names.at[0]);
    return names;
}

static double most_bytes(const struct dt_amounts *bytes)
{
    double most = NAN;
    for (int r = 0; r < bytes->count; r++)
        most = fmax(most, (double)bytes->at[r]);
    return most;
}

static void telemetry_text(const struct dt_run *report, struct dt_text *out)
{
    static const struct {
        size_t offset;
        double unit;
        const char *label;
    } rows[] = {{offsetof(struct dt_rank_telemetry, sm_mhz), 1, "MHz"},
                {offsetof(struct dt_rank_telemetry, memory_mhz), 1, "MHz of memory"},
                {offsetof(struct dt_rank_telemetry, power_mw), 1e3, "W"},
                {offsetof(struct dt_rank_telemetry, temperature_c), 1, "C"},
                {offsetof(struct dt_rank_telemetry, utilization), 1, "% busy"}};
    dt_text_add(out, "devices     while it ran");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double least = NAN, most = NAN; /* among all ranks */
        for (int r = 0; r < report->ranks; r++) {
            const struct dt_range *range =
                (const void *)((const char *)&report->telemetry[r] + rows[i].offset);
            least = range->known ? fmin(least, (double)range->least) : least;
            most = range->known ? fmax(most, (double)range->most) : most;
        }
        if (isfinite(least))
            dt_text_add(out, ", %.4g to %.4g %s", least / rows[i].unit, most / rows[i].unit,
                        rows[i].label);
    }
    dt_text_add(out, "\n");
}

void dt_device_report_text(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_run *report = &result->report;
    struct dt_two_clocks clocks = dt_device_clocks(result);
    struct dt_device_memory memory = dt_device_memory(result);
    double before = most_bytes(&result->memory.before), taken = most_bytes(&result->memory.taken);
    if (clocks.steps > 0 && clocks.judged)
        dt_text_add(out,
                    "            times are the devices'; the host's clock has %s more a step\n",
                    dt_figure_of(clocks.excess_seconds).text);
    else if (clocks.steps > 0)
        dt_text_add(out, "device step %s by the devices' own clocks, the host's has %s more\n",
                    dt_figure_of(clocks.device_seconds).text,
                    dt_figure_of(clocks.excess_seconds).text);
    if (report->telemetry != NULL)
        telemetry_text(report, out);
    if (!isfinite(taken) || !isfinite(memory.used))
        return;
    dt_text_add(out, "            ");
    if (isfinite(before))
        dt_text_add(out, "%s free before, ", dt_figure_bytes_of((int64_t)before).text);
    dt_text_add(out, "%s taken", dt_figure_bytes_of((int64_t)taken).text);
    if (memory.taken < 1 || memory.taken > 1)
        dt_text_add(out, " (%.3g times what was predicted; the rest is the libraries')",
                    memory.taken);
    dt_text_add(out, ", %.3g %% of the memory in use\n", 100 * memory.used);
}

void dt_device_report_warnings(const struct dt_result *result, struct dt_text *out)
{
    struct dt_two_clocks clocks = dt_device_clocks(result);
    struct dt_device_memory memory = dt_device_memory(result);
    const struct dt_reasons reasons = dt_device_report_reasons(result);
    for (int i = 0; i < reasons.count; i++)
        dt_text_add(out, "%s%s", i == 0 ? "warning: reasons for lower clocks: " : ", ",
                    reasons.at[i]);
    if (reasons.count > 0)
        dt_text_add(out, "\n");
    if (clocks.disagree)
        dt_text_add(out,
                    "warning: the clocks of host and device disagree: a step takes %s more "
                    "by the host's (%.2g %%)\n",
                    dt_figure_of(clocks.excess_seconds).text,
                    100 * clocks.excess_seconds / clocks.device_seconds);
    if (memory.full)
        dt_text_add(out, "warning: %.3g %% of a device's memory were in use: little is left\n",
                    100 * memory.used);
}

/* ---- results */

#define RETRIES_MOST 3 /* requests per trial to replace throttled samples */
#define DETECT_LEAST 8 /* measured steps needed to detect a steady part */

const struct dt_facts dt_facts_unknown = {.known = true,
                                          .cold_seconds = NAN,
                                          .verified_error = NAN,
                                          .image_error = NAN,
                                          .repeat_error = NAN,
                                          .slowdown = NAN,
                                          .predicted = NAN,
                                          .others = NAN,
                                          .gpus = NAN};

void dt_result_init(struct dt_result *result, const struct dt_target *target,
                    const struct dt_point *point)
{
    *result = (struct dt_result){.point = *point,
                                 .outcome = DT_TRIAL_OK,
                                 .ranks = dt_target_ranks(target, point) *
                                          dt_target_replicas(target, point),
                                 .replicas = dt_target_replicas(target, point),
                                 .batch = dt_target_batch(target, point),
                                 .devices = dt_target_devices(target, point),
                                 .facts = dt_facts_unknown,
                                 .ceilings = {true, NAN, NAN},
                                 .busy = NAN,
                                 .summary = {.median = NAN, .interval = {NAN, NAN}}};
}

bool dt_result_disturbed(const struct dt_result *result)
{
    return dt_load_disturbs(result->facts.others, result->facts.gpus);
}

void dt_result_fini(struct dt_result *result)
{
    struct dt_samples *samples = &result->samples;
    dt_run_fini(&result->report);
    dt_device_bytes_fini(&result->memory);
    free(result->loads);
    free(result->exchanges);
    free(result->trace);
    result->loads = NULL;
    result->exchanges = NULL;
    result->trace = NULL;
    free(result->throttling.marks);
    result->throttling.marks = NULL;
    result->throttling.marked = 0;
    free(samples->seconds);
    free(samples->rank_seconds);
    free(samples->replica_seconds);
    free(samples->last);
    free(samples->process_seconds);
    *samples = (struct dt_samples){0};
}

dt_status dt_result_add(struct dt_result *result, struct dt_run *run, bool measured)
{
    result->ranks = run->ranks;
    return dt_run_add(&result->report, run, measured);
}

static dt_status samples_make_room(const struct dt_result *result, struct dt_samples *samples)
{
    DT_TRY(DT_RESIZE(samples->seconds, result->report.steps));
    DT_TRY(DT_RESIZE(samples->rank_seconds, result->ranks));
    DT_TRY(DT_RESIZE(samples->replica_seconds, dt_result_parts(result)));
    return DT_RESIZE(samples->last, result->ranks);
}

dt_status dt_result_sum(struct dt_result *result, const long long *ns)
{
    struct dt_samples *samples = &result->samples;
    size_t ranks = (size_t)result->ranks;
    DT_TRY(samples_make_room(result, samples));
    dt_auto_free double *column = calloc((size_t)samples->n + 1, sizeof *column);
    if (column == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    samples->skew_seconds = dt_stats_over_ranks(
        ns, samples->n, result->ranks, dt_result_parts(result), samples->seconds, samples->last);
    for (size_t r = 0; r < ranks; r++) {
        for (int i = 0; i < samples->n; i++)
            column[i] = (double)ns[(size_t)i * ranks + r] * 1e-9;
        samples->rank_seconds[r] = dt_stats_median(column, samples->n);
    }
    for (size_t k = 0, each = ranks / (size_t)dt_result_parts(result); k * each < ranks; k++) {
        for (int i = 0; i < samples->n; i++) {
            const long long *row = ns + (size_t)i * ranks + k * each;
            column[i] = (double)row[dt_stats_slowest(row, (int)each)] * 1e-9;
        }
        samples->replica_seconds[k] = dt_stats_median(column, samples->n);
    }
    return DT_OK;
}

/* Steps of one start depend on each other, and are printed after the program's own warm-up: a
 * start is one observation, the median of its steps, and the interval is over the starts, as
 * over fresh processes. */
static dt_status finish_starts(struct dt_result *result, double level)
{
    struct dt_samples *samples = &result->samples;
    int count = 0;
    samples->steady = true;
    samples->start = 0;
    samples->n = result->report.steps;
    DT_TRY(DT_RESIZE(samples->process_seconds, result->report.start_count));
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
    struct dt_counted DT_CLEANUP(dt_counted_fini) counted = {0};
    DT_TRY(samples_make_room(result, samples));
    DT_TRY(dt_throttle_mark(result, from));
    DT_TRY(dt_throttle_count(result, from, &counted));
    dt_stats_over_ranks(counted.ns, counted.n, result->ranks, dt_result_parts(result),
                        samples->seconds, NULL);
    samples->steady = !detect || dt_stats_steady(samples->seconds, counted.n, &start);
    start = samples->steady ? start : 0;
    samples->start = start < counted.n ? counted.index[start] : from;
    samples->n = counted.n - start;
    DT_TRY(dt_result_sum(result, counted.ns + (size_t)start * (size_t)result->ranks));
    result->summary = dt_stats_summary(samples->seconds, samples->n, level);
    return DT_OK;
}

bool dt_result_detects(const struct dt_result *result)
{
    return result->report.steps - result->report.warm_up_steps >= DETECT_LEAST;
}

/* Number of samples that are not throttled. */
static int samples_usable(const struct dt_result *result)
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
    return result->throttling.waits ? samples_usable(result)
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
    int n = samples_usable(result), spoilt = result->throttling.count;
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
    return result->facts.slowdown > 0 ? result->facts.slowdown : 1;
}

int dt_result_parts(const struct dt_result *result)
{
    return result->replicas > 1 && result->ranks % result->replicas == 0 ? result->replicas : 1;
}

int dt_result_images(const struct dt_result *result)
{
    return result->replicas > 1 ? result->batch * result->replicas : result->batch;
}

double dt_result_images_per_second(const struct dt_result *result, const struct dt_target *target)
{
    return dt_result_images(result) / (result->summary.median * target->image.sampler_steps);
}

double dt_result_slowest(const struct dt_result *result)
{
    const double *replica = result->samples.replica_seconds;
    double most = result->summary.median;
    if (result->replicas < 2 || replica == NULL || result->samples.n == 0)
        return most;
    for (int k = 0; k < dt_result_parts(result); k++)
        most = fmax(k == 0 ? replica[0] : most, replica[k]);
    return most;
}

void dt_result_replicas_text(const struct dt_result *result, struct dt_text *out)
{
    int parts = dt_result_parts(result);
    double sum = 0;
    if (parts < 2 || result->samples.replica_seconds == NULL || result->samples.n == 0)
        return;
    for (int k = 0; k < parts; k++)
        sum += result->samples.replica_seconds[k];
    dt_text_add(out, "%d replicas: slowest %s, mean %s a step", parts,
                dt_figure_of(dt_result_slowest(result)).text, dt_figure_of(sum / parts).text);
}

struct dt_trial dt_result_trial(const struct dt_result *result, const struct dt_target *target)
{
    struct dt_trial trial = {.point = result->point,
                             .outcome = result->outcome,
                             .value = NAN,
                             .low = NAN,
                             .high = NAN,
                             .seconds = result->summary.median,
                             .peak_bytes = result->facts.peak_bytes,
                             .cost = result->facts.cost_seconds};
    memcpy(trial.cause, result->cause, sizeof trial.cause);
    if (result->outcome == DT_TRIAL_OK || result->outcome == DT_TRIAL_SLOW) {
        const struct dt_objective *objective = target->objective;
        const struct dt_summary *summary = &result->summary;
        double times = dt_result_slowdown(result);
        int images = dt_result_images(result);
        trial.value = objective->value(summary->median / times, images, result->devices);
        trial.low = objective->value(summary->interval.low / times, images, result->devices);
        trial.high = objective->value(summary->interval.high / times, images, result->devices);
        double variance = dt_stats_log_variance(&result->summary);
        trial.variance = isfinite(variance) ? variance : 0;
    }
    return trial;
}
