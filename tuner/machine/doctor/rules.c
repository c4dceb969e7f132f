/* SPDX-License-Identifier: MIT */
#include "tuner/machine/doctor/doctor.h"

#include "base/figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Appends the sentence where it is so. */
DT_FORMAT(3, 4)
static bool rule_found(bool is, struct dt_text *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (is)
        dt_text_add_list(what, format, args);
    va_end(args);
    return is;
}

/* ---- built, installed and loaded software */

/* First release in which all-to-all is an operation of its own (NVIDIA/nccl, release 2.28). */
#define NCCL_MAJOR 2
#define NCCL_MINOR 28
/* cuDNN's attention operation (NVIDIA/cudnn-frontend, sdpa_support_surface.h). */
#define CUDNN_LEAST 91301

static int64_t on_pci(const struct dt_doctor_view *view)
{
    return dt_doctor_int(view->host, "nvidia_on_pci", 0);
}

static bool is_asked(const struct dt_doctor_view *view)
{
    return dt_json_text_at(view->worker, "cause")[0] == '\0';
}

/* An empty list, or one that begins with none, hides all of them (CUDA C++ Programming Guide, "CUDA
 * Environment Variables"). */
static bool are_hidden(const struct dt_doctor_view *view)
{
    const char *visible = dt_doctor_environment(view, "CUDA_VISIBLE_DEVICES");
    return visible != NULL && (visible[0] == '\0' || strncmp(visible, "-1", 2) == 0);
}

static bool no_gpu(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(on_pci(view) == 0 && view->count == 0 &&
                          (is_asked(view) || dt_doctor_is(view->worker, "missing", true)),
                      what, "no GPU of NVIDIA is in this machine: plans are tuned on the CPU");
}

static bool no_worker(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(on_pci(view) != 0 && dt_doctor_is(view->worker, "missing", true), what,
                      "%lld GPU%s here, but %s", (long long)on_pci(view),
                      on_pci(view) > 1 ? "s are" : " is", dt_json_text_at(view->worker, "cause"));
}

static bool worker_failed(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(!is_asked(view) && !dt_doctor_is(view->worker, "missing", true), what,
                      "%s --devices %s", dt_json_text_at(view->worker, "program"),
                      dt_json_text_at(view->worker, "cause"));
}

static bool no_driver(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(is_asked(view) && on_pci(view) != 0 && view->count == 0 &&
                          dt_doctor_int(view->devices, "cuda_driver", 0) == 0,
                      what, "%lld GPU%s on the PCI bus, but no driver is loaded here",
                      (long long)on_pci(view), on_pci(view) > 1 ? "s are" : " is");
}

/* NVIDIA, CUDA Compatibility, "Minor Version Compatibility", table 1: the least driver of a major
 * version of the toolkit. */
static int least_driver(int64_t major)
{
    static const struct {
        int major, driver;
    } rows[] = {{11, 450}, {12, 525}, {13, 580}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].major == major)
            return rows[i].driver;
    return 0;
}

static bool is_driver_old(const struct dt_doctor_view *view)
{
    int64_t driver = dt_doctor_int(view->devices, "cuda_driver", 0);
    return driver > 0 && driver / 1000 < dt_doctor_int(view->devices, "cuda", 0) / 1000;
}

static bool old_driver(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t driver = dt_doctor_int(view->devices, "cuda_driver", 0);
    int64_t built = dt_doctor_int(view->devices, "cuda", 0);
    const char *version = dt_json_text_at(view->devices, "driver");
    if (!is_driver_old(view))
        return false;
    dt_text_add(what, "the driver%s%s runs CUDA up to %lld.%lld, and this was built with %lld.%lld",
                version[0] != '\0' ? " " : "", version, (long long)driver / 1000,
                (long long)driver % 1000 / 10, (long long)built / 1000,
                (long long)built % 1000 / 10);
    if (least_driver(built / 1000) > 0)
        dt_text_add(what, ", which needs driver %d", least_driver(built / 1000));
    return true;
}

static bool hidden_devices(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(view->count == 0 && are_hidden(view) && on_pci(view) != 0 &&
                          !is_driver_old(view),
                      what, "CUDA_VISIBLE_DEVICES=\"%s\" hides every GPU",
                      dt_doctor_environment(view, "CUDA_VISIBLE_DEVICES"));
}

static bool no_device(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(is_asked(view) && on_pci(view) != 0 && view->count == 0 &&
                          !are_hidden(view) && !is_driver_old(view) &&
                          dt_doctor_int(view->devices, "cuda_driver", 0) != 0,
                      what, "there is a driver, but no GPU for this process: %s",
                      dt_json_text_at(view->devices, "why"));
}

static bool no_nccl(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(view->count >= 2 && dt_json_text_at(view->devices, "nccl")[0] == '\0', what,
                      "%lld GPUs, but NCCL was not built in: only plans of one rank run on them",
                      (long long)view->count);
}

static bool old_nccl(const struct dt_doctor_view *view, struct dt_text *what)
{
    int major = 0, minor = 0;
    const char *version = dt_json_text_at(view->devices, "nccl");
    return rule_found(sscanf(version, "%d.%d", &major, &minor) == 2 && major <= NCCL_MAJOR &&
                          (major != NCCL_MAJOR || minor < NCCL_MINOR),
                      what, "NCCL %s is loaded; this is made for %d.%d or later", version,
                      NCCL_MAJOR, NCCL_MINOR);
}

static bool no_cudnn(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(view->count > 0 && dt_json_text_at(view->devices, "cudnn")[0] == '\0', what,
                      "cuDNN was not built in: its attention is not among the choices");
}

static bool old_cudnn(const struct dt_doctor_view *view, struct dt_text *what)
{
    int major = 0, minor = 0, patch = 0;
    const char *version = dt_json_text_at(view->devices, "cudnn");
    return rule_found(sscanf(version, "%d.%d.%d", &major, &minor, &patch) >= 2 && major <= 9 &&
                          major * 10000 + minor * 100 + patch < CUDNN_LEAST,
                      what, "cuDNN %s is loaded; its attention needs 9.13.1", version);
}

static bool other_blas(const struct dt_doctor_view *view, struct dt_text *what)
{
    int major = 0;
    int64_t cuda = dt_doctor_int(view->devices, "cuda", 0) / 1000;
    const char *version = dt_json_text_at(view->devices, "cublaslt");
    return rule_found(sscanf(version, "%d.", &major) == 1 && cuda != 0 && major != cuda, what,
                      "cuBLASLt %s is loaded into a program of CUDA %lld", version,
                      (long long)cuda);
}

static bool no_nvml(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(view->count > 0 && dt_doctor_is(view->devices, "nvml", false), what,
                      "NVML cannot be opened: clocks, temperature and other programs are not seen");
}

/* ---- one GPU */

/* The kernels are built for compute capability 8.0 and later (cmake/cuda.cmake). */
#define COMPUTE_LEAST    8
#define COMPUTE_COMPILED 9
/* Driver and ECC reserve less than this on an idle GPU; more means that someone uses it. */
#define KEPT_BYTES (2LL << 30)

static bool has_reason(const struct dt_doctor_view *view, const char *name)
{
    return dt_json_lists(json_object_get(view->device, "reasons"), name);
}

static bool old_device(const struct dt_doctor_view *view, struct dt_text *what)
{
    int major = 0;
    const char *compute = dt_json_text_at(view->device, "compute");
    return rule_found(sscanf(compute, "%d.", &major) == 1 && major < COMPUTE_LEAST, what,
                      "its compute capability is %s, the kernels need %d.0", compute,
                      COMPUTE_LEAST);
}

/* For compute capabilities above 9 the build has PTX only, unless configured otherwise
 * (cmake/cuda.cmake), and a driver does not compile that of a newer toolkit (NVIDIA, CUDA
 * Compatibility, Minor Version Compatibility). */
static bool newer_ptx(const struct dt_doctor_view *view, struct dt_text *what)
{
    int major = 0;
    int64_t driver = dt_doctor_int(view->devices, "cuda_driver", 0);
    int64_t built = dt_doctor_int(view->devices, "cuda", 0);
    const char *compute = dt_json_text_at(view->device, "compute");
    return rule_found(
        sscanf(compute, "%d.", &major) == 1 && major > COMPUTE_COMPILED && driver > 0 &&
            driver < built,
        what,
        "its driver has to compile the kernels for %s, and it is made for CUDA %lld.%lld, "
        "the build is of %lld.%lld",
        compute, (long long)driver / 1000, (long long)driver % 1000 / 10, (long long)built / 1000,
        (long long)built % 1000 / 10);
}

static bool is_mig(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(
        dt_doctor_is(view->device, "mig", true), what,
        "it is cut into instances (MIG): they share clocks and power, reach each other "
        "only through the host, and NCCL takes them for one device");
}

static bool rule_others(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *processes = json_object_get(view->device, "processes");
    size_t n = json_array_size(processes);
    if (n == 0)
        return false;
    dt_text_add(what, "%zu other process%s on it:", n, n > 1 ? "es are" : " is");
    for (size_t i = 0; i < n && i < 8; i++) {
        int64_t bytes = dt_doctor_int(json_array_get(processes, i), "bytes", -1);
        dt_text_add(what, "%s pid %lld", i > 0 ? "," : "",
                    (long long)dt_doctor_int(json_array_get(processes, i), "pid", 0));
        if (bytes >= 0)
            dt_text_add(what, " with %s", dt_figure_bytes_of(bytes).text);
    }
    return true;
}

/* Where NVML hides processes (of other containers), memory use still shows them. */
static bool memory_used(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t memory = dt_doctor_int(view->device, "memory_bytes", -1);
    int64_t free_bytes = dt_doctor_int(view->device, "free_bytes", -1);
    return rule_found(json_array_size(json_object_get(view->device, "processes")) == 0 &&
                          memory >= 0 && free_bytes >= 0 && memory - free_bytes > KEPT_BYTES,
                      what, "%s of its %s are in use, and no process is seen that has them",
                      dt_figure_bytes_of(memory - free_bytes).text,
                      dt_figure_bytes_of(memory).text);
}

static bool power_limit(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t limit = dt_doctor_int(view->device, "power_limit_mw", -1);
    int64_t usual = dt_doctor_int(view->device, "power_limit_default_mw", -1);
    return rule_found(limit >= 0 && limit < usual, what,
                      "its power is limited to %lld W, %lld W is its default",
                      (long long)limit / 1000, (long long)usual / 1000);
}

static bool power_cap(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(has_reason(view, "sw_power_cap"), what,
                      "its clocks are held down by the power limit now (sw_power_cap), before any "
                      "work of ours");
}

static bool too_hot(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t celsius = dt_doctor_int(view->device, "temperature_c", -1);
    if (!has_reason(view, "sw_thermal") && !has_reason(view, "hw_thermal"))
        return false;
    dt_text_add(what, "its clocks are held down because it is hot");
    if (celsius >= 0)
        dt_text_add(what, ": %lld degrees", (long long)celsius);
    return true;
}

static bool power_brake(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(has_reason(view, "hw_power_brake"), what,
                      "the machine's power supply slows it down (hw_power_brake)");
}

/* Heat and power brake set this reason, too. */
static bool rule_slowdown(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(has_reason(view, "hw_slowdown") && !has_reason(view, "hw_thermal") &&
                          !has_reason(view, "hw_power_brake"),
                      what, "the hardware slows it down to half its clocks or less (hw_slowdown)");
}

static bool application_clocks(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t set = dt_doctor_int(view->device, "application_mhz", -1);
    int64_t most = dt_doctor_int(view->device, "sm_mhz_max", -1);
    if (!has_reason(view, "applications_clocks"))
        return false;
    dt_text_add(what, "its clocks were set by somebody");
    if (set >= 0 && most > 0)
        dt_text_add(what, ": %lld MHz of %lld", (long long)set, (long long)most);
    return true;
}

static bool sync_boost(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(has_reason(view, "sync_boost"), what,
                      "its clocks follow the slowest of a group (sync_boost)");
}

static bool no_persistence(const struct dt_doctor_view *view, struct dt_text *what)
{
    return rule_found(
        dt_doctor_is(view->device, "persistence", false), what,
        "persistence is off: the driver lets go of the GPU between two programs, each "
        "start takes seconds and clocks are not kept");
}

static bool mode_differs(const struct dt_doctor_view *view, const char *now, const char *pending)
{
    const json_t *a = json_object_get(view->device, now),
                 *b = json_object_get(view->device, pending);
    return json_is_boolean(a) && json_is_boolean(b) && json_is_true(a) != json_is_true(b);
}

static bool mode_pending(const struct dt_doctor_view *view, struct dt_text *what)
{
    bool ecc = mode_differs(view, "ecc", "ecc_pending"),
         mig = mode_differs(view, "mig", "mig_pending");
    return rule_found(ecc || mig, what,
                      "%s with the next reset: what is measured now will not hold then",
                      ecc && mig ? "ECC and MIG change"
                      : ecc      ? "ECC changes"
                                 : "MIG changes");
}

static bool narrow_pcie(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *pcie = json_object_get(view->device, "pcie");
    int64_t width = dt_doctor_int(pcie, "width", -1), most = dt_doctor_int(pcie, "width_max", -1);
    return rule_found(width > 0 && width < most, what, "its PCIe link has %lld lanes of %lld",
                      (long long)width, (long long)most);
}

/* An idle link saves power by a lower generation. */
static bool slow_pcie(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *pcie = json_object_get(view->device, "pcie");
    int64_t now = dt_doctor_int(pcie, "generation", -1);
    int64_t most = dt_doctor_int(pcie, "generation_max", -1);
    return rule_found(now > 0 && now < most && !has_reason(view, "gpu_idle"), what,
                      "its PCIe link runs as generation %lld of %lld", (long long)now,
                      (long long)most);
}

/* ---- the links between GPUs and to other machines */

static const json_t *matrix_cell(const struct dt_doctor_view *view, const char *matrix, int64_t a,
                                 int64_t b)
{
    const json_t *rows = json_object_get(view->devices, matrix);
    return json_array_get(json_array_get(rows, (size_t)a), (size_t)b);
}

/* Connected closely enough for direct peer access. */
static bool is_near(const char *link)
{
    return link != NULL &&
           (strcmp(link, "nvlink") == 0 || strcmp(link, "pix") == 0 || strcmp(link, "pxb") == 0);
}

static bool no_peers(const struct dt_doctor_view *view, struct dt_text *what)
{
    int n = 0;
    for (int64_t a = 0; a < view->count; a++)
        for (int64_t b = a + 1; b < view->count; b++) {
            const char *link = json_string_value(matrix_cell(view, "links", a, b));
            const json_t *peer = matrix_cell(view, "peers", a, b);
            if (!is_near(link) || !json_is_integer(peer) || json_integer_value(peer) != -1)
                continue;
            if (n++ == 0)
                dt_text_add(what,
                            "GPU %lld and GPU %lld are connected by %s, but neither may reach "
                            "into the other",
                            (long long)a, (long long)b, link);
        }
    if (n > 1)
        dt_text_add(what, "; so are %d more pairs", n - 1);
    return n > 0;
}

static bool nvlink_down(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *devices = json_object_get(view->devices, "devices");
    int64_t most = 0, links = dt_doctor_int(view->device, "nvlinks", -1);
    for (int64_t i = 0; i < view->count; i++) {
        const json_t *other = json_array_get(devices, (size_t)i);
        int64_t up = dt_doctor_int(other, "nvlinks", 0);
        bool same =
            strcmp(dt_json_text_at(other, "name"), dt_json_text_at(view->device, "name")) == 0;
        most = same && up > most ? up : most;
    }
    return rule_found(links >= 0 && links < most, what,
                      "%lld of its NVLinks are up, %lld are on another GPU of its kind",
                      (long long)links, (long long)most);
}

static bool infiniband_down(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *infiniband = json_object_get(view->devices, "infiniband");
    size_t n = json_array_size(json_object_get(infiniband, "devices"));
    return rule_found(
        n != 0 && dt_doctor_is(infiniband, "active", false), what,
        "%zu InfiniBand device%s here, but no port is active: hosts would talk through "
        "sockets",
        n, n > 1 ? "s are" : " is");
}

/* ---- the machine around the GPUs */

/* Requirements of NCCL's guide for containers (Troubleshooting, Shared memory and Docker):
 * --shm-size=1g --ulimit memlock=-1. */
#define SHM_LEAST (1LL << 30)

static bool small_shm(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t bytes = dt_doctor_int(view->host, "shm_bytes", SHM_LEAST);
    return rule_found(view->count >= 2 && bytes < SHM_LEAST, what,
                      "/dev/shm has %s, and NCCL's ranks share memory there",
                      dt_figure_bytes_of(bytes).text);
}

static bool small_memlock(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t bytes = dt_doctor_int(view->host, "memlock_bytes", -1);
    return rule_found(bytes >= 0 && dt_doctor_has_infiniband(view), what,
                      "at most %s may be locked in memory (ulimit -l), and InfiniBand needs its "
                      "buffers locked",
                      dt_figure_bytes_of(bytes).text);
}

/* Whole cores of processor time: those of the affinity mask, or the fewer that the quota
 * pays for (base/host.h). */
static int64_t cores_of(const struct dt_doctor_view *view)
{
    const json_t *quota = json_object_get(view->host, "cores_quota");
    int64_t cores = dt_doctor_int(view->host, "cores", INT64_MAX);
    double most = json_is_number(quota) ? json_number_value(quota) : INFINITY;
    return most >= (double)cores ? cores : most < 1 ? 1 : (int64_t)(most + 1e-6);
}

static bool few_cores(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t cores = cores_of(view);
    return rule_found(
        cores < view->count, what,
        "%lld GPUs, but this process may run on %lld core%s: ranks wait for each other",
        (long long)view->count, (long long)cores, cores == 1 ? "" : "s");
}

/* Threads that have used their share of a period (100 ms, mostly) stand
 * still until the next one. */
static bool core_quota(const struct dt_doctor_view *view, struct dt_text *what)
{
    const json_t *quota = json_object_get(view->host, "cores_quota");
    int64_t cores = dt_doctor_int(view->host, "cores", 0);
    return rule_found(
        json_is_number(quota) && json_number_value(quota) < (double)cores, what,
        "the control group gives the time of %.1f of %lld cores: plans use %lld, and may "
        "be stopped in the middle of a step",
        json_number_value(quota), (long long)cores, (long long)cores_of(view));
}

static bool memory_limit(const struct dt_doctor_view *view, struct dt_text *what)
{
    int64_t most = dt_doctor_int(view->host, "memory_limit_bytes", 0);
    int64_t there = dt_doctor_int(view->host, "memory_bytes", 0);
    return rule_found(most > 0 && most < there, what,
                      "the control group allows %s of the machine's %s",
                      dt_figure_bytes_of(most).text, dt_figure_bytes_of(there).text);
}

static bool rule_loaded(const struct dt_doctor_view *view, struct dt_text *what)
{
    double load = json_number_value(json_object_get(view->host, "load"));
    int64_t cores = cores_of(view);
    return rule_found(load > (double)cores, what,
                      "%.1f processes want to run on %lld cores: times will vary", load,
                      (long long)cores);
}

/* "powersave" of intel_pstate and amd-pstate-epp follows the load (the kernel's
 * documentation of both). */
static bool rule_powersave(const struct dt_doctor_view *view, struct dt_text *what)
{
    const char *driver = dt_json_text_at(view->host, "frequency_driver");
    return rule_found(strcmp(dt_json_text_at(view->host, "governor"), "powersave") == 0 &&
                          strcmp(driver, "intel_pstate") != 0 &&
                          strcmp(driver, "amd-pstate-epp") != 0,
                      what, "the processors are held at their lowest clock (governor powersave)");
}

const struct dt_doctor_rule dt_doctor_rules[] = {
    /* built, installed and loaded software */
    {"no-gpu", DT_NOTE, false, no_gpu, "nothing has to be done"},
    {"no-worker-cuda", DT_ERROR, false, no_worker,
     "build it: with nvcc, cuBLASLt and NCCL found, cmake -DDT_CUDA=ON makes dittune-worker-cuda "
     "beside dittune; $DITTUNE_WORKER_CUDA names one elsewhere"},
    {"worker-cuda-failed", DT_ERROR, false, worker_failed,
     "run it by hand to see what it says; when nvidia-smi fails or hangs, too, the driver has to "
     "be "
     "loaded again"},
    {"no-driver", DT_ERROR, false, no_driver,
     "install NVIDIA's driver and load it (nvidia-smi shows the GPUs then); a container has to be "
     "started with the GPUs, as in docker run --gpus all"},
    {"old-driver", DT_ERROR, false, old_driver,
     "install a newer driver, or build with an older toolkit"},
    {"hidden-devices", DT_ERROR, false, hidden_devices,
     "unset CUDA_VISIBLE_DEVICES, or name the GPUs in it"},
    {"no-device", DT_ERROR, false, no_device,
     "see whether nvidia-smi -L lists the GPUs for this user and container, and what the kernel's "
     "log says of them (dmesg | grep NVRM)"},
    {"no-nccl", DT_WARNING, false, no_nccl,
     "build with NCCL: cmake -DDT_NCCL=ON, -DDT_CUDA_PREFIX=FOLDER where it lies elsewhere"},
    {"old-nccl", DT_WARNING, false, old_nccl,
     "let LD_LIBRARY_PATH find the NCCL it was built with, or install a newer one"},
    {"no-cudnn", DT_NOTE, false, no_cudnn,
     "build with cuDNN 9: cmake -DDT_CUDNN=ON, -DDT_CUDA_PREFIX=FOLDER where it lies elsewhere"},
    {"old-cudnn", DT_WARNING, false, old_cudnn,
     "let LD_LIBRARY_PATH find the cuDNN it was built with, or install a newer one"},
    {"other-cublaslt", DT_WARNING, false, other_blas,
     "let LD_LIBRARY_PATH find the libraries of the toolkit it was built with"},
    {"no-nvml", DT_WARNING, false, no_nvml,
     "libnvidia-ml.so.1 comes with the driver: in a container, give it the capability utility "
     "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)"},
    /* one GPU */
    {"old-device", DT_ERROR, true, old_device,
     "leave it out with CUDA_VISIBLE_DEVICES, or use the CPU"},
    {"newer-ptx", DT_WARNING, true, newer_ptx,
     "install a newer driver, or build for this GPU: cmake -DCMAKE_CUDA_ARCHITECTURES=100 for "
     "10.0"},
    {"mig", DT_WARNING, true, is_mig,
     "for plans of several ranks, nvidia-smi -i INDEX -mig 0, as root, when nobody uses it"},
    {"other-processes", DT_BUSY, true, rule_others,
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
    {"hw-slowdown", DT_WARNING, true, rule_slowdown,
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
    /* the links between GPUs and to other machines */
    {"no-peer-access", DT_WARNING, false, no_peers,
     "turn off the IOMMU and PCIe access control (ACS) on bare metal, or let the virtual machine "
     "pass peer access through: NCCL's guide, Troubleshooting, GPU Direct"},
    {"nvlink-down", DT_WARNING, true, nvlink_down,
     "see nvidia-smi nvlink -s, and the fabric manager where there are NVSwitches"},
    {"infiniband-down", DT_NOTE, false, infiniband_down,
     "for plans over several hosts see ibstat: cable, subnet manager, link state"},
    /* the machine around the GPUs */
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
    {"loaded", DT_WARNING, false, rule_loaded, "wait until the others are done, see top"},
    {"powersave", DT_WARNING, false, rule_powersave,
     "cpupower frequency-set -g performance, as root"},
};

const int dt_doctor_rule_count = sizeof dt_doctor_rules / sizeof dt_doctor_rules[0];

/* ---- variables */

static bool has_several(const struct dt_doctor_view *view)
{
    return view->count > 1;
}

#define OBSOLETE                                                                                   \
    "a name that NCCL does not read (any more)",                                                   \
        "unset it; PyTorch's variable begins with TORCH_NCCL_ since 2.2"
#define TUNED                                                                                      \
    "it fixes what is tuned here, and plans are stored for it", "unset it, and let a plan say it"

#define DEBUGGING "a setting for debugging, which makes NCCL do worse or fail"

/* Variables that are harmful, or no longer read. NCCL's: its user guide, Environment Variables;
 * those in the part "Debugging" "should not be used in production". Those called not read are not
 * among the strings of libnccl 2.28.9. PyTorch's names of its own variables begin with TORCH_ since
 * 2.2 (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp). */
const struct dt_doctor_variable dt_doctor_variables[] = {
    {"p2p-disabled", "NCCL_P2P_DISABLE", " 1 2 ", DT_WARNING, has_several,
     "NCCL may not let GPUs reach into each other: exchanges go through the host's memory",
     "unset it"},
    {"p2p-disabled", "NCCL_P2P_LEVEL", " LOC 0 ", DT_WARNING, has_several,
     "NCCL may not let GPUs reach into each other: exchanges go through the host's memory",
     "unset it"},
    {"shm-disabled", "NCCL_SHM_DISABLE", " 1 2 ", DT_WARNING, has_several,
     "where GPUs cannot reach each other, NCCL uses sockets within the machine", "unset it"},
    {"infiniband-unused", "NCCL_IB_DISABLE", " 1 2 ", DT_WARNING, dt_doctor_has_infiniband,
     "InfiniBand is here and up, but NCCL uses sockets between hosts", "unset it"},
    {"infiniband-unused", "NCCL_NET", " Socket socket SOCKET ", DT_WARNING,
     dt_doctor_has_infiniband, "InfiniBand is here and up, but NCCL uses sockets between hosts",
     "unset it, or NCCL_NET=IB"},
    {"nccl-hostid", "NCCL_HOSTID", NULL, DT_WARNING, has_several,
     "ranks of one machine may take each other for remote, and use sockets", "unset it"},
    {"nccl-algorithm", "NCCL_ALGO", NULL, DT_WARNING, NULL, DEBUGGING, "unset it"},
    {"nccl-algorithm", "NCCL_PROTO", NULL, DT_WARNING, NULL,
     "LL128 where the platform does not have it corrupts data, and all-to-all does not ask for it",
     "unset it"},
    {"nccl-debug", "NCCL_DEBUG", " INFO TRACE info trace ", DT_WARNING, NULL,
     "NCCL writes while it is measured", "NCCL_DEBUG=WARN tells of errors only"},
    {"nccl-launch-mode", "NCCL_LAUNCH_MODE", NULL, DT_WARNING, NULL, DEBUGGING, "unset it"},
    {"launch-blocking", "CUDA_LAUNCH_BLOCKING", " 1 ", DT_WARNING, NULL,
     "every kernel is waited for: nothing overlaps, and launches are what is measured", "unset it"},
    {"module-loading", "CUDA_MODULE_LOADING", " EAGER eager ", DT_WARNING, NULL,
     "every kernel of every library is loaded at each start", "unset it"},
    {"max-connections", "CUDA_DEVICE_MAX_CONNECTIONS", " 1 ", DT_WARNING, NULL,
     "all streams share one queue to the GPU: exchanges wait behind kernels", "unset it"},
    {"nccl-fixed", "NCCL_MAX_CTAS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_MIN_CTAS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_CTA_POLICY", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_MAX_NCHANNELS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_MIN_NCHANNELS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_MAX_P2P_NCHANNELS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_MIN_P2P_NCHANNELS", NULL, DT_NOTE, has_several, TUNED},
    {"nccl-fixed", "NCCL_P2P_NVL_CHUNKSIZE", NULL, DT_NOTE, has_several, TUNED},
    {"obsolete-variable", "NCCL_BLOCKING_WAIT", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_ASYNC_ERROR_HANDLING", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_DESYNC_DEBUG", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_ENABLE_TIMING", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_RINGS", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_LL_THRESHOLD", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_TREE_THRESHOLD", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_IB_CUDA_SUPPORT", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_CHECKS_DISABLE", NULL, DT_WARNING, NULL, OBSOLETE},
};

const int dt_doctor_variable_count = sizeof dt_doctor_variables / sizeof dt_doctor_variables[0];
