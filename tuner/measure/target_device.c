/* SPDX-License-Identifier: MIT */
/* What differs between the built-in network on cores and on GPUs is one row each; the rest of a target does not know. */
#include "tuner/measure/target_int.h"

#include "base/host.h"
#include "tuner/machine/machine.h"

#include <stdio.h>
#include <string.h>

static bool lacks_cores(const struct dt_target *target, enum dt_dtype dtype)
{
    (void)target;
    return !dt_machine_runs(dtype);
}

static bool lacks_gpus(const struct dt_target *target, enum dt_dtype dtype)
{
    return dtype != DT_FLOAT32 && !target->backend.gpus.bfloat16;
}

static const struct device {
    const char *unit; /* what a rank takes */
    bool by_mpirun;
    bool (*lacks)(const struct dt_target *target, enum dt_dtype dtype);
} devices[] = {
    {"core", true, lacks_cores},
    {"GPU", false, lacks_gpus},
};

static const struct device *device_of(const struct dt_target *target)
{
    return &devices[target->backend.cuda];
}

dt_status dt_target_place(const struct dt_job *job, struct dt_target *target)
{
    DT_TRY(dt_backend_choose(job->backend, job->worker != NULL, &target->backend));
    target->backend.shared = job->shared_devices;
    target->cores = target->backend.cuda ? target->backend.gpus.count : dt_host_cores();
    target->devices = job->devices > 0 ? job->devices : target->cores;
    target->unit = device_of(target)->unit;
    target->by_mpirun = device_of(target)->by_mpirun;
    if (!target->backend.cuda)
        return dt_machine_program(job->worker, target->program);
    memcpy(target->program, target->backend.program, sizeof target->program);
    return DT_OK;
}

dt_status dt_target_choose(const struct dt_job *job, const struct dt_target *target,
                           struct dt_target_choice *choice)
{
    const struct dt_gpus *gpus = target->backend.cuda ? &target->backend.gpus : NULL;
    struct dt_dit_usual usual = dt_dit_usual(gpus);
    bool named = job->network.name[0] != '\0';
    bool sized = job->size > 0 || named || job->input != NULL;
    choice->size = sized ? job->size : usual.size;
    choice->network = job->network;
    if (!named)
        DT_TRY(dt_network_load(usual.model, &choice->network));
    choice->dtype = job->has_dtype ? job->dtype : dt_dit_usual_dtype(&choice->network, gpus);
    return DT_OK;
}

void dt_target_limits(const struct dt_target *target, enum dt_dtype dtype, struct dt_limits *limits)
{
    limits->gpus = target->backend.cuda ? &target->backend.gpus : NULL;
    limits->cores = target->cores;
    limits->devices = target->devices;
    limits->no_dtype = device_of(target)->lacks(target, dtype);
    limits->memory_bytes = dt_host_memory_available();
}

dt_status dt_target_devices_free(const struct dt_target *target)
{
    int count = target->devices < target->cores ? target->devices : target->cores;
    if (!target->backend.cuda || target->backend.shared)
        return DT_OK;
    return dt_backend_clean(target->backend.devices, count);
}

const char *dt_target_hardware(const struct dt_target *target)
{
    const json_t *list = json_object_get(target->backend.devices, "devices");
    return json_string_value(json_object_get(json_array_get(list, 0), "name"));
}

/* "8 GPUs (NVIDIA H200)" */
void dt_target_units(const struct dt_target *target, int n, struct dt_text *out)
{
    const char *name = dt_target_hardware(target);
    dt_text_add(out, "%d %s%s", n, target->unit, n == 1 ? "" : "s");
    if (name != NULL)
        dt_text_add(out, " (%s)", name);
}
