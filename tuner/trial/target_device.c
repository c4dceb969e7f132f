/* SPDX-License-Identifier: MIT */
/* What differs between the built-in network on cores and on GPUs is one row each; the rest of a target does not know. */
#include "tuner/trial/target_int.h"

#include "base/host.h"
#include "tuner/machine/machine.h"

#include <stdio.h>
#include <string.h>

#define BFLOAT16_CAPABILITY 80 /* tensor cores multiply bfloat16 and tf32 since Ampere */

/* What is tuned when nobody says what. On a GPU the largest published DiT at its largest size (Peebles & Xie 2023, DiT-XL/2 at 512
 * px): 0.7 billion parameters, whose float32 reference wants 4 GiB beside CUDA and NCCL; a small one where that does not fit. */
static void default_cores(const struct dt_options *options, const struct dt_target *target,
                          struct dt_choice *choice)
{
    (void)options;
    (void)target;
    (void)choice; /* the table of options says it */
}

static bool has_own_attention(int head)
{
    for (int i = 0; i < DT_ATTN_HEADS; i++)
        if (dt_attn_heads[i] == head)
            return true;
    return false;
}

static void default_gpus(const struct dt_options *options, const struct dt_target *target,
                         struct dt_choice *choice)
{
    const struct dt_backend *backend = &target->backend;
    int64_t beside = DT_GPU_CONTEXT_BYTES + DT_GPU_WORKSPACE_BYTES + DT_GPU_NCCL_BYTES;
    struct dt_network network;
    if (dt_option_is_default("model", options->model) &&
        backend->gpus.memory_bytes - beside >= INT64_C(4) << 30) {
        choice->model = "dit-xl/2";
        choice->size = choice->size > 0 ? choice->size : 512;
    }
    if (dt_option_is_default("dtype", options->dtype) && backend->compute >= BFLOAT16_CAPABILITY &&
        dt_network_load(choice->model, &network) == DT_OK &&
        (has_own_attention(dt_network_head(&network)) || backend->gpus.cudnn))
        choice->dtype = dt_dtype_text(DT_BFLOAT16);
}

static bool lacks_cores(const struct dt_target *target, enum dt_dtype dtype)
{
    (void)target;
    return !dt_machine_runs(dtype);
}

static bool lacks_gpus(const struct dt_target *target, enum dt_dtype dtype)
{
    return dtype != DT_FLOAT32 && target->backend.compute < BFLOAT16_CAPABILITY;
}

static const struct device {
    const char *unit; /* what a rank takes */
    bool by_mpirun;
    void (*defaults)(const struct dt_options *options, const struct dt_target *target,
                     struct dt_choice *choice);
    bool (*lacks)(const struct dt_target *target, enum dt_dtype dtype);
} devices[] = {
    {"core", true, default_cores, lacks_cores},
    {"GPU", false, default_gpus, lacks_gpus},
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

void dt_target_defaults(const struct dt_options *options, const struct dt_target *target,
                        struct dt_choice *choice)
{
    device_of(target)->defaults(options, target, choice);
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

/* "8 GPUs" */
void dt_target_units(const struct dt_target *target, int n, struct dt_text *out)
{
    dt_text_add(out, "%d %s%s", n, target->unit, n == 1 ? "" : "s");
}
