/* SPDX-License-Identifier: MIT */
#include "tuner/measure/trial.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL 0.95

static bool same_shape(const struct dt_result parts[], int n, struct dt_result *whole)
{
    for (int i = 1; i < n; i++)
        if (parts[i].ranks != parts[0].ranks) {
            whole->outcome = DT_TRIAL_PROTOCOL;
            snprintf(whole->cause, sizeof whole->cause,
                     "process %d answered with %d ranks, the first with %d", i + 1, parts[i].ranks,
                     parts[0].ranks);
            return false;
        }
    return true;
}

/* Sets the facts of a plan other than its samples. */
static void describe(const struct dt_result parts[], int n, struct dt_result *whole)
{
    double cold[DT_PROCESSES_MOST];
    whole->verified_error = parts[0].verified_error;
    whole->image_error = parts[0].image_error;
    whole->repeat_error = parts[0].repeat_error;
    whole->samples.steady = true;
    for (int i = 0; i < n; i++) {
        const struct dt_result *part = &parts[i];
        cold[i] = part->cold_seconds;
        if (part->peak_bytes > whole->peak_bytes)
            whole->peak_bytes = part->peak_bytes;
        if (!(part->verified_error <= whole->verified_error))
            whole->verified_error = part->verified_error;
        if (!(part->image_error <= whole->image_error))
            whole->image_error = part->image_error;
        if (!(part->repeat_error <= whole->repeat_error))
            whole->repeat_error = part->repeat_error;
        whole->report.flop_peak = fmax(whole->report.flop_peak, part->report.flop_peak);
        whole->report.copy_peak = fmax(whole->report.copy_peak, part->report.copy_peak);
        whole->cost_seconds += part->cost_seconds;
        whole->samples.steady = whole->samples.steady && part->samples.steady;
        whole->samples.start += part->samples.start;
        whole->samples.n += part->samples.n;
        whole->throttling.count += part->throttling.count;
        whole->throttling.all = whole->throttling.all || part->throttling.all;
    }
    whole->cold_seconds = dt_stats_median(cold, n);
    whole->report.exchanges = json_incref(parts[n - 1].report.exchanges);
    whole->report.trace = json_incref(parts[n - 1].report.trace);
    whole->device.memory = json_incref(parts[n - 1].device.memory);
}

static dt_status add_steps(const struct dt_result parts[], int n, struct dt_result *whole)
{
    for (int i = 0; i < n; i++) {
        const struct dt_result *part = &parts[i];
        struct dt_run run = {.steps = part->report.steps,
                             .ranks = part->ranks,
                             .ns = part->report.ns,
                             .clock = part->report.clock,
                             .device_ns = part->device.ns,
                             .host_ns = part->device.host_ns,
                             .telemetry = part->device.telemetry,
                             .phases = part->report.phases};
        DT_TRY(dt_result_add(whole, &run, true));
    }
    return DT_OK;
}

/* The steady steps of all processes in a row, and the median of each. */
static dt_status add_samples(const struct dt_result parts[], int n, struct dt_result *whole)
{
    size_t ranks = (size_t)whole->ranks, at = 0;
    dt_status status = DT_OK;
    long long *ns = calloc((size_t)whole->samples.n * ranks + 1, sizeof *ns);
    whole->samples.process_seconds = calloc((size_t)n, sizeof *whole->samples.process_seconds);
    if (ns == NULL || whole->samples.process_seconds == NULL) {
        free(ns);
        return dt_fail(DT_ENOMEM, "out of memory");
    }
    for (int i = 0; i < n; i++) {
        struct dt_kept kept = {0};
        if (status == DT_OK)
            status = dt_throttle_keep(&parts[i], parts[i].samples.start, &kept);
        if (status == DT_OK)
            memcpy(ns + at, kept.ns, (size_t)kept.n * ranks * sizeof *ns);
        at += (size_t)kept.n * ranks;
        dt_kept_fini(&kept);
        whole->samples.process_seconds[i] = parts[i].summary.median;
    }
    if (status == DT_OK)
        status = dt_result_sum(whole, ns);
    free(ns);
    return status;
}

/* The series is that of the samples over their process's median: a process differs from the next as a whole, which is
 * neither a drift nor a step of the machine. */
static dt_status sum_up(const struct dt_result parts[], int n, struct dt_result *whole)
{
    double *flat = calloc((size_t)whole->samples.n + 1, sizeof *flat);
    if (flat == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0, at = 0; i < n; i++)
        for (int k = 0; k < parts[i].samples.n; k++, at++)
            flat[at] = whole->samples.seconds[at] / parts[i].summary.median;
    whole->samples.processes = dt_stats_processes(whole->samples.process_seconds, n, LEVEL);
    whole->summary = dt_stats_summary(whole->samples.seconds, whole->samples.n, LEVEL);
    whole->summary.series = dt_stats_series(flat, whole->samples.n);
    whole->summary.unreliable =
        false; /* that concerns neighbouring samples; processes are independent */
    whole->summary.median = whole->samples.processes.median;
    whole->summary.interval = whole->samples.processes.interval;
    free(flat);
    return DT_OK;
}

dt_status dt_processes_join(const struct dt_result parts[], int n, struct dt_result *whole)
{
    if (n < 1 || n > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "%d processes, expected 1 to %d", n, DT_PROCESSES_MOST);
    if (!same_shape(parts, n, whole))
        return DT_OK;
    DT_TRY(add_steps(parts, n, whole));
    describe(parts, n, whole);
    DT_TRY(add_samples(parts, n, whole));
    return sum_up(parts, n, whole);
}

/* Measures n parts, or until one fails; *made: their number, including the failed one. */
static dt_status make(struct dt_rig *rig, const struct dt_point *point,
                      const struct dt_measure *how, int n, struct dt_result parts[], int *made)
{
    for (*made = 0; *made < n;) {
        struct dt_measure each = *how;
        bool last = *made + 1 == n;
        each.peak = how->peak && last;
        each.exchanges = how->exchanges && last;
        each.trace = last ? how->trace : 0;
        each.output = last ? how->output : NULL;
        if (*made > 0)
            dt_rig_fresh(rig, DT_NS_PER_SECOND);
        struct dt_result *part = &parts[(*made)++];
        DT_TRY(dt_measure_plan(rig, point, &each, part));
        if (part->outcome != DT_TRIAL_OK)
            return DT_OK;
    }
    return DT_OK;
}

/* After a signal: all complete parts, else the incomplete first one. */
static int whole_parts(const struct dt_result parts[], int made)
{
    return made > 1 ? made - 1
                    : made == 1 && parts[0].samples.n > 0 && parts[0].outcome == DT_TRIAL_OK;
}

dt_status dt_measure_processes(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n, struct dt_result *result)
{
    int made = 0;
    dt_result_init(result, rig->target, point);
    struct dt_result *parts = calloc((size_t)n, sizeof *parts);
    if (parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = make(rig, point, how, n, parts, &made), joined = DT_OK;
    bool failed = status == DT_OK && parts[made - 1].outcome != DT_TRIAL_OK;
    int whole = status == DT_EINTR ? whole_parts(parts, made) : status == DT_OK ? made : 0;
    int one = failed ? made - 1 : 0;
    if (whole == 1 || failed) {
        *result = parts[one];
        parts[one] = (struct dt_result){0};
    } else if (whole > 1) {
        joined = dt_processes_join(parts, whole, result);
    }
    for (int i = 0; i < made; i++)
        dt_result_fini(&parts[i]);
    free(parts);
    return joined < 0 ? joined : status;
}
