/* SPDX-License-Identifier: MIT */
#include "tuner/measure/device_report.h"

#include "base/array.h"
#include "tuner/measure/result.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define APART_SHARE   0.02
#define APART_SECONDS 50e-6
#define FULL_SHARE    0.95

void dt_device_report_fini(struct dt_device_report *report)
{
    free(report->ns);
    free(report->host_ns);
    json_decref(report->telemetry);
    json_decref(report->reasons);
    json_decref(report->memory);
    *report = (struct dt_device_report){0};
}

/* Adds `more` times behind the `old` ones; 0 where they are not known. */
static dt_status add_ns(long long **ns, const long long *added, size_t old, size_t more)
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

static json_int_t at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Means are weighted by their number of readings. */
static void join_rank(json_t *rank, const json_t *more)
{
    json_int_t looks = at(rank, "looks"), others = at(more, "looks");
    const char *key;
    json_t *range;
    json_object_foreach((json_t *)more, key, range)
    {
        json_t *mine = json_object_get(rank, key);
        if (json_is_object(range) && mine == NULL) {
            json_object_set_new(rank, key, json_deep_copy(range));
        } else if (json_is_object(range)) {
            json_int_t least = at(range, "least"), most = at(range, "most");
            double share = looks + others > 0 ? (double)others / (double)(looks + others) : 0;
            double mean =
                (double)at(mine, "mean") * (1 - share) + (double)at(range, "mean") * share;
            if (least < at(mine, "least"))
                json_object_set_new(mine, "least", json_integer(least));
            if (most > at(mine, "most"))
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

dt_status dt_device_report_add(struct dt_device_report *report, const struct dt_run *run,
                               size_t old, int request)
{
    size_t more = (size_t)run->steps * (size_t)run->ranks;
    DT_TRY(add_ns(&report->ns, run->device_ns, old, more));
    DT_TRY(add_ns(&report->host_ns, run->host_ns, old, more));
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

static bool counts(const struct dt_result *result, struct step_times times, int step)
{
    for (int r = 0; r < result->ranks; r++)
        if (times.device[r] <= 0 || times.host[r] <= 0)
            return false;
    return !dt_throttle_drops(&result->throttling, step);
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
        if (!counts(result, times, i))
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
