/* SPDX-License-Identifier: MIT */
/* What differs between the built-in network on cores and on GPUs is one row each; the rest of a target does not know. */
#include "tuner/trial/target_int.h"

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

dt_status dt_target_place(const struct dt_options *options, struct dt_target *target)
{
    DT_TRY(dt_backend_choose(options, &target->backend));
    target->cores = target->backend.cuda ? target->backend.gpus.count : dt_host_cores();
    target->devices = options->devices > 0 ? (int)options->devices : target->cores;
    target->unit = device_of(target)->unit;
    target->by_mpirun = device_of(target)->by_mpirun;
    if (!target->backend.cuda)
        return dt_machine_program(options, target->program);
    memcpy(target->program, target->backend.program, sizeof target->program);
    return DT_OK;
}

dt_status dt_target_choose(const struct dt_options *options, const struct dt_target *target,
                           const struct dt_target_opts *opts, struct dt_choice *choice)
{
    const struct dt_gpus *gpus = target->backend.cuda ? &target->backend.gpus : NULL;
    struct dt_dit_usual usual = dt_dit_usual(gpus);
    bool named = opts->network != NULL || !dt_option_is_default("model", options->model);
    bool sized = opts->size > 0 || named || options->input != NULL;
    choice->size = sized ? opts->size : usual.size;
    DT_TRY(opts->network != NULL
               ? dt_network_from_json(opts->network, "the entry's network", &choice->network)
               : dt_network_load(named ? options->model : usual.model, &choice->network));
    if (!dt_option_is_default("dtype", options->dtype))
        return dt_dtype_find("--dtype", options->dtype, &choice->dtype);
    choice->dtype = dt_dit_usual_dtype(&choice->network, gpus);
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
