/* SPDX-License-Identifier: MIT */
/* The device report for people. */
#include "tuner/measure/device_report.h"

#include "base/figures.h"
#include "tuner/measure/result.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdlib.h>

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
        dt_text_add(out, "%.4g GiB free before, ", before / (1LL << 30));
    dt_text_add(out, "%.4g GiB taken", taken / (1LL << 30));
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
