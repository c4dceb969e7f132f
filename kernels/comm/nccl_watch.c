/* SPDX-License-Identifier: MIT */
/* The watchdog of the posts. A post is a call of NCCL on the rank's own thread, which may not return if a GPU or another
 * rank hangs. The communicators block, because each post of one that does not block starts a thread: NCCL 2.28.9,
 * src/group.cc, ncclGroupEndInternal calls pthread_create for it, and groupLaunch directly for one that blocks.
 *
 * The watchdog ends the process. It does not abort the communicator first: the hung call still uses it, and
 * ncclCommAbort frees it. The other ranks see the end of the process, and the controller replaces all of them.
 *
 * A process that was stopped and goes on has not hung: what counts is how often the watchdog itself has seen the same
 * call. */
#include "kernels/comm/nccl_int.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOKS = 60 }; /* at one call, before it counts as hung */

_Atomic int64_t dt_nccl_patience_ns = 60 * DT_NS_PER_SECOND; /* the first post connects two ranks */

static void end_process(void)
{
    char text[120];
    long long seconds = atomic_load(&dt_nccl_patience_ns) / DT_NS_PER_SECOND;
    int size = snprintf(text, sizeof text,
                        "NCCL did not return from a post in %lld seconds: a rank is hung or dead\n",
                        seconds);
    ssize_t written = write(STDERR_FILENO, text, (size_t)size);
    (void)written;
    _exit(1);
}

/* Until it is stopped, or for the time between two looks. */
static bool goes_on(struct dt_nccl_watch *watch)
{
    int64_t next = dt_clock_machine_ns() + atomic_load(&dt_nccl_patience_ns) / LOOKS;
    struct timespec until = {.tv_sec = next / DT_NS_PER_SECOND, .tv_nsec = next % DT_NS_PER_SECOND};
    int error = 0;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->over && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    bool over = watch->over;
    pthread_mutex_unlock(&watch->mutex);
    return !over;
}

static void *look(void *arg)
{
    struct dt_nccl_watch *watch = arg;
    uint64_t seen = 0;
    int times = 0;
    while (goes_on(watch)) {
        uint64_t now = atomic_load(&watch->calls);
        times = now % 2 == 1 && now == seen ? times + 1 : 0;
        seen = now;
        if (times >= LOOKS)
            end_process();
    }
    return NULL;
}

dt_status dt_nccl_watch_start(struct dt_nccl_watch *watch)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int error = pthread_create(&watch->thread, NULL, look, watch);
    watch->on = error == 0;
    return error == 0
               ? DT_OK
               : dt_fail(DT_ELIB, "cannot start the watchdog of NCCL's posts: %s", strerror(error));
}

void dt_nccl_watch_stop(struct dt_nccl_watch *watch)
{
    if (!watch->on)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->over = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
}
