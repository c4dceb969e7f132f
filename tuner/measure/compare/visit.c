/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/visit.h"

#include "base/clock.h"
#include "tuner/measure/trial.h"

#include <math.h>
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
