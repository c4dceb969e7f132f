/* SPDX-License-Identifier: MIT */
/* The API of streams and events. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdlib.h>

struct CUevent_st {
    unsigned flags;
    struct fake_device *device;
    struct fake_point *point; /* of its last record; NULL: never recorded */
};

static cudaError_t stream_new(const char *name, cudaStream_t *out, unsigned flags, int priority)
{
    cudaError_t error = fake_enter(name);
    if (error == cudaSuccess) {
        fake_lock();
        *out = fake_stream_new(&fake_devices[fake_current()], flags, priority, false);
        fake_unlock();
    }
    return fake_leave(error);
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
    cudaError_t error = fake_enter(__func__);
    *least = 0;
    *greatest = -5;
    return fake_leave(error);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    struct CUstream_st *stream =
        handle != NULL && handle != cudaStreamLegacy ? fake_stream_at(handle) : NULL;
    if (stream == NULL)
        error = error != cudaSuccess ? error : cudaErrorInvalidResourceHandle;
    else if (error == cudaSuccess || stream->device->sticky != cudaSuccess)
        fake_stream_close(stream);
    fake_unlock();
    return fake_leave(error);
}

/* Begins a call about a stream that is not allowed while it, or this thread, captures. */
static cudaError_t begin(const char *name, cudaStream_t handle, struct CUstream_st **stream)
{
    cudaError_t error = fake_enter(name);
    fake_lock();
    *stream = error == cudaSuccess ? fake_stream_at(handle) : NULL;
    if (error == cudaSuccess && *stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess && (*stream)->capture != NULL) {
        (*stream)->capture->invalid = true;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return error == cudaSuccess ? fake_unsafe() : error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    struct CUstream_st *stream;
    cudaError_t error = begin(__func__, handle, &stream);
    if (error == cudaSuccess)
        error = fake_wait_idle(stream->device, stream);
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    struct CUstream_st *stream;
    cudaError_t error = begin(__func__, handle, &stream);
    if (error == cudaSuccess && stream->device->sticky != cudaSuccess)
        error = stream->device->sticky;
    else if (error == cudaSuccess && !fake_idle(stream))
        error = cudaErrorNotReady;
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    struct fake_device *device = &fake_devices[fake_current()];
    if (error == cudaSuccess && fake_any_capture(device, false))
        error = cudaErrorStreamCaptureUnsupported;
    if (error == cudaSuccess)
        error = fake_unsafe();
    if (error == cudaSuccess)
        error = fake_wait_idle(device, NULL);
    fake_unlock();
    return fake_leave(error);
}

static cudaError_t event_new(const char *name, cudaEvent_t *out, unsigned flags)
{
    cudaError_t error = fake_enter(name);
    struct CUevent_st *event = error == cudaSuccess ? calloc(1, sizeof *event) : NULL;
    if (event != NULL) {
        event->flags = flags;
        event->device = &fake_devices[fake_current()];
        *out = event;
    }
    return fake_leave(error);
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
    cudaError_t error = fake_enter(__func__);
    if (event == NULL)
        return fake_leave(cudaErrorInvalidResourceHandle);
    fake_lock();
    fake_point_drop(event->point);
    fake_unlock();
    free(event);
    return fake_leave(error);
}

static cudaError_t record(cudaEvent_t event, cudaStream_t handle)
{
    struct CUstream_st *stream = fake_stream_at(handle);
    if (event == NULL || stream == NULL || stream->device != event->device)
        return cudaErrorInvalidResourceHandle;
    if (stream == stream->device->legacy && fake_any_capture(stream->device, true))
        return cudaErrorStreamCaptureImplicit;
    struct fake_point *point = NULL;
    cudaError_t error = cudaSuccess;
    if (stream->capture != NULL) {
        error = fake_capture_record(stream, &point);
    } else {
        fake_order_legacy(stream);
        point = fake_point_new();
        fake_queue(stream, fake_item_new(FAKE_RECORD, point));
    }
    if (error == cudaSuccess) {
        fake_point_drop(event->point);
        event->point = point;
    }
    return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = record(event, handle);
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
    return flags == cudaEventRecordDefault ? cudaEventRecord(event, handle)
                                           : fake_leave(cudaErrorNotSupported);
}

static cudaError_t wait_event(cudaStream_t handle, cudaEvent_t event)
{
    struct CUstream_st *stream = fake_stream_at(handle);
    if (event == NULL || stream == NULL)
        return cudaErrorInvalidResourceHandle;
    struct fake_point *point = event->point;
    if (point == NULL)
        return cudaSuccess;
    if (stream->capture != NULL || point->capture != NULL)
        return fake_capture_wait(stream, point);
    if (!point->done)
        fake_queue(stream, fake_item_new(FAKE_WAIT, point));
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    cudaError_t error = flags == 0 ? fake_enter(__func__) : cudaErrorInvalidValue;
    fake_lock();
    if (error == cudaSuccess)
        error = wait_event(handle, event);
    fake_unlock();
    return fake_leave(error);
}

/* Begins a call that asks an event how far it is. */
static cudaError_t ask(const char *name, cudaEvent_t event)
{
    cudaError_t error = fake_enter(name);
    fake_lock();
    if (error == cudaSuccess && event == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess)
        error = fake_unsafe();
    if (error == cudaSuccess && event->point != NULL && event->point->capture != NULL)
        error = cudaErrorCapturedEvent;
    return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t error = ask(__func__, event);
    if (error == cudaSuccess && event->point != NULL && !event->point->done)
        error = cudaErrorNotReady;
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    cudaError_t error = ask(__func__, event);
    struct fake_point *point = error == cudaSuccess ? event->point : NULL;
    if (point != NULL) {
        point->refs++;
        while (!point->done && event->device->sticky == cudaSuccess)
            pthread_cond_wait(&fake_progress, fake_mutex());
        error = event->device->sticky;
        fake_point_drop(point);
    }
    fake_unlock();
    return fake_leave(error);
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
    fake_unlock();
    return fake_leave(error);
}
