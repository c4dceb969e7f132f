/* SPDX-License-Identifier: MIT */
#include "tuner/measure/result.h"

#include "base/array.h"
#include "base/figures.h"
#include "tuner/runner/load.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- throttled steps */

#define LEAST_SHARE 0.95 /* of the reference */

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

/* Median clock of a rank over the steps from `from` on; NAN where the worker reported none. column: room for the
 * steps. */
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
    double *rate = NULL;
    if (trial->report.clock == NULL || trial->report.steps <= trial->report.warm_up_steps)
        return DT_OK;
    DT_TRY(clock_references(clocks, trial, trial->report.warm_up_steps, &rate));
    int most = clocks->ranks > trial->ranks ? clocks->ranks : trial->ranks;
    dt_status status = DT_RESIZE(clocks->rate, most);
    if (status == DT_OK) {
        memcpy(clocks->rate, rate, (size_t)trial->ranks * sizeof *rate);
        clocks->ranks = most;
    }
    free(rate);
    return status;
}

dt_status dt_throttle_mark(struct dt_result *result, int least)
{
    const struct dt_worker_report *report = &result->report;
    struct dt_throttling *throttling = &result->throttling;
    double *rate = NULL;
    free(throttling->marks);
    throttling->marks = NULL;
    throttling->count = 0;
    throttling->all = false;
    if (report->clock == NULL || least >= report->steps)
        return DT_OK;
    DT_TRY(clock_references(throttling->clocks, result, least, &rate));
    throttling->marks = calloc((size_t)report->steps, sizeof *throttling->marks);
    for (int i = least; throttling->marks != NULL && i < report->steps; i++) {
        const double *clock = report->clock + (size_t)i * (size_t)result->ranks;
        for (int r = 0; r < result->ranks; r++)
            throttling->marks[i] = throttling->marks[i] || clock[r] < LEAST_SHARE * rate[r];
        throttling->count += throttling->marks[i];
    }
    throttling->all = throttling->count == report->steps - least;
    free(rate);
    return throttling->marks != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* The step is throttled and excluded from the samples. */
static bool throttle_drops(const struct dt_throttling *throttling, int step)
{
    return throttling->marks != NULL && throttling->marks[step] && !throttling->all;
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

static void device_report_fini(struct dt_device_report *report)
{
    free(report->ns);
    free(report->host_ns);
    json_decref(report->telemetry);
    json_decref(report->reasons);
    json_decref(report->memory);
    *report = (struct dt_device_report){0};
}

/* Adds `more` times behind the `old` ones; 0 where they are not known. */
static dt_status device_add_ns(long long **ns, const long long *added, size_t old, size_t more)
{
    if (added == NULL && *ns == NULL)
        return DT_OK;
    const size_t known = *ns != NULL ? old : 0;
    DT_TRY(DT_RESIZE(*ns, old + more));
    memset(*ns + known, 0, (old + more - known) * sizeof **ns);
    if (added != NULL)
        memcpy(*ns + old, added, more * sizeof **ns);
    return DT_OK;
}

static void add_names(json_t *to, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        json_t *name = json_array_get(names, i);
        if (!dt_json_contains(to, name))
            json_array_append(to, name);
    }
}

static json_int_t integer_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Means are weighted by their number of readings. */
static void join_rank(json_t *rank, const json_t *more)
{
    json_int_t looks = integer_at(rank, "looks"), others = integer_at(more, "looks");
    const char *key;
    json_t *range;
    json_object_foreach((json_t *)more, key, range)
    {
        json_t *mine = json_object_get(rank, key);
        if (json_is_object(range) && mine == NULL) {
            json_object_set_new(rank, key, json_deep_copy(range));
        } else if (json_is_object(range)) {
            json_int_t least = integer_at(range, "least"), most = integer_at(range, "most");
            double share = looks + others > 0 ? (double)others / (double)(looks + others) : 0;
            double mean = (double)integer_at(mine, "mean") * (1 - share) +
                          (double)integer_at(range, "mean") * share;
            if (least < integer_at(mine, "least"))
                json_object_set_new(mine, "least", json_integer(least));
            if (most > integer_at(mine, "most"))
                json_object_set_new(mine, "most", json_integer(most));
            if (looks + others > 0)
                json_object_set_new(mine, "mean", json_integer(llround(mean)));
        }
    }
    add_names(json_object_get(rank, "reasons"), json_object_get(more, "reasons"));
    json_object_set_new(rank, "looks", json_integer(looks + others));
}

static void add_telemetry(struct dt_device_report *report, const json_t *telemetry, int request)
{
    json_t *names = json_array();
    if (report->reasons == NULL)
        report->reasons = json_array();
    while (json_array_size(report->reasons) < (size_t)request)
        json_array_append_new(report->reasons, json_array());
    for (size_t r = 0; r < json_array_size(telemetry); r++)
        add_names(names, json_object_get(json_array_get(telemetry, r), "reasons"));
    json_array_append_new(report->reasons, names);
    if (report->telemetry == NULL) {
        report->telemetry = json_deep_copy(telemetry);
        return;
    }
    for (size_t r = 0; r < json_array_size(telemetry); r++)
        join_rank(json_array_get(report->telemetry, r), json_array_get(telemetry, r));
}

/* Adds the report of a run; `old` values are there already; request: its number among the measured ones, -1: it is none. */
static dt_status device_report_add(struct dt_device_report *report, const struct dt_run *run,
                                   size_t old, int request)
{
    size_t more = (size_t)run->steps * (size_t)run->ranks;
    DT_TRY(device_add_ns(&report->ns, run->device_ns, old, more));
    DT_TRY(device_add_ns(&report->host_ns, run->host_ns, old, more));
    if (run->telemetry != NULL && request >= 0)
        add_telemetry(report, run->telemetry, request);
    return DT_OK;
}

/* A step's times, one a rank, by either clock. */
struct step_times {
    const long long *host, *device;
};

static struct step_times times_of(const struct dt_result *result, int step)
{
    const size_t at = (size_t)step * (size_t)result->ranks;
    const struct dt_device_report *report = &result->device;
    const long long *judged = result->report.ns + at;
    return report->host_ns != NULL ? (struct step_times){report->host_ns + at, judged}
                                   : (struct step_times){judged, report->ns + at};
}

static int last_of(const long long row[], int ranks)
{
    int last = 0;
    for (int r = 1; r < ranks; r++)
        last = row[r] > row[last] ? r : last;
    return last;
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
        .device_seconds = NAN, .excess_seconds = NAN, .judged = result->device.host_ns != NULL};
    double *device = calloc(2 * (size_t)result->report.steps + 1, sizeof *device);
    if (device == NULL || (result->device.ns == NULL && !clocks.judged)) {
        free(device);
        return clocks;
    }
    double *apart = device + result->report.steps;
    for (int i = result->samples.start; i < result->report.steps; i++) {
        struct step_times times = times_of(result, i);
        if (!step_counts(result, times, i))
            continue;
        int last = last_of(times.host, result->ranks);
        device[clocks.steps] = (double)times.device[last_of(times.device, result->ranks)] * 1e-9;
        apart[clocks.steps++] = (double)(times.host[last] - times.device[last]) * 1e-9;
    }
    clocks.device_seconds = dt_stats_median(device, clocks.steps);
    clocks.excess_seconds = dt_stats_median(apart, clocks.steps);
    double off = fabs(clocks.excess_seconds);
    clocks.disagree = off > APART_SECONDS || off > APART_SHARE * clocks.device_seconds;
    free(device);
    return clocks;
}

static double bytes_of(const json_t *memory, const char *key, size_t rank)
{
    const json_t *value = json_array_get(json_object_get(memory, key), rank);
    return json_is_integer(value) ? (double)json_integer_value(value) : NAN;
}

struct dt_device_memory dt_device_memory(const struct dt_result *result)
{
    const json_t *memory = result->device.memory;
    const json_t *resident = json_object_get(memory, "resident_bytes");
    double predicted = json_is_integer(resident) ? (double)json_integer_value(resident)
                                                 : (double)result->peak_bytes;
    struct dt_device_memory report = {NAN, NAN, false};
    for (size_t r = 0; r < (size_t)result->ranks; r++) {
        double total = bytes_of(memory, "total_bytes", r);
        report.used =
            fmax(report.used, total > 0 ? 1 - bytes_of(memory, "free_bytes", r) / total : NAN);
        report.taken = fmax(report.taken,
                            predicted > 0 ? bytes_of(memory, "taken_bytes", r) / predicted : NAN);
    }
    report.full = report.used > FULL_SHARE;
    return report;
}

/* Heat, or a fault of the power supply: not a limit that was set, nor an idle device. */
static bool is_fault(const char *name)
{
    return strncmp(name, "hw_", 3) == 0 || strcmp(name, "sw_thermal") == 0;
}

/* Skips "gpu_idle": a low clock of an idle device is no fault. */
static void add_causes(json_t *to, const json_t *names)
{
    add_names(to, names);
    for (size_t i = json_array_size(to); i-- > 0;)
        if (strcmp(json_string_value(json_array_get(to, i)), "gpu_idle") == 0)
            json_array_remove(to, i);
}

json_t *dt_device_report_reasons(const struct dt_result *result)
{
    const struct dt_worker_report *report = &result->report;
    const struct dt_throttling *throttling = &result->throttling;
    json_t *names = json_array();
    int step = report->warm_up_steps;
    if (report->clock == NULL && throttling->count == 0) {
        for (size_t k = 0; k < json_array_size(result->device.reasons); k++)
            add_names(names, json_array_get(result->device.reasons, k));
        for (size_t i = json_array_size(names); i-- > 0;)
            if (!is_fault(json_string_value(json_array_get(names, i))))
                json_array_remove(names, i);
    }
    for (int k = 0; k < report->request_count && throttling->count > 0; k++) {
        bool throttled = throttling->marks == NULL; /* several processes: warned already */
        for (int i = 0; i < report->requests[k] && !throttled && step + i < report->steps; i++)
            throttled = throttling->marks[step + i];
        step += report->requests[k];
        if (throttled)
            add_causes(names, json_array_get(result->device.reasons, (size_t)k));
    }
    return names;
}

static double most_bytes(const json_t *memory, const char *key)
{
    double most = NAN;
    const json_t *list = json_object_get(memory, key);
    for (size_t r = 0; r < json_array_size(list); r++)
        most = fmax(most, json_number_value(json_array_get(list, r)));
    return most;
}

static void add_range(const json_t *telemetry, const char *key, double unit, const char *words,
                      struct dt_text *out)
{
    double least = NAN, most = NAN;
    for (size_t r = 0; r < json_array_size(telemetry); r++) {
        const json_t *range = json_object_get(json_array_get(telemetry, r), key);
        if (range == NULL)
            continue;
        least = fmin(least, json_number_value(json_object_get(range, "least")));
        most = fmax(most, json_number_value(json_object_get(range, "most")));
    }
    if (isfinite(least))
        dt_text_add(out, ", %.4g to %.4g %s", least / unit, most / unit, words);
}

void dt_device_report_text(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_device_report *report = &result->device;
    struct dt_two_clocks clocks = dt_device_clocks(result);
    struct dt_device_memory memory = dt_device_memory(result);
    double before = most_bytes(report->memory, "before_bytes"),
           taken = most_bytes(report->memory, "taken_bytes");
    if (clocks.steps > 0 && clocks.judged)
        dt_text_add(out,
                    "            times are the devices'; the host's clock has %s more a step\n",
                    dt_figure_of(clocks.excess_seconds).text);
    else if (clocks.steps > 0)
        dt_text_add(out, "device step %s by the devices' own clocks, the host's has %s more\n",
                    dt_figure_of(clocks.device_seconds).text,
                    dt_figure_of(clocks.excess_seconds).text);
    if (report->telemetry != NULL) {
        dt_text_add(out, "devices     while it ran");
        add_range(report->telemetry, "sm_mhz", 1, "MHz", out);
        add_range(report->telemetry, "memory_mhz", 1, "MHz of memory", out);
        add_range(report->telemetry, "power_mw", 1e3, "W", out);
        add_range(report->telemetry, "temperature_c", 1, "C", out);
        add_range(report->telemetry, "utilization", 1, "% busy", out);
        dt_text_add(out, "\n");
    }
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
    json_t *reasons = dt_device_report_reasons(result);
    for (size_t i = 0; i < json_array_size(reasons); i++)
        dt_text_add(out, "%s%s", i == 0 ? "warning: reasons for lower clocks: " : ", ",
                    json_string_value(json_array_get(reasons, i)));
    if (json_array_size(reasons) > 0)
        dt_text_add(out, "\n");
    json_decref(reasons);
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
    device_report_fini(&result->device);
    free(result->throttling.marks);
    result->throttling.marks = NULL;
    free(samples->seconds);
    free(samples->rank_seconds);
    free(samples->last);
    free(samples->process_seconds);
    *samples = (struct dt_samples){0};
}

/* value += other, saturating, since a worker may report any number. */
static void json_add(json_t *value, const json_t *other)
{
    json_int_t more = json_integer_value(other), sum;
    if (!json_is_integer(value))
        return;
    if (__builtin_add_overflow(json_integer_value(value), more, &sum))
        sum = more > 0 ? INT64_MAX : INT64_MIN;
    json_integer_set(value, sum);
}

static void json_add_at(json_t *to, const json_t *from, const char *key)
{
    json_add(json_object_get(to, key), json_object_get(from, key));
}

/* One number a rank. */
static void phases_add_ranks(json_t *to, const json_t *from, const char *key)
{
    json_t *list = json_object_get(to, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        json_add(json_array_get(list, i), json_array_get(json_object_get(from, key), i));
}

/* Adds rows of the same name; both lists come from one worker. */
static void phases_add_rows(json_t *to, const json_t *from, const char *key)
{
    for (size_t i = 0; i < json_array_size(json_object_get(to, key)); i++) {
        json_t *row = json_array_get(json_object_get(to, key), i);
        const json_t *more = json_array_get(json_object_get(from, key), i);
        json_add_at(row, more, "ns");
        json_add_at(row, more, "bytes");
        json_add_at(row, more, "in_flight_ns");
        json_add_at(row, more, "count");
    }
}

/* Sums over all measured requests; a median of blocks stays that of the longest one. */
static dt_status report_add_phases(struct dt_worker_report *report, const struct dt_run *run)
{
    bool longest = run->steps > report->phase_steps || report->phases == NULL;
    json_t *sum = json_deep_copy(longest ? run->phases : report->phases);
    const json_t *other = longest ? report->phases : run->phases;
    if (sum == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (other != NULL) {
        json_add_at(sum, other, "steps");
        json_add_at(sum, other, "step_ns");
        json_add_at(sum, other, "host_ns");
        phases_add_ranks(sum, other, "cpu_ns");
        phases_add_ranks(sum, other, "wall_ns");
        phases_add_rows(sum, other, "exchanges");
        phases_add_rows(sum, other, "kinds");
        phases_add_rows(sum, other, "blocks");
    }
    json_decref(report->phases);
    report->phases = sum;
    report->phase_steps = longest ? run->steps : report->phase_steps;
    return DT_OK;
}

static dt_status report_add_request(struct dt_worker_report *report, int steps)
{
    DT_TRY(DT_RESIZE(report->requests, report->request_count + 1));
    report->warm_up_steps = report->request_count == 0 ? report->steps : report->warm_up_steps;
    report->requests[report->request_count++] = steps;
    return DT_OK;
}

/* old, more: values before and of this run; NAN where either has no clocks. */
static dt_status report_add_clock(struct dt_worker_report *report, const struct dt_run *run,
                                  size_t old, size_t more)
{
    const size_t known = report->clock != NULL ? old : 0;
    DT_TRY(DT_RESIZE(report->clock, old + more));
    for (size_t i = known; i < old; i++)
        report->clock[i] = NAN;
    for (size_t i = 0; i < more; i++)
        report->clock[old + i] = run->clock != NULL ? run->clock[i] : NAN;
    return DT_OK;
}

static dt_status report_add_starts(struct dt_worker_report *report, const struct dt_run *run)
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
    DT_TRY(device_report_add(&result->device, run, old, measured ? report->request_count : -1));
    if (run->clock != NULL || report->clock != NULL)
        DT_TRY(report_add_clock(report, run, old, more));
    if (measured)
        DT_TRY(report_add_request(report, run->steps));
    DT_TRY(report_add_starts(report, run));
    DT_TRY(dt_remarks_add(&report->remarks, run->remarks));
    report->steps += run->steps;
    result->ranks = run->ranks;
    return run->phases != NULL && measured ? report_add_phases(report, run) : DT_OK;
}

static dt_status samples_make_room(const struct dt_result *result, struct dt_samples *samples)
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
    DT_TRY(samples_make_room(result, samples));
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
    struct dt_counted counted;
    DT_TRY(samples_make_room(result, samples));
    DT_TRY(dt_throttle_mark(result, from));
    DT_TRY(dt_throttle_count(result, from, &counted));
    dt_stats_over_ranks(counted.ns, counted.n, result->ranks, samples->seconds, NULL);
    samples->steady = !detect || dt_stats_steady(samples->seconds, counted.n, &start);
    start = samples->steady ? start : 0;
    samples->start = start < counted.n ? counted.index[start] : from;
    samples->n = counted.n - start;
    dt_status status = dt_result_sum(result, counted.ns + (size_t)start * (size_t)result->ranks);
    dt_counted_fini(&counted);
    if (status == DT_OK)
        result->summary = dt_stats_summary(samples->seconds, samples->n, level);
    return status;
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
