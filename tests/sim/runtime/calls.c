/* SPDX-License-Identifier: MIT */
/* The API of streams and events. */
#include "tests/sim/sim_int.h"

#include <stdlib.h>

struct CUevent_st {
    unsigned flags;
    struct sim_device *device;
    struct sim_point *point; /* of its last record; NULL: never recorded */
};

static cudaError_t stream_new(const char *name, cudaStream_t *out, unsigned flags, int priority)
{
    cudaError_t error = sim_enter(name);
    if (error == cudaSuccess) {
        sim_lock();
        *out = sim_stream_new(&sim_devices[sim_current()], flags, priority, false);
        sim_unlock();
    }
    return sim_leave(error);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return stream_new(__func__, out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return stream_new(__func__, out, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    return stream_new(__func__, out, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    cudaError_t error = sim_enter(__func__);
    *least = 0;
    *greatest = -5;
    return sim_leave(error);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    struct CUstream_st *stream =
        handle != NULL && handle != cudaStreamLegacy ? sim_stream_at(handle) : NULL;
    if (stream == NULL)
        error = error != cudaSuccess ? error : cudaErrorInvalidResourceHandle;
    else if (error == cudaSuccess || stream->device->sticky != cudaSuccess)
        sim_stream_close(stream);
    sim_unlock();
    return sim_leave(error);
}

/* Begins a call about a stream that is not allowed while it, or this thread, captures. */
static cudaError_t begin(const char *name, cudaStream_t handle, struct CUstream_st **stream)
{
    cudaError_t error = sim_enter(name);
    sim_lock();
    *stream = error == cudaSuccess ? sim_stream_at(handle) : NULL;
    if (error == cudaSuccess && *stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && (*stream)->capture != NULL) {
        (*stream)->capture->invalid = true;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error == cudaSuccess ? sim_unsafe() : error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    struct CUstream_st *stream;
    cudaError_t error = begin(__func__, handle, &stream);
    if (error == cudaSuccess)
        error = sim_wait_idle(stream->device, stream);
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    struct CUstream_st *stream;
    cudaError_t error = begin(__func__, handle, &stream);
    if (error == cudaSuccess && stream->device->sticky != cudaSuccess)
        error = stream->device->sticky;
    else if (error == cudaSuccess && !sim_idle(stream))
        error = cudaErrorNotReady;
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    struct sim_device *device = &sim_devices[sim_current()];
    if (error == cudaSuccess && sim_any_capture(device, false))
        error = cudaErrorStreamCaptureUnsupported;
    if (error == cudaSuccess)
        error = sim_unsafe();
    if (error == cudaSuccess)
        error = sim_wait_idle(device, NULL);
    sim_unlock();
    return sim_leave(error);
}

static cudaError_t event_new(const char *name, cudaEvent_t *out, unsigned flags)
{
    cudaError_t error = sim_enter(name);
    struct CUevent_st *event = error == cudaSuccess ? calloc(1, sizeof *event) : NULL;
    if (event != NULL) {
        event->flags = flags;
        event->device = &sim_devices[sim_current()];
        *out = event;
    }
    return sim_leave(error);
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return event_new(__func__, out, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    return event_new(__func__, out, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t error = sim_enter(__func__);
    if (event == NULL)
        return sim_leave(cudaErrorInvalidResourceHandle);
    sim_lock();
    sim_point_drop(event->point);
    sim_unlock();
    free(event);
    return sim_leave(error);
}

static cudaError_t record(cudaEvent_t event, cudaStream_t handle)
{
    struct CUstream_st *stream = sim_stream_at(handle);
    if (event == NULL || stream == NULL || stream->device != event->device)
        return cudaErrorInvalidResourceHandle;
    if (stream == stream->device->legacy && sim_any_capture(stream->device, true))
        return cudaErrorStreamCaptureImplicit;
    struct sim_point *point = NULL;
    cudaError_t error = cudaSuccess;
    if (stream->capture != NULL) {
        error = sim_capture_record(stream, &point);
    } else {
        sim_order_legacy(stream);
        point = sim_point_new();
        sim_queue(stream, sim_item_new(SIM_RECORD, point));
    }
    if (error == cudaSuccess) {
        sim_point_drop(event->point);
        event->point = point;
    }
    return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    if (error == cudaSuccess)
        error = record(event, handle);
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
    return flags == cudaEventRecordDefault ? cudaEventRecord(event, handle)
                                           : sim_leave(cudaErrorNotSupported);
}

static cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event)
{
    struct CUstream_st *stream = sim_stream_at(handle);
    if (event == NULL || stream == NULL)
        return cudaErrorInvalidResourceHandle;
    struct sim_point *point = event->point;
    if (point == NULL)
        return cudaSuccess;
    if (stream->capture != NULL || point->capture != NULL)
        return sim_capture_wait(stream, point);
    if (!point->done)
        sim_queue(stream, sim_item_new(SIM_WAIT, point));
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    cudaError_t error = flags == 0 ? sim_enter(__func__) : cudaErrorInvalidValue;
    sim_lock();
    if (error == cudaSuccess)
        error = wait_event(handle, event);
    sim_unlock();
    return sim_leave(error);
}

/* Begins a call that asks an event how far it is. */
static cudaError_t ask(const char *name, cudaEvent_t event)
{
    cudaError_t error = sim_enter(name);
    sim_lock();
    if (error == cudaSuccess && event == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess)
        error = sim_unsafe();
    if (error == cudaSuccess && event->point != NULL && event->point->capture != NULL)
        error = cudaErrorCapturedEvent;
    return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = ask(__func__, event);
    if (error == cudaSuccess && event->point != NULL && !event->point->done)
        error = cudaErrorNotReady;
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = ask(__func__, event);
    struct sim_point *point = error == cudaSuccess ? event->point : NULL;
    if (point != NULL) {
        point->refs++;
        while (!point->done && event->device->sticky == cudaSuccess)
            pthread_cond_wait(&sim_progress, sim_mutex());
        error = event->device->sticky;
        sim_point_drop(point);
    }
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    cudaError_t error = ask(__func__, start);
    if (error == cudaSuccess && (end == NULL || start->point == NULL || end->point == NULL ||
                                 ((start->flags | end->flags) & cudaEventDisableTiming) != 0))
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && end->point->capture != NULL)
        error = cudaErrorCapturedEvent;
    if (error == cudaSuccess && (!start->point->done || !end->point->done))
        error = cudaErrorNotReady;
    if (error == cudaSuccess)
        *milliseconds = (float)((double)(end->point->ns - start->point->ns) / 1e6);
    sim_unlock();
    return sim_leave(error);
}
