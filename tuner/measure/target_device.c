/* SPDX-License-Identifier: MIT */
/* Differences between cores and GPUs for the built-in network, one row each; the rest of a target is independent of
 * them. */
#include "tuner/measure/target_int.h"

#include "base/host.h"
#include "tuner/machine/machine.h"

#include <stdio.h>
#include <string.h>

static bool lacks_cores(const struct dt_target *target, enum dt_dtype dtype)
{
    const struct dt_described *described = target->hardware.described;
    return described == NULL ? !dt_machine_runs(dtype)
                             : dtype != DT_FLOAT32 && !described->bfloat16;
}

static bool lacks_gpus(const struct dt_target *target, enum dt_dtype dtype)
{
    return dtype != DT_FLOAT32 && !target->hardware.backend.gpus.bfloat16;
}

/* Without MPI the worker starts its ranks itself, which exchange through shared memory (worker/start.c). */
#ifdef DT_HAVE_MPI
enum { CORES_BY = DT_LAUNCH_MPIRUN };
#else
enum { CORES_BY = DT_LAUNCH_SELF };
#endif

static const struct device {
    const char *unit; /* device of a rank */
    enum dt_launcher launcher;
    bool (*lacks)(const struct dt_target *target, enum dt_dtype dtype);
} devices[] = {
    {"core", (enum dt_launcher)CORES_BY, lacks_cores},
    {"GPU", DT_LAUNCH_SELF, lacks_gpus},
};

static const struct device *device_of(const struct dt_target *target)
{
    return &devices[target->hardware.backend.cuda];
}

/* A foreign worker may use GPUs, which are then what its ranks are placed on. */
static int usual_devices(const struct dt_target *target)
{
    int gpus = target->hardware.watched.gpus.count;
    return gpus > 0 ? gpus : target->hardware.cores;
}

/* Nothing is looked at on this machine, and nothing can run. */
static dt_status place_elsewhere(const struct dt_job *job, struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    const struct dt_described *described = job->more.machine;
    *hardware = (struct dt_hardware){.described = described,
                                     .cores = described->cores,
                                     .devices = job->devices > 0 ? job->devices : described->cores};
    hardware->backend.cuda = described->gpus.count > 0;
    hardware->backend.gpus = described->gpus;
    hardware->unit = device_of(target)->unit;
    return DT_OK;
}

/* The slots are cores or GPUs of the hosts; what those are is seen when the first group says it is ready. */
static dt_status place_on_hosts(const struct dt_job *job, struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    hardware->hosts = *job->more.hosts;
    hardware->mixed_hosts = job->more.mixed_hosts;
    hardware->cores = dt_hosts_slots(&hardware->hosts);
    if (hardware->backend.cuda)
        hardware->backend.gpus.count = hardware->cores;
    hardware->devices = job->devices > 0 ? job->devices : hardware->cores;
    target->worker.launcher = DT_LAUNCH_MPIRUN;
    return job->worker.path != NULL ? dt_machine_program(NULL, target->worker.rank_program) : DT_OK;
}

void dt_hosts_describe(const struct dt_hosts *hosts, json_t *hard)
{
    json_object_set_new(hard, "hosts", json_integer(hosts->count));
    json_object_set_new(hard, "slots", json_integer(dt_hosts_slots(hosts)));
}

dt_status dt_target_place(const struct dt_job *job, struct dt_target *target)
{
    if (job->more.machine != NULL)
        return place_elsewhere(job, target);
    DT_TRY(dt_backend_choose(job->backend, job->worker.path != NULL, &target->hardware.backend));
    target->hardware.backend.shared = job->shared_devices;
    if (job->worker.path != NULL)
        DT_TRY(dt_backend_find_gpus(&target->hardware.watched));
    target->hardware.cores =
        target->hardware.backend.cuda ? target->hardware.backend.gpus.count : dt_host_cores();
    target->hardware.devices = job->devices > 0 ? job->devices : usual_devices(target);
    target->hardware.unit = device_of(target)->unit;
    target->worker.arguments = job->worker.arguments;
    target->worker.launcher = device_of(target)->launcher;
    if (job->more.hosts != NULL)
        DT_TRY(place_on_hosts(job, target));
    if (!target->hardware.backend.cuda)
        return dt_machine_program(job->worker.path, target->worker.program);
    memcpy(target->worker.program, target->hardware.backend.program, sizeof target->worker.program);
    return DT_OK;
}

dt_status dt_target_choose(const struct dt_job *job, const struct dt_target *target,
                           struct dt_target_choice *choice)
{
    const struct dt_gpus *gpus =
        target->hardware.backend.cuda ? &target->hardware.backend.gpus : NULL;
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
    limits->gpus = target->hardware.backend.cuda ? &target->hardware.backend.gpus : NULL;
    limits->cores = target->hardware.cores;
    limits->devices = target->hardware.devices;
    limits->no_dtype = device_of(target)->lacks(target, dtype);
    limits->memory_bytes = target->hardware.described != NULL
                               ? target->hardware.described->memory_bytes
                               : dt_host_memory_available();
    limits->hosts = target->hardware.hosts.count;
    limits->slots = dt_hosts_least_slots(&target->hardware.hosts);
    if (limits->hosts > 1) /* the others have as much, as far as is known */
        limits->memory_bytes *= limits->hosts;
}

dt_status dt_target_watch(struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    DT_TRY(dt_machine_announced_gpus(target->worker.ready, &hardware->watched));
    hardware->backend.shared = hardware->backend.shared && hardware->watched.cuda;
    hardware->watched.shared = hardware->backend.shared;
    return DT_OK;
}

const struct dt_backend *dt_target_gpus(const struct dt_target *target)
{
    const struct dt_hardware *hardware = &target->hardware;
    if (hardware->backend.cuda)
        return &hardware->backend;
    return target->foreign && hardware->watched.cuda ? &hardware->watched : NULL;
}

dt_status dt_target_devices_free(const struct dt_target *target)
{
    const struct dt_backend *gpus = dt_target_gpus(target);
    if (gpus == NULL || gpus->shared)
        return DT_OK;
    int most = target->hardware.devices, count = gpus->gpus.count;
    return dt_backend_clean(gpus, most < count ? most : count);
}

const char *dt_target_hardware(const struct dt_target *target)
{
    const json_t *list = json_object_get(target->hardware.backend.devices, "devices");
    return json_string_value(json_object_get(json_array_get(list, 0), "name"));
}

/* "8 GPUs (NVIDIA H200)" */
void dt_target_units(const struct dt_target *target, int n, struct dt_text *out)
{
    const char *name = dt_target_hardware(target);
    dt_text_add(out, "%d %s%s", n, target->hardware.unit, n == 1 ? "" : "s");
    if (name != NULL)
        dt_text_add(out, " (%s)", name);
    if (target->hardware.hosts.count > 0)
        dt_text_add(out, " of %d host%s", target->hardware.hosts.count,
                    target->hardware.hosts.count == 1 ? "" : "s");
}
