/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/visit.h"

#include "base/clock.h"
#include "tuner/measure/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VISIT_SECONDS 0.02

static dt_status warm_up(struct dt_rig *rig, struct dt_entrant *entrant, int64_t deadline_ns)
{
    struct dt_result warm;
    dt_result_init(&warm, rig->target, &entrant->point);
    warm.cold_seconds = entrant->result.cold_seconds;
    dt_status status = dt_rig_run(rig, &entrant->resident, 2, DT_MODE_WARMUP,
                                  dt_measure_deadline(&warm, 2, deadline_ns), &warm);
    if (warm.outcome != DT_TRIAL_OK) {
        entrant->result.outcome = warm.outcome;
        memcpy(entrant->result.cause, warm.cause, sizeof warm.cause);
        dt_rig_release(rig, &entrant->resident);
    }
    dt_result_fini(&warm);
    return status;
}

/* Heartbeats extend a request at most to a quarter of the time that is left: a plan that hangs and goes on sending them leaves the
 * rest to the others. */
static void extend(struct dt_rig *rig, int64_t deadline_ns)
{
    int64_t now = dt_clock_ns();
    rig->until_ns = now + (deadline_ns - now) / 4;
}

dt_status dt_visit_prepare(struct dt_rig *rig, struct dt_entrant *entrant, int64_t deadline_ns)
{
    rig->apart = entrant->apart;
    extend(rig, deadline_ns);
    dt_status status = dt_rig_prepare(rig, &entrant->point, deadline_ns, &entrant->resident);
    rig->apart = false;
    if (status < 0)
        return status;
    dt_rig_describe(&entrant->resident, &entrant->result);
    if (entrant->resident.outcome == DT_TRIAL_OK && rig->target->image.starts)
        return DT_OK;
    if (entrant->resident.outcome == DT_TRIAL_OK)
        return warm_up(rig, entrant, deadline_ns);
    dt_rig_release(rig, &entrant->resident);
    return DT_OK;
}

static int steps_of_visit(const struct dt_entrant *entrant)
{
    const struct dt_result *result = &entrant->result;
    double step = result->report.steps > 0 ? dt_visit_seconds(result, result->report.steps - 1, 1)
                                           : result->cold_seconds;
    double n = step > 0 ? VISIT_SECONDS / step : 1;
    return n < 1 ? 1 : n > DT_VISIT_STEPS ? DT_VISIT_STEPS : (int)ceil(n);
}

/* Adds a start as one step: the median of its steps on each rank. */
static dt_status add_start(const struct dt_result *start, struct dt_result *result)
{
    size_t ranks = (size_t)start->ranks;
    int steps = start->report.steps, one = 1;
    long long *ns = calloc(ranks, sizeof *ns);
    double *column = calloc((size_t)steps + 1, sizeof *column);
    dt_status status = ns != NULL && column != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (size_t r = 0; r < ranks && status == DT_OK; r++) {
        for (int i = 0; i < steps; i++)
            column[i] = (double)start->report.ns[(size_t)i * ranks + r];
        ns[r] = llround(dt_stats_median(column, steps));
    }
    const struct dt_run run = {.steps = 1,
                               .ranks = start->ranks,
                               .ns = ns,
                               .starts = &one,
                               .start_count = 1,
                               .remarks = start->report.remarks};
    if (status == DT_OK)
        status = dt_result_add(result, &run, true);
    free(ns);
    free(column);
    return status;
}

/* Where each step is a start, it is its own visit, and nothing warms it up. */
static dt_status visit_start(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                             int64_t deadline_ns)
{
    struct dt_result start, *result = &entrant->result;
    dt_result_init(&start, rig->target, &entrant->point);
    start.cold_seconds = result->cold_seconds;
    dt_status status = dt_rig_run(rig, &entrant->resident, 1, DT_MODE_MEASURE,
                                  dt_measure_deadline(&start, 1, deadline_ns), &start);
    if (status == DT_OK && start.outcome == DT_TRIAL_OK)
        status = add_start(&start, result);
    if (status == DT_OK && start.outcome == DT_TRIAL_OK) {
        entrant->visits[round] = dt_visit_seconds(result, result->report.steps - 1, 1);
    } else if (status == DT_OK) {
        result->outcome = start.outcome;
        memcpy(result->cause, start.cause, sizeof start.cause);
    }
    dt_result_fini(&start);
    return status;
}

dt_status dt_visit_make(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                        int64_t deadline_ns)
{
    struct dt_result *result = &entrant->result;
    if (!dt_group_alive(entrant->resident.group))
        DT_TRY(dt_visit_prepare(rig, entrant, deadline_ns));
    if (result->outcome != DT_TRIAL_OK)
        return DT_OK;
    int steps = steps_of_visit(entrant);
    extend(rig, deadline_ns);
    if (rig->target->image.starts)
        return visit_start(rig, entrant, round, deadline_ns);
    struct dt_result lead;
    dt_result_init(&lead, rig->target, &entrant->point);
    lead.cold_seconds = result->cold_seconds;
    dt_status status = dt_rig_run(rig, &entrant->resident, 1, DT_MODE_WARMUP,
                                  dt_measure_deadline(&lead, 1, deadline_ns), &lead);
    if (status == DT_OK && lead.outcome == DT_TRIAL_OK) {
        status = dt_rig_run(rig, &entrant->resident, steps, DT_MODE_MEASURE,
                            dt_measure_deadline(result, steps, deadline_ns), result);
    } else if (status == DT_OK) {
        result->outcome = lead.outcome;
        memcpy(result->cause, lead.cause, sizeof lead.cause);
    }
    if (status == DT_OK && result->outcome == DT_TRIAL_OK)
        entrant->visits[round] = dt_visit_seconds(result, result->report.steps - steps, steps);
    dt_result_fini(&lead);
    return status;
}
