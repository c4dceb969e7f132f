/* SPDX-License-Identifier: MIT */
/* The same for people, for --json and for journals. */
#include "tuner/measure/heard.h"
#include "tuner/measure/result.h"
#include "tuner/runner/said.h"

#include <math.h>
#include <stdlib.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dt_heard_json(const struct dt_result *result)
{
    const struct dt_heard *heard = &result->heard;
    if (heard->ns == NULL && heard->telemetry == NULL && heard->memory == NULL)
        return NULL;
    struct dt_two_clocks clocks = dt_heard_clocks(result);
    struct dt_heard_memory memory = dt_heard_memory(result);
    return json_pack("{s:o, s:o, s:b, s:O*, s:o, s:O*, s:o, s:o, s:b}", "median_seconds",
                     number(clocks.device_seconds), "host_more_seconds",
                     number(clocks.apart_seconds), "clocks_disagree", clocks.disagree, "telemetry",
                     heard->telemetry, "throttle_reasons", dt_heard_reasons(result), "memory",
                     heard->memory, "memory_used", number(memory.used), "memory_taken",
                     number(memory.taken), "memory_full", memory.full);
}

void dt_heard_record(const struct dt_result *result, json_t *record)
{
    const struct dt_heard *heard = &result->heard;
    size_t ranks = (size_t)result->ranks;
    json_t *rows = json_array();
    for (size_t i = 0; heard->ns != NULL && i < (size_t)result->steps; i++) {
        json_t *row = json_array();
        for (size_t r = 0; r < ranks; r++)
            json_array_append_new(row, json_integer(heard->ns[i * ranks + r]));
        json_array_append_new(rows, row);
    }
    if (heard->ns != NULL)
        json_object_set(record, "device_ns", rows);
    json_decref(rows);
    if (heard->telemetry != NULL)
        json_object_set(record, "telemetry", heard->telemetry);
    if (heard->reasons != NULL)
        json_object_set(record, "reasons", heard->reasons);
    if (heard->memory != NULL)
        json_object_set(record, "memory", heard->memory);
}

dt_status dt_heard_read(const json_t *record, const char *what, struct dt_result *result)
{
    struct dt_heard *heard = &result->heard;
    const json_t *ns = json_object_get(record, "device_ns");
    const json_t *telemetry = json_object_get(record, "telemetry");
    json_t *memory = json_object_get(record, "memory");
    size_t ranks = (size_t)result->ranks;
    if (ns != NULL && result->steps > 0 &&
        !dt_said_ns(ns, (size_t)result->steps, ranks, &heard->ns))
        return dt_fail(DT_EUSAGE, "%s: 'device_ns' has not one time a rank of each step of 'ns'",
                       what);
    if (telemetry != NULL &&
        !dt_said_telemetry(telemetry, json_array_size(telemetry), &heard->telemetry))
        return dt_fail(DT_EUSAGE, "%s: 'telemetry' is not one object a rank", what);
    if (memory != NULL && !dt_said_memory(memory, ranks, &heard->memory))
        return dt_fail(DT_EUSAGE, "%s: 'memory' has not one integer a rank in each list", what);
    heard->reasons = json_incref(json_object_get(record, "reasons"));
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

void dt_heard_text(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_heard *heard = &result->heard;
    struct dt_two_clocks clocks = dt_heard_clocks(result);
    struct dt_heard_memory memory = dt_heard_memory(result);
    double before = bytes_at(heard->memory, "before_bytes"),
           taken = bytes_at(heard->memory, "taken_bytes");
    if (clocks.steps > 0)
        dt_text_add(out,
                    "device step %.4g ms by the devices' own clocks, the host's has %.3g us more\n",
                    clocks.device_seconds * 1e3, clocks.apart_seconds * 1e6);
    if (heard->telemetry != NULL) {
        dt_text_add(out, "devices     while it ran");
        add_range(heard->telemetry, "sm_mhz", 1, "MHz", out);
        add_range(heard->telemetry, "memory_mhz", 1, "MHz of memory", out);
        add_range(heard->telemetry, "power_mw", 1e3, "W", out);
        add_range(heard->telemetry, "temperature_c", 1, "C", out);
        add_range(heard->telemetry, "utilization", 1, "% busy", out);
        dt_text_add(out, "\n");
    }
    if (isfinite(taken) && isfinite(memory.used))
        dt_text_add(out,
                    "            %.4g GiB free before, %.4g GiB taken (%.3g times what was "
                    "predicted; the rest is the libraries'), %.3g %% of the memory in use\n",
                    before / (1LL << 30), taken / (1LL << 30), memory.taken, 100 * memory.used);
}

void dt_heard_warnings(const struct dt_result *result, struct dt_text *out)
{
    struct dt_two_clocks clocks = dt_heard_clocks(result);
    struct dt_heard_memory memory = dt_heard_memory(result);
    json_t *reasons = dt_heard_reasons(result);
    for (size_t i = 0; i < json_array_size(reasons); i++)
        dt_text_add(out, "%s%s",
                    i == 0 ? "warning: the devices said why clocks were lower: " : ", ",
                    json_string_value(json_array_get(reasons, i)));
    if (json_array_size(reasons) > 0)
        dt_text_add(out, "\n");
    json_decref(reasons);
    if (clocks.disagree)
        dt_text_add(out,
                    "warning: the clocks of host and device disagree: a step takes %.3g us more "
                    "by the host's (%.2g %%)\n",
                    clocks.apart_seconds * 1e6, 100 * clocks.apart_seconds / clocks.device_seconds);
    if (memory.full)
        dt_text_add(out, "warning: %.3g %% of a device's memory were in use: little is left\n",
                    100 * memory.used);
}
