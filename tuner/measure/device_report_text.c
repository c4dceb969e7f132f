/* SPDX-License-Identifier: MIT */
/* The device report for people, for --json and for journals. */
#include "tuner/measure/device_report.h"
#include "tuner/measure/result.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdlib.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dt_device_report_json(const struct dt_result *result)
{
    const struct dt_device_report *report = &result->device;
    if (report->ns == NULL && report->telemetry == NULL && report->memory == NULL)
        return NULL;
    struct dt_two_clocks clocks = dt_device_clocks(result);
    struct dt_device_memory memory = dt_device_memory(result);
    return json_pack("{s:o, s:o, s:b, s:O*, s:o, s:O*, s:o, s:o, s:b}", "median_seconds",
                     number(clocks.device_seconds), "host_more_seconds",
                     number(clocks.excess_seconds), "clocks_disagree", clocks.disagree, "telemetry",
                     report->telemetry, "throttle_reasons", dt_device_report_reasons(result),
                     "memory", report->memory, "memory_used", number(memory.used), "memory_taken",
                     number(memory.taken), "memory_full", memory.full);
}

void dt_device_report_record(const struct dt_result *result, json_t *record)
{
    const struct dt_device_report *report = &result->device;
    size_t ranks = (size_t)result->ranks;
    json_t *rows = json_array();
    for (size_t i = 0; report->ns != NULL && i < (size_t)result->report.steps; i++) {
        json_t *row = json_array();
        for (size_t r = 0; r < ranks; r++)
            json_array_append_new(row, json_integer(report->ns[i * ranks + r]));
        json_array_append_new(rows, row);
    }
    if (report->ns != NULL)
        json_object_set(record, "device_ns", rows);
    json_decref(rows);
    if (report->telemetry != NULL)
        json_object_set(record, "telemetry", report->telemetry);
    if (report->reasons != NULL)
        json_object_set(record, "reasons", report->reasons);
    if (report->memory != NULL)
        json_object_set(record, "memory", report->memory);
}

dt_status dt_device_report_read(const json_t *record, const char *what, struct dt_result *result)
{
    struct dt_device_report *report = &result->device;
    const json_t *ns = json_object_get(record, "device_ns");
    const json_t *telemetry = json_object_get(record, "telemetry");
    json_t *memory = json_object_get(record, "memory");
    size_t ranks = (size_t)result->ranks;
    if (ns != NULL && result->report.steps > 0 &&
        !dt_device_answer_ns(ns, (size_t)result->report.steps, ranks, &report->ns))
        return dt_fail(DT_EUSAGE, "%s: 'device_ns' has not one time a rank of each step of 'ns'",
                       what);
    if (telemetry != NULL &&
        !dt_device_answer_telemetry(telemetry, json_array_size(telemetry), &report->telemetry))
        return dt_fail(DT_EUSAGE, "%s: 'telemetry' is not one object a rank", what);
    if (memory != NULL && !dt_device_answer_memory(memory, ranks, &report->memory))
        return dt_fail(DT_EUSAGE, "%s: 'memory' has not one integer a rank in each list", what);
    report->reasons = json_incref(json_object_get(record, "reasons"));
    return DT_OK;
}

static double bytes_at(const json_t *memory, const char *key)
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
    double before = bytes_at(report->memory, "before_bytes"),
           taken = bytes_at(report->memory, "taken_bytes");
    if (clocks.steps > 0)
        dt_text_add(out,
                    "device step %.4g ms by the devices' own clocks, the host's has %.3g us more\n",
                    clocks.device_seconds * 1e3, clocks.excess_seconds * 1e6);
    if (report->telemetry != NULL) {
        dt_text_add(out, "devices     while it ran");
        add_range(report->telemetry, "sm_mhz", 1, "MHz", out);
        add_range(report->telemetry, "memory_mhz", 1, "MHz of memory", out);
        add_range(report->telemetry, "power_mw", 1e3, "W", out);
        add_range(report->telemetry, "temperature_c", 1, "C", out);
        add_range(report->telemetry, "utilization", 1, "% busy", out);
        dt_text_add(out, "\n");
    }
    if (isfinite(taken) && isfinite(memory.used))
        dt_text_add(out,
                    "            %.4g GiB free before, %.4g GiB taken (%.3g times what was "
                    "predicted; the rest is the libraries'), %.3g %% of the memory in use\n",
                    before / (1LL << 30), taken / (1LL << 30), memory.taken, 100 * memory.used);
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
                    "warning: the clocks of host and device disagree: a step takes %.3g us more "
                    "by the host's (%.2g %%)\n",
                    clocks.excess_seconds * 1e6,
                    100 * clocks.excess_seconds / clocks.device_seconds);
    if (memory.full)
        dt_text_add(out, "warning: %.3g %% of a device's memory were in use: little is left\n",
                    100 * memory.used);
}
