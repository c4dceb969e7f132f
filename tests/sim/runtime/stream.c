/* SPDX-License-Identifier: MIT */
/* Streams: each a thread with a queue. */
#include "tests/sim/sim_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_cond_t sim_progress = PTHREAD_COND_INITIALIZER;

int64_t sim_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct sim_point *sim_point_new(void)
{
    struct sim_point *point = calloc(1, sizeof *point);
    if (point == NULL)
        abort();
    point->refs = 1;
    return point;
}

void sim_point_drop(struct sim_point *point)
{
    if (point == NULL || --point->refs > 0)
        return;
    if (point->capture != NULL)
        sim_capture_drop(point->capture);
    free(point);
}

struct sim_item *sim_item_new(enum sim_kind kind, struct sim_point *point)
{
    struct sim_item *item = calloc(1, sizeof *item);
    if (item == NULL)
        abort();
    item->kind = kind;
    item->point = point;
    if (point != NULL)
        point->refs++;
    return item;
}

void sim_item_free(struct sim_item *item)
{
    if (!item->borrowed) {
        if (item->task.drop != NULL)
            item->task.drop(item->data);
        free(item->data);
    }
    sim_point_drop(item->point);
    free(item);
}

/* splitmix64 (Steele, Lea and Flood 2014): one item in four is late by up to sim_settings.delay_us. */
void sim_random_delay(uint64_t *random)
{
    uint64_t z = (*random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (sim_settings.delay_us <= 0 || (z & 3) != 0)
        return;
    struct timespec time = {0, (long)(z >> 2) % (sim_settings.delay_us * 1000L)};
    time.tv_nsec = time.tv_nsec < 0 ? -time.tv_nsec : time.tv_nsec;
    nanosleep(&time, NULL);
}

static cudaError_t planted(struct CUstream_st *stream)
{
    const struct sim_fault *fault = sim_fault("launch", stream->device->index);
    if (fault == NULL)
        return cudaSuccess;
    if (strcmp(fault->act, "delay") == 0)
        sim_sleep_ms(fault->ms);
    else if (strcmp(fault->act, "hang") == 0)
        while (!stream->closing)
            sim_sleep_ms(10);
    else
        return (cudaError_t)(fault->code != 0 ? fault->code : cudaErrorIllegalAddress);
    return cudaSuccess;
}

/* Does what an item says; called and left with the mutex held. */
cudaError_t sim_run(struct CUstream_st *stream, struct sim_item *item)
{
    struct sim_device *device = stream->device;
    cudaError_t error = cudaSuccess;
    if (item->kind == SIM_RECORD) {
        item->point->ns = sim_clock_ns();
        item->point->done = true;
    } else if (item->kind == SIM_WAIT) {
        while (!item->point->done && device->sticky == cudaSuccess && !stream->closing)
            pthread_cond_wait(&sim_progress, sim_mutex());
    } else if (device->sticky == cudaSuccess) {
        device->launches += item->kind == SIM_KERNEL;
        sim_unlock();
        sim_random_delay(&stream->random);
        if (item->kind == SIM_KERNEL)
            error = planted(stream);
        if (error == cudaSuccess)
            error = item->task.run(stream, item->data);
        sim_lock();
    }
    if (error != cudaSuccess)
        sim_fail(device, error);
    pthread_cond_broadcast(&sim_progress);
    return error;
}

static void *serve(void *arg)
{
    struct CUstream_st *stream = arg;
    sim_lock();
    for (;;) {
        while (stream->first == NULL && !stream->closing)
            pthread_cond_wait(&stream->cond, sim_mutex());
        struct sim_item *item = stream->first;
        if (item == NULL)
            break;
        stream->first = item->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        sim_run(stream, item);
        sim_item_free(item);
        stream->done++;
        pthread_cond_broadcast(&sim_progress);
    }
    sim_unlock();
    sim_compute_close(stream);
    pthread_cond_destroy(&stream->cond);
    free(stream);
    return NULL;
}

struct CUstream_st *sim_stream_new(struct sim_device *device, unsigned flags, int priority,
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
    stream->random = sim_settings.seed * 1000003 + number++;
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
void sim_stream_close(struct CUstream_st *stream)
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
    pthread_cond_broadcast(&sim_progress);
}

void sim_queue(struct CUstream_st *stream, struct sim_item *item)
{
    item->next = NULL;
    *stream->last = item;
    stream->last = &item->next;
    stream->put++;
    pthread_cond_signal(&stream->cond);
}

bool sim_idle(const struct CUstream_st *stream)
{
    return stream->done == stream->put;
}

struct CUstream_st *sim_stream_at(cudaStream_t handle)
{
    struct sim_device *device = &sim_devices[sim_current()];
    if (handle == NULL || handle == cudaStreamLegacy) {
        if (device->legacy == NULL)
            device->legacy = sim_stream_new(device, 0, 0, false);
        return device->legacy;
    }
    for (int i = 0; i < sim_settings.devices; i++)
        for (struct CUstream_st *at = sim_devices[i].streams; at != NULL; at = at->next)
            if (at == handle)
                return at;
    return NULL;
}

static void order(struct CUstream_st *after, struct CUstream_st *before)
{
    if (sim_idle(before))
        return;
    struct sim_point *point = sim_point_new();
    sim_queue(before, sim_item_new(SIM_RECORD, point));
    sim_queue(after, sim_item_new(SIM_WAIT, point));
    sim_point_drop(point);
}

/* The legacy stream and the blocking ones wait for each other. */
void sim_order_legacy(struct CUstream_st *stream)
{
    struct sim_device *device = stream->device;
    if (stream == device->legacy) {
        for (struct CUstream_st *at = device->streams; at != NULL; at = at->next)
            if (at != stream && (at->flags & cudaStreamNonBlocking) == 0)
                order(stream, at);
    } else if (device->legacy != NULL && (stream->flags & cudaStreamNonBlocking) == 0) {
        order(stream, device->legacy);
    }
}

static cudaError_t put(struct CUstream_st *stream, enum sim_kind kind, const struct sim_task *task,
                       const void *data)
{
    if (stream == NULL)
        return cudaErrorInvalidResourceHandle;
    if (kind == SIM_KERNEL && stream->device->index != sim_current())
        return cudaErrorInvalidResourceHandle;
    if (stream == stream->device->legacy && sim_any_capture(stream->device, true))
        return cudaErrorStreamCaptureImplicit;
    if (stream->capture != NULL)
        return sim_capture_task(stream, kind, task, data);
    sim_order_legacy(stream);
    struct sim_item *item = sim_item_new(kind, NULL);
    item->task = *task;
    item->data = malloc(task->bytes + 1);
    if (item->data == NULL)
        abort();
    memcpy(item->data, data, task->bytes);
    sim_queue(stream, item);
    return cudaSuccess;
}

/* What cannot be put is dropped. */
cudaError_t sim_put(cudaStream_t handle, enum sim_kind kind, const struct sim_task *task,
                    const void *data)
{
    cudaError_t error = put(sim_stream_at(handle), kind, task, data);
    if (error != cudaSuccess && task->drop != NULL)
        task->drop((void *)(uintptr_t)data);
    return error;
}

/* Until what was queued by now is done, of a stream or of all; a device that is lost is not waited for. */
cudaError_t sim_wait_idle(struct sim_device *device, struct CUstream_st *stream)
{
    for (;;) {
        bool idle = true;
        for (struct CUstream_st *at = device->streams; at != NULL; at = at->next)
            if (stream == NULL || at == stream)
                idle = idle && sim_idle(at);
        if (idle || device->sticky != cudaSuccess)
            return device->sticky;
        pthread_cond_wait(&sim_progress, sim_mutex());
    }
}

int64_t dt_sim_launches(int device)
{
    sim_lock();
    int64_t count = sim_devices[device].launches;
    sim_unlock();
    return count;
}
