/* SPDX-License-Identifier: MIT */
/* Rules about the machine around the GPUs. */
#include "tuner/machine/doctor/doctor.h"

#include <math.h>
#include <string.h>

/* Requirements of NCCL's guide for containers (Troubleshooting, Shared memory and Docker): --shm-size=1g --ulimit
 * memlock=-1. */
#define SHM_LEAST (1LL << 30)

static bool small_shm(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int64_t bytes = dt_doctor_int(view->host, "shm_bytes", SHM_LEAST);
    (void)device;
    if (view->count < 2 || bytes >= SHM_LEAST)
        return false;
    dt_text_add(what, "/dev/shm has %lld MiB, and NCCL's ranks share memory there",
                (long long)bytes >> 20);
    return true;
}

static bool small_memlock(const struct dt_doctor_view *view, const json_t *device,
                          struct dt_text *what)
{
    int64_t bytes = dt_doctor_int(view->host, "memlock_bytes", -1);
    (void)device;
    if (bytes < 0 || !dt_doctor_has_infiniband(view))
        return false;
    dt_text_add(what,
                "at most %lld KiB may be locked in memory (ulimit -l), and InfiniBand needs its "
                "buffers locked",
                (long long)bytes >> 10);
    return true;
}

/* Whole cores of processor time: those of the affinity mask, or the fewer that the quota pays for (base/host.h). */
static int64_t cores_of(const struct dt_doctor_view *view)
{
    const json_t *quota = json_object_get(view->host, "cores_quota");
    int64_t cores = dt_doctor_int(view->host, "cores", INT64_MAX);
    double most = json_is_number(quota) ? json_number_value(quota) : INFINITY;
    return most >= (double)cores ? cores : most < 1 ? 1 : (int64_t)(most + 1e-6);
}

static bool few_cores(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int64_t cores = cores_of(view);
    (void)device;
    if (cores >= view->count)
        return false;
    dt_text_add(what,
                "%lld GPUs, but this process may run on %lld core%s: ranks wait for each other",
                (long long)view->count, (long long)cores, cores == 1 ? "" : "s");
    return true;
}

/* Threads that have used their share of a period (100 ms, mostly) stand still until the next one. */
static bool core_quota(const struct dt_doctor_view *view, const json_t *device,
                       struct dt_text *what)
{
    const json_t *quota = json_object_get(view->host, "cores_quota");
    int64_t cores = dt_doctor_int(view->host, "cores", 0);
    (void)device;
    if (!json_is_number(quota) || json_number_value(quota) >= (double)cores)
        return false;
    dt_text_add(what,
                "the control group gives the time of %.1f of %lld cores: plans use %lld, and may "
                "be stopped in the middle of a step",
                json_number_value(quota), (long long)cores, (long long)cores_of(view));
    return true;
}

static bool memory_limit(const struct dt_doctor_view *view, const json_t *device,
                         struct dt_text *what)
{
    int64_t most = dt_doctor_int(view->host, "memory_limit_bytes", 0);
    int64_t there = dt_doctor_int(view->host, "memory_bytes", 0);
    (void)device;
    if (most <= 0 || most >= there)
        return false;
    dt_text_add(what, "the control group allows %.1f GiB of the machine's %.1f",
                (double)most / (1LL << 30), (double)there / (1LL << 30));
    return true;
}

static bool loaded(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    double load = json_number_value(json_object_get(view->host, "load"));
    int64_t cores = cores_of(view);
    (void)device;
    if (load <= (double)cores)
        return false;
    dt_text_add(what, "%.1f processes want to run on %lld cores: times will vary", load,
                (long long)cores);
    return true;
}

/* "powersave" of intel_pstate and amd-pstate-epp follows the load (the kernel's documentation of both). */
static bool powersave(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    const char *driver = dt_json_text_at(view->host, "frequency_driver");
    (void)device;
    if (strcmp(dt_json_text_at(view->host, "governor"), "powersave") != 0 ||
        strcmp(driver, "intel_pstate") == 0 || strcmp(driver, "amd-pstate-epp") == 0)
        return false;
    dt_text_add(what, "the processors are held at their lowest clock (governor powersave)");
    return true;
}

static const struct dt_doctor_rule rows[] = {
    {"small-shm", DT_WARNING, false, small_shm,
     "start the container with --shm-size=1g or more, or mount /dev/shm larger"},
    {"small-memlock", DT_WARNING, false, small_memlock,
     "ulimit -l unlimited, or --ulimit memlock=-1 for a container"},
    {"few-cores", DT_WARNING, false, few_cores,
     "allow a core a GPU: see taskset -p $$, the control group, or the job's --cpus-per-task"},
    {"core-quota", DT_WARNING, false, core_quota,
     "give whole cores instead: docker run --cpuset-cpus, a CPU manager with policy static"},
    {"memory-limit", DT_NOTE, false, memory_limit,
     "plans that need more are refused; docker run --memory, or the job's --mem, allow more"},
    {"loaded", DT_WARNING, false, loaded, "wait until the others are done, see top"},
    {"powersave", DT_WARNING, false, powersave, "cpupower frequency-set -g performance, as root"},
};

const struct dt_doctor_rules dt_doctor_host = {rows, sizeof rows / sizeof rows[0]};
