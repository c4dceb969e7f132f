/* SPDX-License-Identifier: MIT */
/* Streams: each a thread with a queue. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_cond_t fake_progress = PTHREAD_COND_INITIALIZER;

_Atomic int64_t fake_planted_ns;

int64_t fake_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + fake_planted_ns;
}

struct fake_point *fake_point_new(void)
{
    struct fake_point *point = calloc(1, sizeof *point);
    if (point == NULL)
        abort();
    point->refs = 1;
    return point;
}

void fake_point_drop(struct fake_point *point)
{
    if (point == NULL || --point->refs > 0)
        return;
    if (point->capture != NULL)
        fake_capture_drop(point->capture);
    free(point);
}

struct fake_item *fake_item_new(enum fake_kind kind, struct fake_point *point)
{
    struct fake_item *item = calloc(1, sizeof *item);
    if (item == NULL)
        abort();
    item->kind = kind;
    item->point = point;
    if (point != NULL)
        point->refs++;
    return item;
}

void fake_item_free(struct fake_item *item)
{
    if (!item->borrowed) {
        if (item->task.drop != NULL)
            item->task.drop(item->data);
        free(item->data);
    }
    fake_point_drop(item->point);
    free(item);
}

/* splitmix64 (Steele, Lea and Flood 2014): one item in four is late by up to
 * fake_settings.delay_us. */
void fake_random_delay(uint64_t *random)
{
    uint64_t z = (*random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (fake_settings.delay_us <= 0 || (z & 3) != 0)
        return;
    struct timespec time = {0, (long)(z >> 2) % (fake_settings.delay_us * 1000L)};
    time.tv_nsec = time.tv_nsec < 0 ? -time.tv_nsec : time.tv_nsec;
    nanosleep(&time, NULL);
}

static cudaError_t planted(struct CUstream_st *stream)
{
    const struct fake_fault *fault = fake_fault("launch", stream->device->index);
    if (fault == NULL)
        return cudaSuccess;
    if (strcmp(fault->act, "delay") == 0)
        fake_sleep_ms(fault->ms);
    else if (strcmp(fault->act, "hang") == 0)
        while (!stream->closing)
            fake_sleep_ms(10);
    else
        return (cudaError_t)(fault->code != 0 ? fault->code : cudaErrorIllegalAddress);
    return cudaSuccess;
}

/* Does what an item says; called and left with the mutex held. */
cudaError_t fake_run(struct CUstream_st *stream, struct fake_item *item)
{
    struct fake_device *device = stream->device;
    cudaError_t error = cudaSuccess;
    if (item->kind == FAKE_RECORD) {
        item->point->ns = fake_clock_ns();
        item->point->done = true;
        pthread_cond_broadcast(&fake_progress);
    } else if (item->kind == FAKE_WAIT) {
        while (!item->point->done && device->sticky == cudaSuccess && !stream->closing)
            pthread_cond_wait(&fake_progress, fake_mutex());
    } else if (device->sticky == cudaSuccess) {
        device->launches += item->kind == FAKE_KERNEL;
        fake_unlock();
        fake_random_delay(&stream->random);
        if (item->kind == FAKE_KERNEL)
            error = planted(stream);
        if (error == cudaSuccess)
            error = item->task.run(stream, item->data);
        fake_lock();
    }
    if (error != cudaSuccess)
        fake_fail(device, error);
    return error;
}

static void *serve(void *arg)
{
    struct CUstream_st *stream = arg;
    fake_lock();
    for (;;) {
        while (stream->first == NULL && !stream->closing)
            pthread_cond_wait(&stream->cond, fake_mutex());
        struct fake_item *item = stream->first;
        if (item == NULL)
            break;
        stream->first = item->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        fake_run(stream, item);
        fake_item_free(item);
        stream->done++;
        if (fake_idle(stream))
            pthread_cond_broadcast(&fake_progress);
    }
    fake_unlock();
    fake_compute_close(stream);
    pthread_cond_destroy(&stream->cond);
    free(stream);
    return NULL;
}

struct CUstream_st *fake_stream_new(struct fake_device *device, unsigned flags, int priority,
                                    bool internal)
{
    static uint64_t number;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    pthread_t thread;
    if (stream == NULL)
        abort();
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    stream->internal = internal;
    stream->last = &stream->first;
    stream->random = fake_settings.seed * 1000003 + number++;
    pthread_cond_init(&stream->cond, NULL);
    if (!internal) {
        stream->next = device->streams;
        device->streams = stream;
    }
    if (pthread_create(&thread, NULL, serve, stream) != 0)
        abort();
    pthread_detach(thread);
    return stream;
}

/* The thread ends when all that was queued is done, and frees the stream. */
void fake_stream_close(struct CUstream_st *stream)
{
    struct CUstream_st **at = &stream->device->streams;
    while (*at != NULL && *at != stream)
        at = &(*at)->next;
    if (*at != NULL)
        *at = stream->next;
    if (stream->device->legacy == stream)
        stream->device->legacy = NULL;
    stream->closing = true;
    pthread_cond_signal(&stream->cond);
    pthread_cond_broadcast(&fake_progress);
}

void fake_queue(struct CUstream_st *stream, struct fake_item *item)
{
    item->next = NULL;
    *stream->last = item;
    stream->last = &item->next;
    stream->put++;
    pthread_cond_signal(&stream->cond);
}

bool fake_idle(const struct CUstream_st *stream)
{
    return stream->done == stream->put;
}

struct CUstream_st *fake_stream_at(cudaStream_t handle)
{
    struct fake_device *device = &fake_devices[fake_current()];
    if (handle == NULL || handle == cudaStreamLegacy) {
        if (device->legacy == NULL)
            device->legacy = fake_stream_new(device, 0, 0, false);
        return device->legacy;
    }
    for (int i = 0; i < fake_settings.devices; i++)
        for (struct CUstream_st *at = fake_devices[i].streams; at != NULL; at = at->next)
            if (at == handle)
                return at;
    return NULL;
}

static void order(struct CUstream_st *after, struct CUstream_st *before)
{
    if (fake_idle(before))
        return;
    struct fake_point *point = fake_point_new();
    fake_queue(before, fake_item_new(FAKE_RECORD, point));
    fake_queue(after, fake_item_new(FAKE_WAIT, point));
    fake_point_drop(point);
}

/* The legacy stream and the blocking ones wait for each other. */
void fake_order_legacy(struct CUstream_st *stream)
{
    struct fake_device *device = stream->device;
    if (stream == device->legacy) {
        for (struct CUstream_st *at = device->streams; at != NULL; at = at->next)
            if (at != stream && (at->flags & cudaStreamNonBlocking) == 0)
                order(stream, at);
    } else if (device->legacy != NULL && (stream->flags & cudaStreamNonBlocking) == 0) {
        order(stream, device->legacy);
    }
}

static cudaError_t put(struct CUstream_st *stream, enum fake_kind kind,
                       const struct fake_task *task, const void *data)
{
    if (stream == NULL)
        return cudaErrorInvalidResourceHandle;
    if (kind == FAKE_KERNEL && stream->device->index != fake_current())
        return cudaErrorInvalidResourceHandle;
    if (stream == stream->device->legacy && fake_any_capture(stream->device, true))
        return cudaErrorStreamCaptureImplicit;
    if (stream->capture != NULL)
        return fake_capture_task(stream, kind, task, data);
    fake_order_legacy(stream);
    struct fake_item *item = fake_item_new(kind, NULL);
    item->task = *task;
    item->data = malloc(task->bytes + 1);
    if (item->data == NULL)
        abort();
    memcpy(item->data, data, task->bytes);
    fake_queue(stream, item);
    return cudaSuccess;
}

/* A task that cannot be queued is dropped. */
cudaError_t fake_put(cudaStream_t handle, enum fake_kind kind, const struct fake_task *task,
                     const void *data)
{
    cudaError_t error = put(fake_stream_at(handle), kind, task, data);
    if (error != cudaSuccess && task->drop != NULL)
        task->drop((void *)(uintptr_t)data);
    return error;
}

/* Until what was queued by now is done, of a stream or of all; a device that is
 * lost is not waited for. */
cudaError_t fake_wait_idle(struct fake_device *device, struct CUstream_st *stream)
{
    for (;;) {
        bool idle = true;
        for (struct CUstream_st *at = device->streams; at != NULL; at = at->next)
            if (stream == NULL || at == stream)
                idle = idle && fake_idle(at);
        if (idle || device->sticky != cudaSuccess)
            return device->sticky;
        pthread_cond_wait(&fake_progress, fake_mutex());
    }
}

int64_t dt_fake_cuda_launches(int device)
{
    fake_lock();
    int64_t count = fake_devices[device].launches;
    fake_unlock();
    return count;
}
