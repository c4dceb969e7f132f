/* SPDX-License-Identifier: MIT */
/* Rules about built, installed and loaded software. */
#include "tuner/machine/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

/* First release in which all-to-all is an operation of its own (NVIDIA/nccl, release 2.28). */
#define NCCL_MAJOR 2
#define NCCL_MINOR 28
/* cuDNN's attention operation (NVIDIA/cudnn-frontend, sdpa_support_surface.h). */
#define CUDNN_LEAST 91301

static int64_t on_pci(const struct dt_doctor_view *view)
{
    return dt_doctor_int(view->host, "nvidia_on_pci", 0);
}

static bool asked(const struct dt_doctor_view *view)
{
    return dt_json_text_at(view->worker, "cause")[0] == '\0';
}

/* An empty list, or one that begins with none, hides all of them (CUDA C++ Programming Guide, "CUDA Environment Variables"). */
static bool hidden(const struct dt_doctor_view *view)
{
    const char *visible = dt_doctor_environment(view, "CUDA_VISIBLE_DEVICES");
    return visible != NULL && (visible[0] == '\0' || strncmp(visible, "-1", 2) == 0);
}

static bool no_gpu(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (on_pci(view) > 0 || view->count > 0 ||
        !(asked(view) || dt_doctor_is(view->worker, "missing", true)))
        return false;
    dt_text_add(what, "no GPU of NVIDIA is in this machine: plans are tuned on the CPU");
    return true;
}

static bool no_worker(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (on_pci(view) == 0 || !dt_doctor_is(view->worker, "missing", true))
        return false;
    dt_text_add(what, "%lld GPU%s here, but %s", (long long)on_pci(view),
                on_pci(view) > 1 ? "s are" : " is", dt_json_text_at(view->worker, "cause"));
    return true;
}

static bool worker_failed(const struct dt_doctor_view *view, const json_t *device,
                          struct dt_text *what)
{
    (void)device;
    if (asked(view) || dt_doctor_is(view->worker, "missing", true))
        return false;
    dt_text_add(what, "%s --devices %s", dt_json_text_at(view->worker, "program"),
                dt_json_text_at(view->worker, "cause"));
    return true;
}

static bool no_driver(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (!asked(view) || on_pci(view) == 0 || view->count > 0 ||
        dt_doctor_int(view->devices, "cuda_driver", 0) != 0)
        return false;
    dt_text_add(what, "%lld GPU%s on the PCI bus, but no driver is loaded here",
                (long long)on_pci(view), on_pci(view) > 1 ? "s are" : " is");
    return true;
}

/* NVIDIA, CUDA Compatibility, "Minor Version Compatibility", table 1: the least driver of a major version of the toolkit. */
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

static bool old_driver(const struct dt_doctor_view *view, const json_t *device,
                       struct dt_text *what)
{
    (void)device;
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

static bool hidden_devices(const struct dt_doctor_view *view, const json_t *device,
                           struct dt_text *what)
{
    (void)device;
    if (view->count > 0 || !hidden(view) || on_pci(view) == 0 || is_driver_old(view))
        return false;
    dt_text_add(what, "CUDA_VISIBLE_DEVICES=\"%s\" hides every GPU",
                dt_doctor_environment(view, "CUDA_VISIBLE_DEVICES"));
    return true;
}

static bool no_device(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (!asked(view) || on_pci(view) == 0 || view->count > 0 || hidden(view) ||
        is_driver_old(view) || dt_doctor_int(view->devices, "cuda_driver", 0) == 0)
        return false;
    dt_text_add(what, "there is a driver, but no GPU for this process: %s",
                dt_json_text_at(view->devices, "why"));
    return true;
}

static bool no_nccl(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (view->count < 2 || dt_json_text_at(view->devices, "nccl")[0] != '\0')
        return false;
    dt_text_add(what, "%lld GPUs, but NCCL was not built in: only plans of one rank run on them",
                (long long)view->count);
    return true;
}

static bool old_nccl(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int major = 0, minor = 0;
    const char *version = dt_json_text_at(view->devices, "nccl");
    (void)device;
    if (sscanf(version, "%d.%d", &major, &minor) != 2 || major > NCCL_MAJOR ||
        (major == NCCL_MAJOR && minor >= NCCL_MINOR))
        return false;
    dt_text_add(what, "NCCL %s is loaded; this is made for %d.%d or later", version, NCCL_MAJOR,
                NCCL_MINOR);
    return true;
}

static bool no_cudnn(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (view->count == 0 || dt_json_text_at(view->devices, "cudnn")[0] != '\0')
        return false;
    dt_text_add(what, "cuDNN was not built in: its attention is not among the choices");
    return true;
}

static bool old_cudnn(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int major = 0, minor = 0, patch = 0;
    const char *version = dt_json_text_at(view->devices, "cudnn");
    (void)device;
    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) < 2 || major > 9 ||
        major * 10000 + minor * 100 + patch >= CUDNN_LEAST)
        return false;
    dt_text_add(what, "cuDNN %s is loaded; its attention needs 9.13.1", version);
    return true;
}

static bool other_blas(const struct dt_doctor_view *view, const json_t *device,
                       struct dt_text *what)
{
    int major = 0;
    int64_t cuda = dt_doctor_int(view->devices, "cuda", 0) / 1000;
    const char *version = dt_json_text_at(view->devices, "cublaslt");
    (void)device;
    if (sscanf(version, "%d.", &major) != 1 || cuda == 0 || major == cuda)
        return false;
    dt_text_add(what, "cuBLASLt %s is loaded into a program of CUDA %lld", version,
                (long long)cuda);
    return true;
}

static bool no_nvml(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    (void)device;
    if (view->count == 0 || !dt_doctor_is(view->devices, "nvml", false))
        return false;
    dt_text_add(what, "NVML cannot be opened: clocks, temperature and other programs are not seen");
    return true;
}

static const struct dt_doctor_rule rows[] = {
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
};

const struct dt_doctor_rules dt_doctor_software = {rows, sizeof rows / sizeof rows[0]};
