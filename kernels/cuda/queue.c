/* SPDX-License-Identifier: MIT */
/* Waiting for the stream, and times on it. Waits poll and never block in the driver: the kernel of an exchange whose
 * peer has ended never ends, and the waiting rank must notice that. */
#include "kernels/cuda/cuda_int.h"

#include "base/clock.h"
#include "kernels/cuda/launch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Polls without pause at first, so that the end of a short step is seen at once; then yields the core between polls for
 * as short as the timer slack set by dt_cuda_open allows, which bounds the delay. */
static void rest(int polls)
{
    enum { SPIN = 200, YIELD = 2000 };
    const struct timespec nap = {.tv_nsec = 20000};
    if (polls >= YIELD)
        nanosleep(&nap, NULL);
    else if (polls >= SPIN)
        sched_yield();
}

int64_t dt_cuda_patience_ns = 60 * DT_NS_PER_SECOND;

bool dt_cuda_quiet(struct dt_cuda *cuda)
{
    int64_t deadline = dt_clock_ns() + (cuda->stuck ? 0 : dt_cuda_patience_ns);
    for (int polls = 0; cudaStreamQuery(cuda->stream) == cudaErrorNotReady;
         polls += polls < INT32_MAX ? 1 : 0) {
        (void)cudaGetLastError(); /* "not ready" counts as one */
        cuda->stuck = dt_clock_ns() >= deadline;
        if (cuda->stuck)
            return false;
        rest(polls);
    }
    return true;
}

static dt_status ended(struct dt_cuda *cuda, cudaError_t code)
{
    cuda->stuck = false;
    if (code != cudaSuccess) {
        char what[128];
        snprintf(what, sizeof what, "finish what was queued, last of all to %s", cuda->last);
        dt_cuda_keep(cuda, (int)code, what);
        cuda->last = "nothing";
    }
    dt_status status = dt_cuda_ready(cuda);
    if (status == DT_ENOMEM && !cuda->lost)
        cuda->error.status = DT_OK; /* reported once; later work may run */
    return status;
}

dt_status dt_cuda_finish(struct dt_device *device, int64_t deadline_ns,
                         dt_status (*check)(void *arg), void *arg)
{
    enum { CHECK_EACH = 64 };
    struct dt_cuda *cuda = dt_cuda_of(device);
    if (cuda->error.status != DT_OK && cuda->error.status != DT_ENOMEM)
        return dt_cuda_ready(cuda);
    for (int polls = 0;; polls += polls < INT32_MAX ? 1 : 0) {
        cudaError_t code = cudaStreamQuery(cuda->stream);
        if (code != cudaErrorNotReady)
            return ended(cuda, code);
        (void)cudaGetLastError(); /* "not ready" counts as one */
        dt_status status = check != NULL && polls % CHECK_EACH == 0 ? check(arg) : DT_OK;
        cuda->stuck = status < 0 || dt_clock_ns() >= deadline_ns;
        if (status < 0)
            return status;
        if (cuda->stuck)
            return dt_fail(DT_ETIMEOUT,
                           "GPU %d did not finish in time what was queued, last of all to %s",
                           device->index, cuda->last);
        rest(polls);
    }
}

/* Timing events, created in blocks when a mark needs them; only the first step of its kind creates any. */
static dt_status make_marks(struct dt_cuda *cuda, int count)
{
    enum { BLOCK = 256 };
    if (cuda->marks == NULL)
        cuda->marks = calloc(DT_MARKS_MOST, sizeof(cudaEvent_t));
    if (cuda->marks == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %d marks", DT_MARKS_MOST);
    int most = (count + BLOCK - 1) / BLOCK * BLOCK;
    while (cuda->mark_count < most) {
        DT_CUDA(cuda, cudaEventCreate(&cuda->marks[cuda->mark_count]), "make an event");
        cuda->mark_count++;
    }
    return DT_OK;
}

void dt_cuda_mark(struct dt_device *device, int slot)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda == NULL)
        return;
    dt_status status = slot < cuda->mark_count ? DT_OK : make_marks(cuda, slot + 1);
    if (status != DT_OK)
        dt_error_keep(&cuda->error, status);
    else
        dt_cuda_keep(cuda, (int)cudaEventRecord(cuda->marks[slot], cuda->stream), "note a time");
}

dt_status dt_cuda_times(struct dt_device *device, int n, int64_t ns[])
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (n > cuda->mark_count)
        return dt_fail(DT_EUSAGE, "%d marks requested, %d were made", n, cuda->mark_count);
    for (int i = 0; i < n; i++) {
        float milliseconds = 0.0F;
        DT_CUDA(cuda, cudaEventElapsedTime(&milliseconds, cuda->marks[0], cuda->marks[i]),
                "tell a time");
        ns[i] = (int64_t)((double)milliseconds * 1e6 + 0.5);
    }
    return DT_OK;
}

static uint64_t *clock_at(struct dt_cuda *cuda, int slot)
{
    char *clocks = cuda->workspace + DT_CUDA_LIBRARY_BYTES + DT_CUDA_BIAS_BYTES;
    return (uint64_t *)(void *)clocks + 2 * slot;
}

void dt_cuda_clock(struct dt_device *device, int slot)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda != NULL)
        dt_cuda_keep(cuda, dt_launch_clock(clock_at(cuda, slot), cuda->stream), "read a clock");
}

dt_status dt_cuda_clock_rate(struct dt_device *device, double *hz)
{
    uint64_t read[4]; /* cycles and nanoseconds of both readings */
    DT_TRY(dt_cuda_get(device, read, clock_at(dt_cuda_of(device), 0), sizeof read));
    *hz = read[3] > read[1] && read[2] > read[0]
              ? (double)(read[2] - read[0]) * 1e9 / (double)(read[3] - read[1])
              : 0.0;
    return DT_OK;
}
