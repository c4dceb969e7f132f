/* SPDX-License-Identifier: MIT */
/* What the controller reads of a foreign worker's GPUs takes the place of what the worker does not tell itself. */
#include "tuner/machine/machine.h"
#include "tuner/measure/rig_int.h"
#include "tuner/runner/load.h"

/* NULL: cores, or GPUs that the controller does not find. */
static struct dt_observer *observer_of(struct dt_rig *rig)
{
    const struct dt_backend *gpus = dt_target_gpus(rig->target);
    if (rig->observer == NULL && gpus != NULL)
        rig->observer = dt_observer_new(gpus);
    return rig->observer;
}

dt_status dt_rig_observe_begin(struct dt_rig *rig, const struct dt_group *group, int ranks)
{
    struct dt_observer *observer = rig->target->foreign && !rig->reports ? observer_of(rig) : NULL;
    return observer != NULL ? dt_observer_begin(observer, group, ranks) : DT_OK;
}

dt_status dt_rig_observe_end(struct dt_rig *rig, struct dt_run *run)
{
    json_t *telemetry = NULL;
    if (rig->observer == NULL || !rig->target->foreign)
        return DT_OK;
    DT_TRY(dt_observer_end(rig->observer, &telemetry));
    rig->reports = run->telemetry != NULL;
    if (!rig->reports && json_array_size(telemetry) == (size_t)run->ranks)
        run->telemetry = json_incref(telemetry);
    json_decref(telemetry);
    return DT_OK;
}

static int64_t largest(const json_t *list)
{
    int64_t most = 0;
    const json_t *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        most = json_integer_value(value) > most ? json_integer_value(value) : most;
    }
    return most;
}

dt_status dt_rig_observe_memory(struct dt_rig *rig, const struct dt_group *group,
                                struct dt_prepared *prepared)
{
    struct dt_observer *observer = rig->target->foreign ? observer_of(rig) : NULL;
    json_t *memory = NULL;
    if (observer == NULL || json_object_get(prepared->memory, "taken_bytes") != NULL)
        return DT_OK;
    dt_status status = dt_observer_memory(observer, group, prepared->ranks, &memory);
    if (status < 0) {
        dt_prepared_fini(prepared);
        return status;
    }
    if (prepared->peak_bytes == 0)
        prepared->peak_bytes = largest(json_object_get(memory, "taken_bytes"));
    if (memory != NULL && prepared->memory != NULL)
        json_object_update(memory, prepared->memory);
    if (memory != NULL) {
        json_decref(prepared->memory);
        prepared->memory = memory;
    }
    return DT_OK;
}

bool dt_rig_watches_gpus(const struct dt_rig *rig)
{
    const struct dt_backend *gpus = dt_target_gpus(rig->target);
    return gpus != NULL && !gpus->shared && dt_load_wanted();
}

dt_status dt_rig_watch_gpus(struct dt_rig *rig, enum dt_gpu_company company)
{
    struct dt_observer *observer = dt_rig_watches_gpus(rig) ? observer_of(rig) : NULL;
    return observer != NULL ? dt_observer_others(observer, company, &rig->gpu_use) : DT_OK;
}
