/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine_int.h"

#include "base/clock.h"
#include "base/host.h"
#include "model/workload_json.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSIONS_MOST 32
#define VERSION_ROOM  160

void dt_machine_beside(const char *name, char program[DT_PROGRAM_ROOM])
{
    char self[DT_PROGRAM_ROOM];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        slash[1] = '\0';
    if (slash == NULL || snprintf(program, DT_PROGRAM_ROOM, "%s%s", self, name) >= DT_PROGRAM_ROOM)
        program[0] = '\0';
}

dt_status dt_machine_program(const char *named, char program[DT_PROGRAM_ROOM])
{
    const char *chosen = named != NULL ? named : getenv("DITTUNE_WORKER");
    if (chosen != NULL) {
        char found[DT_PROGRAM_ROOM];
        snprintf(program, DT_PROGRAM_ROOM, "%s", chosen);
        if (dt_host_program(chosen, found, sizeof found) || strchr(chosen, '/') != NULL)
            return DT_OK;
        dt_machine_beside(chosen, found);
        if (access(found, X_OK) == 0)
            memcpy(program, found, sizeof found);
        return DT_OK;
    }
    dt_machine_beside("dittune-worker", program);
    if (program[0] == '\0')
        return dt_fail(
            DT_FAILED,
            "cannot tell where this program is: set DITTUNE_WORKER to the path of dittune-worker");
    if (access(program, X_OK) != 0)
        return dt_fail(DT_EUSAGE, "%s is missing: set DITTUNE_WORKER to the path of dittune-worker",
                       program);
    return DT_OK;
}

/* Firmware and kernel reserve 1 to 6 % of the installed memory, a part that differs between machines of one make. */
int64_t dt_machine_memory_gib(int64_t bytes)
{
    int64_t gib = bytes > 0 ? (bytes - 1) / (1LL << 30) + 1 : 1, step = 1;
    while (gib > 8 * step)
        step *= 2;
    return (gib + step - 1) / step * step;
}

bool dt_machine_runs(enum dt_dtype dtype)
{
#if defined(DT_HAVE_ONEDNN)
    return dtype == DT_FLOAT32 || dt_host_has_bfloat16();
#else
    return dtype == DT_FLOAT32;
#endif
}

static bool on_gpus(const struct dt_backend *backend)
{
    return backend != NULL && backend->cuda;
}

json_t *dt_machine_hard(const struct dt_backend *backend)
{
    char topology[17];
    if (on_gpus(backend))
        return dt_backend_hard(backend);
    snprintf(topology, sizeof topology, "%016llx", (unsigned long long)dt_host_topology());
    return json_pack("{s:s, s:i, s:I, s:s}", "device", dt_host_cpu(), "cores", dt_host_cores(),
                     "memory_gib", (json_int_t)dt_machine_memory_gib(dt_host_memory_total()),
                     "topology", topology);
}

/* A worker's texts, cleaned for files and terminals; our own fields take precedence. */
static void add_versions(json_t *soft, const json_t *versions)
{
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)versions, name, value)
    {
        char key[64], text[VERSION_ROOM];
        if (!json_is_string(value) || strlen(name) >= sizeof key || n++ == VERSIONS_MOST)
            continue;
        snprintf(key, sizeof key, "%s", name);
        snprintf(text, sizeof text, "%s", json_string_value(value));
        dt_group_clean(key);
        dt_group_clean(text);
        text[strcspn(text, "\n")] = '\0';
        if (json_object_get(soft, key) == NULL)
            json_object_set_new(soft, key, json_string(text));
    }
}

static json_t *soft_fields(const json_t *hello, const json_t *ready,
                           const struct dt_machine_worker *about)
{
    const char *name = json_string_value(json_object_get(hello, "name"));
    const char *version = json_string_value(json_object_get(hello, "version"));
    json_t *soft = json_pack("{s:s, s:s, s:s, s:s, s:o}", "dittune", DT_VERSION, "hwloc",
                             dt_host_hwloc_version(), "method", "1", "kernel", dt_host_kernel(),
                             "environment", dt_machine_environment(about->foreign));
    if (on_gpus(about->backend))
        dt_backend_soft(about->backend, soft);
    else if (about->foreign && about->backend != NULL && about->backend->shared)
        json_object_set_new(soft, "devices", json_string("shared with others"));
    if (name != NULL) {
        char worker[VERSION_ROOM];
        snprintf(worker, sizeof worker, "%.80s%s%.64s", name, version != NULL ? " " : "",
                 version != NULL ? version : "");
        dt_group_clean(worker);
        json_object_set_new(soft, "worker", json_string(worker));
    }
    add_versions(soft,
                 json_object_get(json_array_get(json_object_get(ready, "ranks"), 0), "versions"));
    return soft;
}

static json_t *limits(const struct dt_backend *backend)
{
    if (on_gpus(backend))
        return dt_backend_limits(backend);
    return json_pack("{s:I, s:b}", "memory_bytes", (json_int_t)dt_host_memory_limit(), "bfloat16",
                     dt_machine_runs(DT_BFLOAT16));
}

json_t *dt_machine_describe(const json_t *hello, const json_t *ready,
                            const struct dt_machine_worker *worker)
{
    json_t *hard = worker->foreign && ready != NULL ? dt_machine_announced_hard(ready)
                                                    : dt_machine_hard(worker->backend);
    return json_pack("{s:s, s:{s:i, s:i}, s:o, s:o, s:{s:s, s:s, s:I}, s:o}", "format",
                     "dittune-machine", "version", "major", 1, "minor", 0, "hard", hard, "soft",
                     soft_fields(hello, ready, worker), "info", "host", dt_host_name(), "boot_id",
                     dt_host_boot(), "t_wall_ns", (json_int_t)dt_clock_wall_ns(), "limits",
                     limits(worker->backend));
}

/* A hello accepts any workload: nothing is loaded before the first plan. */
static dt_status make_workload(json_t **json)
{
    struct dt_workload workload = {.guidance = true, .sampler_steps = 1, .dtype = DT_FLOAT32};
    DT_TRY(dt_network_load("dit-s/2", &workload.network));
    workload.height = workload.width = workload.network.latent_size;
    *json = dt_workload_to_json(&workload);
    return *json != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status ask_worker(const struct dt_machine_worker *worker, int64_t deadline_ns,
                            json_t **description)
{
    struct dt_launch launch = {
        .program = worker->program.path, .arguments = worker->program.arguments, .ranks = 1};
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_group *group = NULL;
    json_t *workload = NULL;
    if (!worker->foreign)
        DT_TRY(make_workload(&workload));
    dt_status status = dt_group_start(&launch, workload, deadline_ns, &group, &failure);
    json_decref(workload);
    if (status == DT_FAILED)
        return dt_fail(DT_FAILED, "the worker %s did not start: %s", worker->program.path,
                       failure.cause);
    DT_TRY(status);
    *description = dt_machine_describe(dt_group_hello(group), dt_group_ready(group), worker);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return *description != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_machine_read(const struct dt_machine_worker *worker, bool renew, int64_t deadline_ns,
                          json_t **description)
{
    json_t *cached = renew ? NULL : dt_machine_cached(worker);
    if (cached != NULL && on_gpus(worker->backend)) { /* they were queried just now */
        json_object_set_new(cached, "hard", dt_backend_hard(worker->backend));
        json_object_set_new(cached, "limits", dt_backend_limits(worker->backend));
        dt_backend_soft(worker->backend, json_object_get(cached, "soft"));
    }
    if (cached != NULL) {
        *description = cached;
        return DT_OK;
    }
    DT_TRY(ask_worker(worker, deadline_ns, description));
    dt_machine_keep(worker, *description);
    return DT_OK;
}

dt_status dt_machine_here(struct dt_program named, enum dt_backend_kind kind, bool renew,
                          int64_t deadline_ns, json_t **description)
{
    char program[DT_PROGRAM_ROOM];
    struct dt_backend backend;
    DT_TRY(dt_backend_choose(kind, named.path != NULL, &backend));
    const struct dt_machine_worker worker = {
        {backend.cuda ? backend.program : program, named.arguments}, named.path != NULL, &backend};
    dt_status status = backend.cuda ? DT_OK : dt_machine_program(named.path, program);
    if (status == DT_OK)
        status = dt_machine_read(&worker, renew, deadline_ns, description);
    dt_backend_fini(&backend);
    return status;
}
