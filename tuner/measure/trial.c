/* SPDX-License-Identifier: MIT */
#include "tuner/measure/trial.h"

#include "base/array.h"
#include "base/clock.h"
#include "search/racing.h"
#include "space/dit/dit.h"
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a trial
 *
 * Warm-up: two more steps after the two of verification, always, and as long as requested; then the
 * steady part of the measured series is found by dt_stats_steady at every look, so that a slow
 * start is excluded by index and an endless one is reported. A slow start at a constant level that
 * outlasts the first look cannot be detected: the long warm-up is for that. */

#define WARMUP_STEPS 2
#define WARMUP_MOST  256 /* limit of warm-up steps */
#define WARMUP_CHUNK 16  /* steps per request: the clock is checked in between */
#define PATIENCE     2   /* a request that has had so many times what its steps should take hangs */
#define MOST_STEPS   96  /* limit of all steps: 64 steady ones and a long warm-up */
#define EXCHANGE_LEAST                                                                             \
    1024 /* bytes; of eight sizes, 1 KiB to 16 MiB, each four times the one before */

int64_t dt_measure_deadline(const struct dt_result *result, int steps, int64_t deadline_ns)
{
    double cold = isfinite(result->facts.cold_seconds) ? result->facts.cold_seconds : 60.0;
    int64_t most = dt_clock_ns() + (int64_t)(fmin(5.0 + 10.0 * cold * steps, 1e6) * 1e9);
    return most < deadline_ns ? most : deadline_ns;
}

static dt_status run_steps(struct dt_rig *rig, struct dt_resident *resident, int n,
                           enum dt_mode mode, const struct dt_measure *how,
                           struct dt_result *result)
{
    int64_t began = dt_clock_ns(), deadline_ns = dt_measure_deadline(result, n, how->deadline_ns);
    dt_status status = dt_rig_run(rig, resident, n, mode, deadline_ns, result);
    double given = (double)(how->deadline_ns - began) * 1e-9;
    result->share_ended =
        deadline_ns == how->deadline_ns && !(given > PATIENCE * result->facts.cold_seconds * n);
    result->wall_seconds = (double)(dt_clock_ns() - began) * 1e-9 / n;
    return status;
}

/* Samples to ask for so that the trial's time limit is not overrun; at least one. */
static int affordable_steps(const struct dt_result *result, const struct dt_measure *how,
                            int wanted)
{
    double last = result->report.steps > 0
                      ? fmax(dt_result_seconds(result, 1), result->wall_seconds)
                      : result->facts.cold_seconds;
    if (result->report.start_count > 0) /* the first start was made by the prepare */
        last = fmax(last, result->facts.cold_seconds);
    double left = (double)(how->deadline_ns - dt_clock_ns()) * 1e-9 * 0.9;
    if (!(last > 0) || left >= last * wanted)
        return wanted;
    int n = (int)(left / last);
    return n < 1 ? 1 : n;
}

static bool is_past(const struct dt_measure *how)
{
    return dt_clock_ns() >= how->deadline_ns;
}

/* Warms up until the steps, or the wall clock, have taken the time. */
static dt_status warm_up(struct dt_rig *rig, struct dt_resident *resident,
                         const struct dt_measure *how, struct dt_result *result)
{
    int n = WARMUP_STEPS;
    int64_t end = dt_clock_ns() + (int64_t)(how->warm_seconds * 1e9);
    while (n > 0) {
        DT_TRY(run_steps(rig, resident, n, DT_MODE_WARMUP, how, result));
        if (result->outcome != DT_TRIAL_OK || is_past(how) || dt_clock_ns() >= end)
            return DT_OK;
        double missing = (how->warm_seconds - dt_result_seconds(result, result->report.steps)) /
                         dt_result_seconds(result, 1);
        int room = WARMUP_MOST - result->report.steps;
        room = room < WARMUP_CHUNK ? room : WARMUP_CHUNK;
        n = missing < room ? (int)ceil(missing) : room;
        n = n > 0 ? affordable_steps(result, how, n) : 0;
    }
    return DT_OK;
}

/* Objective values of a result's samples, or of its starts. */
static int values_of(const struct dt_target *target, const struct dt_result *result, double out[])
{
    bool starts = result->report.start_count > 0;
    const double *seconds = starts ? result->samples.process_seconds : result->samples.seconds;
    int n = starts ? result->samples.processes.n : result->samples.n;
    n = n < MOST_STEPS ? n : MOST_STEPS;
    for (int i = 0; i < n; i++)
        out[i] = target->objective->value(seconds[i], dt_result_images(result), result->devices);
    return n;
}

/* Races against the incumbent; waits while throttled samples are being replaced. */
static enum dt_race_next race_incumbent(const struct dt_target *target,
                                        const struct dt_result *result,
                                        const struct dt_measure *how)
{
    double ours[1 + MOST_STEPS] = {result->facts.cold_seconds}, best[MOST_STEPS];
    int until;
    if (how->incumbent == NULL || result->throttling.waits)
        return DT_RACE_MORE;
    struct dt_race race = {
        .best = best, .best_count = values_of(target, how->incumbent, best), .most = MOST_STEPS};
    for (int i = 0; i < race.best_count && how->incumbent_times > 0; i++)
        best[i] *= how->incumbent_times;
    return dt_race_look(&race, ours, 1 + values_of(target, result, ours + 1), &until);
}

static bool is_narrow(const struct dt_result *result, const struct dt_measure *how)
{
    const struct dt_summary *summary = &result->summary;
    double width = (summary->interval.high - summary->interval.low) / 2;
    return width <= how->half_width * summary->median && result->samples.steady;
}

/* Starts to ask for where each step is one: the first, then those that the look misses, by how
 * many steps each has. */
static int starts_wanted(const struct dt_result *result, bool racing)
{
    int made = result->report.start_count;
    if (made == 0)
        return 1;
    if (racing && made < DT_RACE_WARM)
        return DT_RACE_WARM - made;
    double each = (double)dt_result_counted(result) / made;
    return (int)ceil((dt_look_samples[result->look] - dt_result_counted(result)) / each);
}

/* No further start fits: what there is counts. */
static bool no_more_starts(const struct dt_result *result, const struct dt_measure *how)
{
    return result->report.start_count > 0 &&
           (double)(how->deadline_ns - dt_clock_ns()) * 1e-9 < result->facts.cold_seconds;
}

/* Timed steps of a trial, at most. */
static int most_steps(const struct dt_target *target)
{
    int most = target->worker.samples;
    return most > 0 && most < MOST_STEPS ? most : MOST_STEPS;
}

static dt_status take_looks(struct dt_rig *rig, struct dt_resident *resident,
                            const struct dt_measure *how, struct dt_result *result)
{
    int least = result->report.steps, most = most_steps(rig->target);
    while (dt_result_next(result)) {
        bool first = result->report.request_count == 0 && how->incumbent != NULL;
        int missing = dt_look_samples[result->look] - dt_result_counted(result);
        int n = affordable_steps(result, how,
                                 rig->target->image.starts
                                     ? starts_wanted(result, how->incumbent != NULL)
                                 : first ? DT_RACE_WARM
                                         : missing);
        int left = least + most - result->report.steps;
        n = rig->target->image.starts || n < left ? n : left;
        DT_TRY(run_steps(rig, resident, n, DT_MODE_MEASURE, how, result));
        if (result->outcome != DT_TRIAL_OK)
            return DT_OK;
        DT_TRY(dt_result_look(result));
        enum dt_race_next next = race_incumbent(rig->target, result, how);
        if (next == DT_RACE_DROP) {
            result->outcome = DT_TRIAL_SLOW;
            snprintf(result->cause, sizeof result->cause, "dropped after %d samples",
                     result->samples.n);
            return DT_OK;
        }
        if (is_past(how) || no_more_starts(result, how) ||
            (result->report.start_count == 0 && result->report.steps - least >= most))
            return DT_OK;
        if (dt_result_counted(result) < dt_look_samples[result->look])
            continue;
        if (next == DT_RACE_SLOWER || is_narrow(result, how) ||
            (how->rest_ns > 0 && dt_clock_ns() >= how->rest_ns))
            return DT_OK;
    }
    return DT_OK;
}

/* A further request of the plan was answered. A worker that fails it does not fail the trial. */
static dt_status call_further(struct dt_resident *resident, dt_status status)
{
    if (status == DT_FAILED && !dt_group_alive(resident->group))
        resident->group = NULL;
    return status == DT_FAILED ? DT_OK : status;
}

static dt_status measure_peak(struct dt_resident *resident, int64_t deadline_ns,
                              struct dt_result *result)
{
    struct dt_failure failure;
    return call_further(resident,
                        dt_group_peak(resident->group, deadline_ns, &result->ceilings.flop_rate,
                                      &result->ceilings.copy_rate, &failure));
}

static dt_status measure_trace(struct dt_resident *resident, const struct dt_measure *how,
                               struct dt_result *result)
{
    struct dt_failure failure;
    free(result->trace);
    result->trace = NULL;
    dt_status status = dt_group_trace(resident->group, resident->prepared.handle, how->trace,
                                      how->deadline_ns, &result->trace, &failure);
    result->traced = status == DT_OK;
    if (status == DT_FAILED)
        result->trace = strdup(failure.cause);
    return call_further(resident, status);
}

static dt_status write_output(struct dt_resident *resident, const struct dt_measure *how,
                              struct dt_result *result)
{
    struct dt_failure failure;
    dt_status status = dt_group_write(resident->group, resident->prepared.handle, how->output,
                                      how->deadline_ns, &failure);
    if (status == DT_FAILED) {
        result->outcome = failure.outcome;
        memcpy(result->cause, failure.cause, sizeof result->cause);
    }
    return call_further(resident, status);
}

static dt_status measure_exchange(struct dt_resident *resident, int64_t deadline_ns,
                                  struct dt_timed_exchange *exchange)
{
    struct dt_failure failure;
    const struct dt_exchange_request request = {.kind = exchange->kind,
                                                .ranks = exchange->ranks,
                                                .stride = exchange->stride,
                                                .sizes = DT_EXCHANGE_SIZES,
                                                .times = DT_EXCHANGE_TIMES,
                                                .bytes = exchange->bytes};
    dt_status status =
        dt_group_exchange(resident->group, &request, deadline_ns, exchange->ns, &failure);
    exchange->timed = status == DT_OK;
    if (status == DT_FAILED)
        memcpy(exchange->reason, failure.cause, sizeof exchange->reason);
    return call_further(resident, status);
}

/* The plan's exchanges, timed by themselves in the group that just ran it (docs/protocol.md): heads
 * among the ulysses ranks, keys and values around the ring, the halves of the guidance. None for
 * one rank, and for foreign workers, whose parameters have no known meaning. */
static dt_status measure_exchanges(const struct dt_target *target, struct dt_resident *resident,
                                   int64_t deadline_ns, struct dt_result *result)
{
    struct dt_plan plan = {0};
    result->exchange_count = 0;
    DT_TRY(DT_RESIZE(result->exchanges, DT_DEGREES));
    if (!target->foreign)
        plan = dt_dit_plan(target->space, &result->point);
    for (int i = 0; i < DT_DEGREES && resident->group != NULL && !target->foreign; i++) {
        const char *kind = dt_degrees[i].exchange;
        int ranks = dt_plan_degree(&plan, i);
        if (ranks < 2 || kind == NULL)
            continue;
        struct dt_timed_exchange *exchange = &result->exchanges[result->exchange_count++];
        *exchange = (struct dt_timed_exchange){.ranks = ranks, .stride = dt_plan_stride(&plan, i)};
        snprintf(exchange->kind, sizeof exchange->kind, "%s", kind);
        /* the bytes of an all-to-all are a multiple of the number of ranks */
        int64_t block = strcmp(kind, "alltoall") == 0 ? ranks : 1, size = EXCHANGE_LEAST;
        for (int k = 0; k < DT_EXCHANGE_SIZES; k++, size *= 4)
            exchange->bytes[k] = (size + block - 1) / block * block;
        DT_TRY(measure_exchange(resident, deadline_ns, exchange));
    }
    return DT_OK;
}

static dt_status measure_resident(struct dt_rig *rig, struct dt_resident *resident,
                                  const struct dt_measure *how, struct dt_result *result)
{
    if (!rig->target->image.starts)
        DT_TRY(warm_up(rig, resident, how, result));
    if (result->outcome == DT_TRIAL_OK)
        DT_TRY(take_looks(rig, resident, how, result));
    if (how->output != NULL && result->outcome == DT_TRIAL_OK)
        DT_TRY(write_output(resident, how, result));
    if (result->outcome == DT_TRIAL_OK && !is_past(how))
        DT_TRY(dt_rig_verify_again(rig, resident, dt_measure_deadline(result, 3, how->deadline_ns),
                                   result));
    if (how->trace > 0 && resident->group != NULL && result->outcome == DT_TRIAL_OK)
        DT_TRY(measure_trace(resident, how, result));
    if (how->exchanges && resident->group != NULL)
        DT_TRY(measure_exchanges(rig->target, resident, how->deadline_ns, result));
    if (how->peak && resident->group != NULL)
        DT_TRY(measure_peak(resident, how->deadline_ns, result));
    return DT_OK;
}

/* A plan whose preparation was extended beyond the deadline still has time for its first look. */
static int64_t deadline_of_steps(const struct dt_result *result, const struct dt_measure *how)
{
    if (!is_past(how))
        return how->deadline_ns;
    return dt_measure_deadline(result, WARMUP_STEPS + dt_look_samples[0], how->until_ns);
}

static dt_status measure_plan(struct dt_rig *rig, const struct dt_point *point,
                              const struct dt_measure *how, struct dt_result *result)
{
    struct dt_resident resident;
    int64_t began = dt_clock_ns(), reference_ns = rig->costs.setup_ns - rig->costs.start_ns;
    struct dt_measure timed = *how;
    rig->until_ns = how->until_ns;
    dt_result_init(result, rig->target, point);
    result->throttling.clocks = &rig->clocks;
    dt_status status = dt_rig_prepare(rig, point, how->deadline_ns, &resident);
    if (status == DT_OK) {
        dt_rig_describe(&resident, result);
        timed.deadline_ns = deadline_of_steps(result, how);
        if (resident.failure.outcome == DT_TRIAL_OK)
            status = measure_resident(rig, &resident, &timed, result);
        if (status == DT_OK)
            status = dt_clocks_learn(&rig->clocks, result);
        dt_rig_release(rig, &resident);
    }
    result->facts.cost_seconds = (double)(dt_clock_ns() - began) * 1e-9;
    result->reference_seconds =
        (double)(rig->costs.setup_ns - rig->costs.start_ns - reference_ns) * 1e-9;
    return status;
}

/* With what others did on the cores meanwhile. */
dt_status dt_measure_plan(struct dt_rig *rig, const struct dt_point *point,
                          const struct dt_measure *how, struct dt_result *result)
{
    struct dt_load_reading before, after;
    dt_rig_gpus_begin(rig);
    dt_load_read(&before);
    dt_status status = measure_plan(rig, point, how, result);
    dt_load_read(&after);
    if (status == DT_OK)
        status = dt_rig_watch_gpus(rig, DT_GPUS_COMPUTE);
    struct dt_load load = dt_load_between(&before, &after);
    result->busy = load.ours;
    result->facts.others = load.others;
    result->facts.gpus = rig->gpu_use.count;
    return status == DT_OK && how->keep != NULL ? how->keep(how->context, result) : status;
}

dt_status dt_measure_ceilings(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              struct dt_result *result)
{
    struct dt_resident resident;
    DT_TRY(dt_rig_prepare(rig, point, deadline_ns, &resident));
    dt_status status = resident.failure.outcome == DT_TRIAL_OK && resident.group != NULL
                           ? measure_peak(&resident, deadline_ns, result)
                           : DT_OK;
    dt_rig_release(rig, &resident);
    return status;
}

/* ---- several fresh processes */

#define PROCESSES_LEVEL 0.95

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

/* The largest; one that is not known counts as larger. */
static void error_join(double error, double *most)
{
    if (!(error <= *most))
        *most = error;
}

/* Sets the facts of a plan other than its samples. */
static void join_facts(const struct dt_result parts[], int n, struct dt_result *whole)
{
    double cold[DT_PROCESSES_MOST];
    struct dt_facts *facts = &whole->facts;
    facts->verified_error = parts[0].facts.verified_error;
    facts->image_error = parts[0].facts.image_error;
    facts->repeat_error = parts[0].facts.repeat_error;
    whole->samples.steady = true;
    for (int i = 0; i < n; i++) {
        const struct dt_result *part = &parts[i];
        cold[i] = part->facts.cold_seconds;
        if (part->facts.peak_bytes > facts->peak_bytes)
            facts->peak_bytes = part->facts.peak_bytes;
        error_join(part->facts.verified_error, &facts->verified_error);
        error_join(part->facts.image_error, &facts->image_error);
        error_join(part->facts.repeat_error, &facts->repeat_error);
        whole->ceilings.flop_rate = fmax(whole->ceilings.flop_rate, part->ceilings.flop_rate);
        whole->ceilings.copy_rate = fmax(whole->ceilings.copy_rate, part->ceilings.copy_rate);
        facts->cost_seconds += part->facts.cost_seconds;
        whole->samples.steady = whole->samples.steady && part->samples.steady;
        whole->samples.start += part->samples.start;
        whole->samples.n += part->samples.n;
        whole->throttling.count += part->throttling.count;
        whole->throttling.all = whole->throttling.all || part->throttling.all;
    }
    facts->cold_seconds = dt_stats_median(cold, n);
}

/* The exchanges, the trace and the memory are those of the last process. */
static void join_last(struct dt_result *last, struct dt_result *whole)
{
    whole->exchanges = last->exchanges;
    whole->exchange_count = last->exchange_count;
    whole->trace = last->trace;
    whole->traced = last->traced;
    whole->memory = last->memory;
    last->exchanges = NULL;
    last->trace = NULL;
    last->memory = (struct dt_device_bytes){.known = true};
}

/* The steady steps of all processes in a row, and the median of each. */
static dt_status join_samples(const struct dt_result parts[], int n, struct dt_result *whole)
{
    size_t ranks = (size_t)whole->ranks, at = 0;
    dt_auto_free long long *ns = calloc((size_t)whole->samples.n * ranks + 1, sizeof *ns);
    whole->samples.process_seconds = calloc((size_t)n, sizeof *whole->samples.process_seconds);
    if (ns == NULL || whole->samples.process_seconds == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; i < n; i++) {
        struct dt_counted DT_CLEANUP(dt_counted_fini) counted = {0};
        DT_TRY(dt_throttle_count(&parts[i], parts[i].samples.start, &counted));
        memcpy(ns + at, counted.ns, (size_t)counted.n * ranks * sizeof *ns);
        at += (size_t)counted.n * ranks;
        whole->samples.process_seconds[i] = parts[i].summary.median;
    }
    return dt_result_sum(whole, ns);
}

/* The series is that of the samples over their process's median: a process differs from the next as
 * a whole, which is neither a drift nor a step of the machine. */
static dt_status join_statistics(const struct dt_result parts[], int n, struct dt_result *whole)
{
    dt_auto_free double *flat = calloc((size_t)whole->samples.n + 1, sizeof *flat);
    if (flat == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0, at = 0; i < n; i++)
        for (int k = 0; k < parts[i].samples.n; k++, at++)
            flat[at] = whole->samples.seconds[at] / parts[i].summary.median;
    whole->samples.processes =
        dt_stats_processes(whole->samples.process_seconds, n, PROCESSES_LEVEL);
    whole->summary = dt_stats_summary(whole->samples.seconds, whole->samples.n, PROCESSES_LEVEL);
    whole->summary.series = dt_stats_series(flat, whole->samples.n);
    whole->summary.unreliable =
        false; /* that concerns neighbouring samples; processes are independent */
    whole->summary.median = whole->samples.processes.median;
    whole->summary.interval = whole->samples.processes.interval;
    return DT_OK;
}

dt_status dt_processes_join(struct dt_result parts[], int n, struct dt_result *whole)
{
    if (n < 1 || n > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "%d processes, expected 1 to %d", n, DT_PROCESSES_MOST);
    if (!same_shape(parts, n, whole))
        return DT_OK;
    for (int i = 0; i < n; i++) /* each process is a request of its own */
        DT_TRY(dt_result_add(whole, &parts[i].report, true));
    join_facts(parts, n, whole);
    join_last(&parts[n - 1], whole);
    DT_TRY(join_samples(parts, n, whole));
    return join_statistics(parts, n, whole);
}

/* Measures n parts, or until one fails; *made: their number, including the failed one. */
static dt_status measure_parts(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n, struct dt_result parts[],
                               int *made)
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
static int complete_parts(const struct dt_result parts[], int made)
{
    return made > 1 ? made - 1
                    : made == 1 && parts[0].samples.n > 0 && parts[0].outcome == DT_TRIAL_OK;
}

dt_status dt_measure_processes(struct dt_rig *rig, const struct dt_point *point,
                               const struct dt_measure *how, int n, struct dt_result *result)
{
    int made = 0;
    dt_result_init(result, rig->target, point);
    dt_auto_free struct dt_result *parts = calloc((size_t)n, sizeof *parts);
    if (parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = measure_parts(rig, point, how, n, parts, &made), joined = DT_OK;
    bool failed = status == DT_OK && parts[made - 1].outcome != DT_TRIAL_OK;
    int whole = status == DT_EINTR ? complete_parts(parts, made) : status == DT_OK ? made : 0;
    int one = failed ? made - 1 : 0;
    if (whole == 1 || failed) {
        *result = parts[one];
        parts[one] = (struct dt_result){0};
    } else if (whole > 1) {
        joined = dt_processes_join(parts, whole, result);
    }
    for (int i = 0; i < made; i++)
        dt_result_fini(&parts[i]);
    return joined < 0 ? joined : status;
}
