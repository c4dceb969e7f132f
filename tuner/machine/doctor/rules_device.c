/* SPDX-License-Identifier: MIT */
/* Rules about one GPU. */
#include "tuner/machine/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

/* The kernels are built for compute capability 8.0 and later (cmake/cuda.cmake). */
#define COMPUTE_LEAST    8
#define COMPUTE_COMPILED 9
/* Driver and ECC reserve less than this on an idle GPU; more means that someone uses it. */
#define KEPT_BYTES (2LL << 30)

static bool has_reason(const json_t *device, const char *name)
{
    const json_t *reasons = json_object_get(device, "reasons");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *reason = json_string_value(json_array_get(reasons, i));
        if (reason != NULL && strcmp(reason, name) == 0)
            return true;
    }
    return false;
}

static bool old_device(const struct dt_doctor_view *view, const json_t *device,
                       struct dt_text *what)
{
    int major = 0;
    const char *compute = dt_json_text_at(device, "compute");
    (void)view;
    if (sscanf(compute, "%d.", &major) != 1 || major >= COMPUTE_LEAST)
        return false;
    dt_text_add(what, "its compute capability is %s, the kernels need %d.0", compute,
                COMPUTE_LEAST);
    return true;
}

/* For compute capabilities above 9 the build has PTX only, unless configured otherwise (cmake/cuda.cmake), and a driver
 * does not compile that of a newer toolkit (NVIDIA, CUDA Compatibility, Minor Version Compatibility). */
static bool newer_ptx(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int major = 0;
    int64_t driver = dt_doctor_int(view->devices, "cuda_driver", 0);
    int64_t built = dt_doctor_int(view->devices, "cuda", 0);
    const char *compute = dt_json_text_at(device, "compute");
    if (sscanf(compute, "%d.", &major) != 1 || major <= COMPUTE_COMPILED || driver <= 0 ||
        driver >= built)
        return false;
    dt_text_add(what,
                "its driver has to compile the kernels for %s, and it is made for CUDA %lld.%lld, "
                "the build is of %lld.%lld",
                compute, (long long)driver / 1000, (long long)driver % 1000 / 10,
                (long long)built / 1000, (long long)built % 1000 / 10);
    return true;
}

static bool is_mig(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)view;
    if (!dt_doctor_is(device, "mig", true))
        return false;
    dt_text_add(what,
                "it is cut into instances (MIG): they share clocks and power, reach each other "
                "only through the host, and NCCL takes them for one device");
    return true;
}

static bool others(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    const json_t *processes = json_object_get(device, "processes");
    size_t n = json_array_size(processes);
    (void)view;
    if (n == 0)
        return false;
    dt_text_add(what, "%zu other process%s on it:", n, n > 1 ? "es are" : " is");
    for (size_t i = 0; i < n && i < 8; i++) {
        int64_t bytes = dt_doctor_int(json_array_get(processes, i), "bytes", -1);
        dt_text_add(what, "%s pid %lld", i > 0 ? "," : "",
                    (long long)dt_doctor_int(json_array_get(processes, i), "pid", 0));
        if (bytes >= 0)
            dt_text_add(what, " with %.1f GiB", (double)bytes / (1LL << 30));
    }
    return true;
}

/* Where NVML hides processes (of other containers), memory use still shows them. */
static bool memory_used(const struct dt_doctor_view *view, const json_t *device,
                        struct dt_text *what)
{
    int64_t memory = dt_doctor_int(device, "memory_bytes", -1);
    int64_t free_bytes = dt_doctor_int(device, "free_bytes", -1);
    (void)view;
    if (json_array_size(json_object_get(device, "processes")) > 0 || memory < 0 || free_bytes < 0 ||
        memory - free_bytes <= KEPT_BYTES)
        return false;
    dt_text_add(what, "%.1f of its %.1f GiB are in use, and no process is seen that has them",
                (double)(memory - free_bytes) / (1LL << 30), (double)memory / (1LL << 30));
    return true;
}

static bool power_limit(const struct dt_doctor_view *view, const json_t *device,
                        struct dt_text *what)
{
    int64_t limit = dt_doctor_int(device, "power_limit_mw", -1);
    int64_t usual = dt_doctor_int(device, "power_limit_default_mw", -1);
    (void)view;
    if (limit < 0 || limit >= usual)
        return false;
    dt_text_add(what, "its power is limited to %lld W, %lld W is its default",
                (long long)limit / 1000, (long long)usual / 1000);
    return true;
}

static bool power_cap(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)view;
    if (!has_reason(device, "sw_power_cap"))
        return false;
    dt_text_add(what, "its clocks are held down by the power limit now (sw_power_cap), before any "
                      "work of ours");
    return true;
}

static bool too_hot(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int64_t celsius = dt_doctor_int(device, "temperature_c", -1);
    (void)view;
    if (!has_reason(device, "sw_thermal") && !has_reason(device, "hw_thermal"))
        return false;
    dt_text_add(what, "its clocks are held down because it is hot");
    if (celsius >= 0)
        dt_text_add(what, ": %lld degrees", (long long)celsius);
    return true;
}

static bool power_brake(const struct dt_doctor_view *view, const json_t *device,
                        struct dt_text *what)
{
    (void)view;
    if (!has_reason(device, "hw_power_brake"))
        return false;
    dt_text_add(what, "the machine's power supply slows it down (hw_power_brake)");
    return true;
}

/* Heat and power brake set this reason, too. */
static bool slowdown(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)view;
    if (!has_reason(device, "hw_slowdown") || has_reason(device, "hw_thermal") ||
        has_reason(device, "hw_power_brake"))
        return false;
    dt_text_add(what, "the hardware slows it down to half its clocks or less (hw_slowdown)");
    return true;
}

static bool application_clocks(const struct dt_doctor_view *view, const json_t *device,
                               struct dt_text *what)
{
    int64_t set = dt_doctor_int(device, "application_mhz", -1);
    int64_t most = dt_doctor_int(device, "sm_mhz_max", -1);
    (void)view;
    if (!has_reason(device, "applications_clocks"))
        return false;
    dt_text_add(what, "its clocks were set by somebody");
    if (set >= 0 && most > 0)
        dt_text_add(what, ": %lld MHz of %lld", (long long)set, (long long)most);
    return true;
}

static bool sync_boost(const struct dt_doctor_view *view, const json_t *device,
                       struct dt_text *what)
{
    (void)view;
    if (!has_reason(device, "sync_boost"))
        return false;
    dt_text_add(what, "its clocks follow the slowest of a group (sync_boost)");
    return true;
}

static bool no_persistence(const struct dt_doctor_view *view, const json_t *device,
                           struct dt_text *what)
{
    (void)view;
    if (!dt_doctor_is(device, "persistence", false))
        return false;
    dt_text_add(what,
                "persistence is off: the driver lets go of the GPU between two programs, each "
                "start takes seconds and clocks are not kept");
    return true;
}

static bool differs(const json_t *device, const char *now, const char *pending)
{
    const json_t *a = json_object_get(device, now), *b = json_object_get(device, pending);
    return json_is_boolean(a) && json_is_boolean(b) && json_is_true(a) != json_is_true(b);
}

static bool mode_pending(const struct dt_doctor_view *view, const json_t *device,
                         struct dt_text *what)
{
    bool ecc = differs(device, "ecc", "ecc_pending"), mig = differs(device, "mig", "mig_pending");
    (void)view;
    if (!ecc && !mig)
        return false;
    dt_text_add(what, "%s with the next reset: what is measured now will not hold then",
                ecc && mig ? "ECC and MIG change"
                : ecc      ? "ECC changes"
                           : "MIG changes");
    return true;
}

static bool narrow_pcie(const struct dt_doctor_view *view, const json_t *device,
                        struct dt_text *what)
{
    const json_t *pcie = json_object_get(device, "pcie");
    int64_t width = dt_doctor_int(pcie, "width", -1), most = dt_doctor_int(pcie, "width_max", -1);
    (void)view;
    if (width <= 0 || width >= most)
        return false;
    dt_text_add(what, "its PCIe link has %lld lanes of %lld", (long long)width, (long long)most);
    return true;
}

/* An idle link saves power by a lower generation. */
static bool slow_pcie(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    const json_t *pcie = json_object_get(device, "pcie");
    int64_t now = dt_doctor_int(pcie, "generation", -1);
    int64_t most = dt_doctor_int(pcie, "generation_max", -1);
    (void)view;
    if (now <= 0 || now >= most || has_reason(device, "gpu_idle"))
        return false;
    dt_text_add(what, "its PCIe link runs as generation %lld of %lld", (long long)now,
                (long long)most);
    return true;
}

static const struct dt_doctor_rule rows[] = {
    {"old-device", DT_ERROR, true, old_device,
     "leave it out with CUDA_VISIBLE_DEVICES, or use the CPU"},
    {"newer-ptx", DT_WARNING, true, newer_ptx,
     "install a newer driver, or build for this GPU: cmake -DCMAKE_CUDA_ARCHITECTURES=100 for "
     "10.0"},
    {"mig", DT_WARNING, true, is_mig,
     "for plans of several ranks, nvidia-smi -i INDEX -mig 0, as root, when nobody uses it"},
    {"other-processes", DT_BUSY, true, others,
     "wait for them, or leave this GPU out with CUDA_VISIBLE_DEVICES"},
    {"memory-in-use", DT_BUSY, true, memory_used,
     "look for a container or a job that has it, or a process that was left over (fuser -v "
     "/dev/nvidia*, as root)"},
    {"power-limit", DT_WARNING, true, power_limit,
     "nvidia-smi -i INDEX -pl WATTS, as root, or say so beside the times"},
    {"power-capped", DT_WARNING, true, power_cap,
     "see what else runs on it, and whether the limit is the default"},
    {"too-hot", DT_WARNING, true, too_hot,
     "fix its cooling: the GPU is thermally throttled, and its timings are not comparable"},
    {"power-brake", DT_WARNING, true, power_brake,
     "see to power supplies and cables; times are not to be compared"},
    {"hw-slowdown", DT_WARNING, true, slowdown,
     "see what nvidia-smi -q -d PERFORMANCE gives as reason; times are not to be compared"},
    {"application-clocks", DT_WARNING, true, application_clocks,
     "nvidia-smi -i INDEX -rac takes them back"},
    {"sync-boost", DT_WARNING, true, sync_boost, "take the GPUs out of the sync boost group"},
    {"no-persistence", DT_WARNING, true, no_persistence,
     "start nvidia-persistenced, or nvidia-smi -pm 1, as root"},
    {"mode-pending", DT_NOTE, true, mode_pending,
     "reset the GPU (nvidia-smi -r, as root) before measuring, or take the change back"},
    {"narrow-pcie", DT_WARNING, true, narrow_pcie,
     "see whether the slot has all lanes, and seat the card anew"},
    {"slow-pcie", DT_WARNING, true, slow_pcie,
     "see the slot's generation in the firmware's settings, and risers and cables"},
};

const struct dt_doctor_rules dt_doctor_device = {rows, sizeof rows / sizeof rows[0]};
