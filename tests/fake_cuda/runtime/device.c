/* SPDX-License-Identifier: MIT */
/* Devices, the prologue and epilogue of every call, and errors. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool started, forked, given;
static char given_text[1024];
static _Thread_local int current;
static _Thread_local cudaError_t last;
static _Thread_local bool in_callback; /* of cudaLaunchHostFunc: the API is forbidden there */

pthread_mutex_t *fake_mutex(void)
{
    return &mutex;
}

void fake_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child of a process that has used its devices has none. It is forked with the mutex held by who
 * forks: no stream's thread, which the child has not, can hold it for ever. */
static void in_child(void)
{
    forked = started;
    fake_unlock();
}

static void start(void)
{
    static bool watched;
    if (started)
        return;
    fake_settings_read(given ? given_text : getenv("DITTUNE_FAKE_CUDA"), &fake_settings);
    if (fake_settings.driver < 0)
        fake_settings.driver = CUDART_VERSION;
    fake_box = fake_box_open(fake_settings.box);
    fake_devices_init();
    if (!watched)
        pthread_atfork(fake_lock, fake_unlock, in_child);
    watched = true;
    started = true;
}

/* Waits for streams only where there is one: a hung one stays, as its process must go. */
void dt_fake_cuda_set(const char *settings)
{
    fake_lock();
    given = settings != NULL;
    snprintf(given_text, sizeof given_text, "%s", given ? settings : "");
    for (int i = 0; started && i < fake_settings.devices; i++) {
        fake_wait_idle(&fake_devices[i], NULL);
        while (fake_devices[i].streams != NULL)
            fake_stream_close(fake_devices[i].streams);
    }
    if (started) {
        fake_devices_fini();
        fake_box_close(fake_box);
    }
    started = false;
    last = cudaSuccess;
    current = 0;
    fake_complaints_clear();
    fake_posted_clear();
    fake_products_forget();
    start();
    fake_unlock();
}

bool fake_driver(void)
{
    fake_lock();
    start();
    fake_unlock();
    return fake_settings.driver > 0;
}

void fake_callback(bool begins)
{
    in_callback = begins;
}

int fake_current(void)
{
    return current;
}

void fake_fail(struct fake_device *device, cudaError_t error)
{
    if (device->sticky == cudaSuccess)
        device->sticky = error;
    pthread_cond_broadcast(&fake_progress);
}

/* Queries of a device's properties create no context, so they take no memory. */
static bool only_asks(const char *name)
{
    static const char *const asking[] = {"cudaGetDevice", "cudaDeviceGetAttribute",
                                         "cudaDeviceGetPCIBusId", "cudaDeviceCanAccessPeer"};
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (strncmp(name, asking[i], strlen(asking[i])) == 0)
            return true;
    return false;
}

cudaError_t fake_enter(const char *name)
{
    if (in_callback)
        return cudaErrorNotPermitted;
    fake_lock();
    cudaError_t error = cudaSuccess;
    start();
    if (forked)
        error = cudaErrorInitializationError;
    else if (fake_settings.driver < CUDART_VERSION / 1000 * 1000)
        error = cudaErrorInsufficientDriver;
    else if (fake_settings.devices == 0)
        error = cudaErrorNoDevice;
    const struct fake_fault *fault = error == cudaSuccess ? fake_fault(name, current) : NULL;
    if (error == cudaSuccess) {
        struct fake_device *device = &fake_devices[current];
        if (!device->context && !only_asks(name))
            fake_context(device);
        error = device->sticky;
    }
    fake_unlock();
    if (fault != NULL && fault->ms > 0)
        fake_sleep_ms(fault->ms);
    if (fault != NULL && strcmp(fault->act, "hang") == 0)
        for (;;)
            pause();
    return error == cudaSuccess && fault != NULL ? (cudaError_t)fault->code : error;
}

cudaError_t fake_leave(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    fake_lock();
    cudaError_t sticky = started && !forked ? fake_devices[current].sticky : cudaSuccess;
    fake_unlock();
    return sticky != cudaSuccess ? sticky : last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last = cudaSuccess;
    return error;
}

/* The following calls need no device. */
cudaError_t cudaGetDeviceCount(int *count)
{
    if (!fake_driver()) {
        *count = 0;
        return fake_leave(cudaErrorInsufficientDriver);
    }
    *count = fake_settings.devices;
    if (fake_settings.driver < CUDART_VERSION / 1000 * 1000)
        return fake_leave(cudaErrorInsufficientDriver);
    return fake_leave(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake_driver() ? fake_settings.driver : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (!fake_driver() || fake_settings.devices == 0)
        return fake_leave(fake_enter("cudaSetDevice"));
    if (device < 0 || device >= fake_settings.devices)
        return fake_leave(cudaErrorInvalidDevice);
    current = device;
    return fake_leave(fake_enter(__func__));
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    (void)flags;
    return device >= 0 && device < fake_settings.devices ? fake_leave(fake_enter(__func__))
                                                         : fake_leave(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t error = fake_enter(__func__);
    *device = current;
    return fake_leave(error);
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return fake_leave(fake_enter(__func__));
}

cudaError_t cudaDeviceReset(void)
{
    return fake_leave(fake_enter(__func__));
}

static cudaError_t describe(struct cudaDeviceProp *out, int device)
{
    if (device < 0 || device >= fake_settings.devices)
        return cudaErrorInvalidDevice;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", fake_settings.name);
    memset(out->uuid.bytes, 0x50 + device, sizeof out->uuid.bytes);
    out->totalGlobalMem = (size_t)fake_settings.memory;
    out->sharedMemPerBlock = 49152;
    out->sharedMemPerBlockOptin = 232448;
    out->sharedMemPerMultiprocessor = 233472;
    out->regsPerBlock = out->regsPerMultiprocessor = 65536;
    out->warpSize = 32;
    out->memPitch = 2147483647;
    out->maxThreadsPerBlock = 1024;
    out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
    out->maxThreadsDim[2] = 64;
    out->maxGridSize[0] = 2147483647;
    out->maxGridSize[1] = out->maxGridSize[2] = 65535;
    out->major = fake_settings.major;
    out->minor = fake_settings.minor;
    out->multiProcessorCount = fake_settings.multiprocessors;
    out->concurrentKernels = out->unifiedAddressing = out->canMapHostMemory = out->ECCEnabled = 1;
    out->asyncEngineCount = 3;
    out->pciBusID = 0x18 + device;
    out->memoryBusWidth = 6144;
    out->l2CacheSize =
        1 << 20; /* an H200 has 60 times that, which would be filled for each product */
    out->maxThreadsPerMultiProcessor = 2048;
    out->streamPrioritiesSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    cudaError_t error = fake_enter(__func__);
    return fake_leave(error == cudaSuccess ? describe(out, device) : error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = fake_enter(__func__);
    struct cudaDeviceProp all;
    if (error == cudaSuccess)
        error = describe(&all, device);
    if (error != cudaSuccess)
        return fake_leave(error);
    const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } rows[] = {
        {cudaDevAttrMultiProcessorCount, all.multiProcessorCount},
        {cudaDevAttrComputeCapabilityMajor, all.major},
        {cudaDevAttrComputeCapabilityMinor, all.minor},
        {cudaDevAttrL2CacheSize, all.l2CacheSize},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)all.sharedMemPerBlockOptin},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)all.sharedMemPerBlock},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (int)all.sharedMemPerMultiprocessor},
        {cudaDevAttrMaxThreadsPerMultiProcessor, all.maxThreadsPerMultiProcessor},
        {cudaDevAttrMaxThreadsPerBlock, all.maxThreadsPerBlock},
        {cudaDevAttrMaxRegistersPerMultiprocessor, all.regsPerMultiprocessor},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrClockRate, 1980000},
        {cudaDevAttrMemoryClockRate, 3201000},
        {cudaDevAttrGlobalMemoryBusWidth, all.memoryBusWidth},
        {cudaDevAttrEccEnabled, 1},
        {cudaDevAttrPciBusId, all.pciBusID},
        {cudaDevAttrPciDeviceId, 0},
        {cudaDevAttrPciDomainId, 0},
        {cudaDevAttrAsyncEngineCount, all.asyncEngineCount},
        {cudaDevAttrConcurrentKernels, 1},
        {cudaDevAttrUnifiedAddressing, 1},
        {cudaDevAttrMemoryPoolsSupported, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].attribute == attribute) {
            *value = rows[i].value;
            return cudaSuccess;
        }
    fake_complain("cudaDeviceGetAttribute: attribute %d is not in the fake", (int)attribute);
    return fake_leave(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    cudaError_t error = fake_enter(__func__);
    if (error == cudaSuccess && (device < 0 || device >= fake_settings.devices))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        snprintf(text, (size_t)length, "0000:%02X:00.0", 0x18 + device);
    return fake_leave(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t error = fake_enter(__func__);
    if (error == cudaSuccess && (device < 0 || device >= fake_settings.devices || peer < 0 ||
                                 peer >= fake_settings.devices))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        *can = device != peer && fake_settings.peers;
    return fake_leave(error);
}
