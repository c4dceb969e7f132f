/* SPDX-License-Identifier: MIT */
/* A device is one non-blocking stream plus memory allocated before anything runs on it.
 *
 * Kernels are loaded at first use (CUDA_MODULE_LOADING stays lazy: loading all kernels of cuBLASLt and cuDNN takes
 * seconds and hundreds of megabytes). So the first step of a plan runs directly and only later ones are captured. */
#include "kernels/cuda/cuda_int.h"

#ifdef DT_HAVE_CUDNN
#include "kernels/cuda/cudnn.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct dt_cuda *dt_cuda_of(struct dt_device *device)
{
    struct dt_cuda *cuda = (struct dt_cuda *)(void *)device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code != cudaSuccess)
        dt_cuda_keep(cuda, (int)code, "choose the device");
    return cuda;
}

struct dt_cuda *dt_cuda_enter(struct dt_device *device)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    return cuda->error.status == DT_OK ? cuda : NULL;
}

dt_status dt_cuda_ready(struct dt_cuda *cuda)
{
    return dt_error_raise(&cuda->error);
}

/* Errors after which the process must be relaunched according to driver_types.h, and memory errors. */
static bool is_sticky(cudaError_t code)
{
    static const cudaError_t sticky[] = {
        cudaErrorECCUncorrectable,
        cudaErrorNvlinkUncorrectable,
        cudaErrorIllegalAddress,
        cudaErrorLaunchTimeout,
        cudaErrorAssert,
        cudaErrorHardwareStackError,
        cudaErrorIllegalInstruction,
        cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace,
        cudaErrorInvalidPc,
        cudaErrorLaunchFailure,
        cudaErrorMpsClientTerminated,
        cudaErrorExternalDevice,
        cudaErrorUnknown,
#if CUDART_VERSION >= 12080 /* older toolkits do not know them */
        cudaErrorContained,
        cudaErrorTensorMemoryLeak,
#endif
    };
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++)
        if (sticky[i] == code)
            return true;
    return false;
}

static dt_status failed(struct dt_cuda *cuda, cudaError_t code, const char *what)
{
    const char *name = cudaGetErrorName(code), *why = cudaGetErrorString(code);
    (void)cudaGetLastError(); /* clears the stored error, unless it is sticky */
    if (code == cudaErrorMemoryAllocation)
        return dt_fail(DT_ENOMEM, "GPU %d has not the memory to %s", cuda->base.index, what);
    if (!is_sticky(code))
        return dt_fail(DT_ELIB, "GPU %d could not %s: %s (%s)", cuda->base.index, what, why, name);
    cuda->lost = true;
    return dt_error_keep(&cuda->error,
                         dt_fail(DT_ELIB, "the device is lost: GPU %d could not %s: %s (%s)",
                                 cuda->base.index, what, why, name));
}

dt_status dt_cuda_check(struct dt_cuda *cuda, int code, const char *what)
{
    return code == (int)cudaSuccess ? DT_OK : failed(cuda, (cudaError_t)code, what);
}

void dt_cuda_keep(struct dt_cuda *cuda, int code, const char *what)
{
    cuda->last = what;
    if (code != (int)cudaSuccess)
        dt_error_keep(&cuda->error, failed(cuda, (cudaError_t)code, what));
}

static dt_status make_slots(struct dt_cuda *cuda)
{
    DT_CUDA(cuda,
            cudaHostAlloc((void **)(void *)&cuda->pinned,
                          (size_t)(DT_CUDA_SLOTS * DT_CUDA_SLOT_BYTES), cudaHostAllocDefault),
            "reserve pinned host memory");
    for (int i = 0; i < DT_CUDA_SLOTS; i++)
        DT_CUDA(cuda, cudaEventCreateWithFlags(&cuda->slot_done[i], cudaEventDisableTiming),
                "make an event");
    return DT_OK;
}

static dt_status make(struct dt_cuda *cuda)
{
    struct cudaDeviceProp about;
    DT_CUDA(cuda, cudaSetDevice(cuda->base.index), "be opened");
    DT_CUDA(cuda, cudaGetDeviceProperties(&about, cuda->base.index), "say what it is");
    DT_CUDA(cuda, cudaDeviceGetPCIBusId(cuda->pci, sizeof cuda->pci, cuda->base.index),
            "say where it is");
    snprintf(cuda->model, sizeof cuda->model, "%s", about.name);
    cuda->l2_bytes = about.l2CacheSize;
    cuda->memory_bytes = (int64_t)about.totalGlobalMem;
    DT_CUDA(cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), "make a stream");
    DT_CUDA(cuda, cudaMalloc((void **)(void *)&cuda->workspace, (size_t)DT_CUDA_WORKSPACE_BYTES),
            "reserve its work space");
    DT_TRY(make_slots(cuda));
    DT_TRY(dt_cuda_biases_new(cuda));
    cublasStatus_t code = cublasLtCreate(&cuda->lt);
    if (code != CUBLAS_STATUS_SUCCESS)
        return dt_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? DT_ENOMEM : DT_ELIB,
                       "cuBLASLt does not start on GPU %d: %s", cuda->base.index,
                       cublasLtGetStatusName(code));
    return DT_OK;
}

dt_status dt_cuda_open(int index, struct dt_device **device)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || index < 0 || index >= count) {
        (void)cudaGetLastError();
        return dt_fail(DT_EUNSUP, "there is no GPU %d: %s", index,
                       code != cudaSuccess ? cudaGetErrorString(code)
                       : count == 0        ? "none was found"
                                           : "they are numbered from 0, and fewer");
    }
    struct dt_cuda *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a device");
    made->base = (struct dt_device){&dt_compute_cuda, index};
    made->last = "nothing";
    (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* naps of waits end 50 us late otherwise */
    dt_status status = make(made);
    if (status != DT_OK) {
        dt_cuda_close(&made->base);
        return status;
    }
    *device = &made->base;
    return DT_OK;
}

static void free_all(struct dt_cuda *cuda)
{
#ifdef DT_HAVE_CUDNN
    dt_cuda_sdpa_close(cuda->sdpa);
#endif
    if (cuda->lt != NULL)
        (void)cublasLtDestroy(cuda->lt);
    for (int i = 0; i < cuda->mark_count; i++)
        (void)cudaEventDestroy(cuda->marks[i]);
    for (int i = 0; i < DT_CUDA_SLOTS; i++)
        if (cuda->slot_done[i] != NULL)
            (void)cudaEventDestroy(cuda->slot_done[i]);
    (void)cudaFree(cuda->workspace);
    (void)cudaFreeHost(cuda->pinned);
    if (cuda->stream != NULL)
        (void)cudaStreamDestroy(cuda->stream);
    (void)cudaGetLastError();
}

/* On a lost device the driver frees the memory at the end of the process. */
void dt_cuda_close(struct dt_device *device)
{
    if (device == NULL)
        return;
    struct dt_cuda *cuda = (struct dt_cuda *)(void *)device;
    (void)cudaSetDevice(device->index);
    if (cuda->stream == NULL || dt_cuda_quiet(cuda))
        free_all(cuda);
    dt_cuda_biases_free(cuda);
    dt_cuda_gemm_forget(cuda);
    free(cuda->marks);
    free(cuda);
}

const char *dt_cuda_model(struct dt_device *device)
{
    return ((struct dt_cuda *)(void *)device)->model;
}

dt_status dt_cuda_memory(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    size_t there = 0, total = 0;
    DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaMemGetInfo(&there, &total), "tell its memory");
    *free_bytes = (int64_t)there;
    *total_bytes = (int64_t)total;
    return DT_OK;
}

void dt_cuda_threads(struct dt_device *device, int count)
{
    (void)device;
    (void)count;
}
