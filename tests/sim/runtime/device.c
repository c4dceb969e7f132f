/* SPDX-License-Identifier: MIT */
/* Devices, what every call begins and ends with, and errors. */
#include "tests/sim/sim_int.h"

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

pthread_mutex_t *sim_mutex(void)
{
    return &mutex;
}

void sim_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child of a process that has used its devices has none. */
static void in_child(void)
{
    forked = started;
}

static void start(void)
{
    static bool watched;
    if (started)
        return;
    sim_settings_read(given ? given_text : getenv("DITTUNE_SIM"), &sim_settings);
    sim_box = sim_box_open(sim_settings.box);
    sim_devices_init();
    if (!watched)
        pthread_atfork(NULL, NULL, in_child);
    watched = true;
    started = true;
}

/* Waits for streams only where there is one: a hung one stays, as its process must go. */
void dt_sim_set(const char *settings)
{
    sim_lock();
    given = settings != NULL;
    snprintf(given_text, sizeof given_text, "%s", given ? settings : "");
    for (int i = 0; started && i < sim_settings.devices; i++) {
        sim_wait_idle(&sim_devices[i], NULL);
        while (sim_devices[i].streams != NULL)
            sim_stream_close(sim_devices[i].streams);
    }
    if (started) {
        sim_devices_fini();
        sim_box_close(sim_box);
    }
    started = false;
    last = cudaSuccess;
    current = 0;
    sim_complaints_clear();
    sim_posted_clear();
    start();
    sim_unlock();
}

bool sim_driver(void)
{
    sim_lock();
    start();
    sim_unlock();
    return sim_settings.driver > 0;
}

void sim_callback(bool begins)
{
    in_callback = begins;
}

int sim_current(void)
{
    return current;
}

void sim_fail(struct sim_device *device, cudaError_t error)
{
    if (device->sticky == cudaSuccess)
        device->sticky = error;
    pthread_cond_broadcast(&sim_progress);
}

/* What only asks what a device is makes no context on it, so that a process that looks does not take memory. */
static bool only_asks(const char *name)
{
    static const char *const asking[] = {"cudaGetDevice", "cudaDeviceGetAttribute",
                                         "cudaDeviceGetPCIBusId", "cudaDeviceCanAccessPeer"};
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (strncmp(name, asking[i], strlen(asking[i])) == 0)
            return true;
    return false;
}

cudaError_t sim_enter(const char *name)
{
    if (in_callback)
        return cudaErrorNotPermitted;
    sim_lock();
    cudaError_t error = cudaSuccess;
    start();
    if (forked)
        error = cudaErrorInitializationError;
    else if (sim_settings.driver < CUDART_VERSION / 1000 * 1000)
        error = cudaErrorInsufficientDriver;
    else if (sim_settings.devices == 0)
        error = cudaErrorNoDevice;
    const struct sim_fault *fault = error == cudaSuccess ? sim_fault(name, current) : NULL;
    if (error == cudaSuccess) {
        struct sim_device *device = &sim_devices[current];
        if (!device->context && !only_asks(name))
            sim_context(device);
        error = device->sticky;
    }
    sim_unlock();
    if (fault != NULL && fault->ms > 0)
        sim_sleep_ms(fault->ms);
    if (fault != NULL && strcmp(fault->act, "hang") == 0)
        for (;;)
            pause();
    return error == cudaSuccess && fault != NULL ? (cudaError_t)fault->code : error;
}

cudaError_t sim_leave(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    sim_lock();
    cudaError_t sticky = started && !forked ? sim_devices[current].sticky : cudaSuccess;
    sim_unlock();
    return sticky != cudaSuccess ? sticky : last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last = cudaSuccess;
    return error;
}

/* Of these no device is needed. */
cudaError_t cudaGetDeviceCount(int *count)
{
    if (!sim_driver()) {
        *count = 0;
        return sim_leave(cudaErrorInsufficientDriver);
    }
    *count = sim_settings.devices;
    if (sim_settings.driver < CUDART_VERSION / 1000 * 1000)
        return sim_leave(cudaErrorInsufficientDriver);
    return sim_leave(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = sim_driver() ? sim_settings.driver : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (!sim_driver() || sim_settings.devices == 0)
        return sim_leave(sim_enter("cudaSetDevice"));
    if (device < 0 || device >= sim_settings.devices)
        return sim_leave(cudaErrorInvalidDevice);
    current = device;
    return sim_leave(sim_enter(__func__));
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags;
    (void)flags;
    return device >= 0 && device < sim_settings.devices ? sim_leave(sim_enter(__func__))
                                                        : sim_leave(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t error = sim_enter(__func__);
    *device = current;
    return sim_leave(error);
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return sim_leave(sim_enter(__func__));
}

cudaError_t cudaDeviceReset(void)
{
    return sim_leave(sim_enter(__func__));
}

static cudaError_t describe(struct cudaDeviceProp *out, int device)
{
    if (device < 0 || device >= sim_settings.devices)
        return cudaErrorInvalidDevice;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", sim_settings.name);
    memset(out->uuid.bytes, 0x50 + device, sizeof out->uuid.bytes);
    out->totalGlobalMem = (size_t)sim_settings.memory;
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
    out->major = sim_settings.major;
    out->minor = sim_settings.minor;
    out->multiProcessorCount = sim_settings.multiprocessors;
    out->concurrentKernels = out->unifiedAddressing = out->canMapHostMemory = out->ECCEnabled = 1;
    out->asyncEngineCount = 3;
    out->pciBusID = 0x18 + device;
    out->memoryBusWidth = 6144;
    out->l2CacheSize = 62914560;
    out->maxThreadsPerMultiProcessor = 2048;
    out->streamPrioritiesSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    cudaError_t error = sim_enter(__func__);
    return sim_leave(error == cudaSuccess ? describe(out, device) : error);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = sim_enter(__func__);
    struct cudaDeviceProp all;
    if (error == cudaSuccess)
        error = describe(&all, device);
    if (error != cudaSuccess)
        return sim_leave(error);
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
    sim_complain("cudaDeviceGetAttribute: attribute %d is not simulated", (int)attribute);
    return sim_leave(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    cudaError_t error = sim_enter(__func__);
    if (error == cudaSuccess && (device < 0 || device >= sim_settings.devices))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        snprintf(text, (size_t)length, "0000:%02X:00.0", 0x18 + device);
    return sim_leave(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    cudaError_t error = sim_enter(__func__);
    if (error == cudaSuccess &&
        (device < 0 || device >= sim_settings.devices || peer < 0 || peer >= sim_settings.devices))
        error = cudaErrorInvalidDevice;
    if (error == cudaSuccess)
        *can = device != peer && sim_settings.peers;
    return sim_leave(error);
}
