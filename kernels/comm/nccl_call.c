/* SPDX-License-Identifier: MIT */
/* NCCL's errors, and its calls that may never return: making, ending and aborting a communicator, and registering memory
 * wait for other ranks. Each is made on a thread of its own, which is abandoned at the deadline. After every error
 * except an invalid argument only ncclCommAbort may be called on a communicator (NCCL's user guide, "Fault
 * tolerance"). */
#include "kernels/comm/nccl_int.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

void dt_nccl_lose(struct dt_nccl_root *root)
{
    dt_error_keep(&root->lost, DT_ELIB);
}

dt_status dt_nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                        const char *what)
{
    if (code == ncclSuccess)
        return DT_OK;
    const char *last = ncclGetLastError(comm);
    bool fatal = code != ncclInvalidArgument;
    dt_status status = dt_fail(DT_ELIB, "%s%s failed: %s%s%.300s",
                               fatal ? "communicator lost: " : "", what, ncclGetErrorString(code),
                               last != NULL && *last != '\0' ? ": " : "", last != NULL ? last : "");
    if (fatal)
        dt_nccl_lose(root);
    return status;
}

dt_status dt_nccl_ready(struct dt_nccl_root *root)
{
    return dt_error_raise(&root->lost);
}

/* Shared by the thread of the call and the one that waits for it; the last of them frees it. */
struct dt_nccl_pending {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int users, device;
    bool done;
    struct dt_nccl_call call;
};

static void leave(struct dt_nccl_pending *pending)
{
    int users = --pending->users;
    pthread_mutex_unlock(&pending->mutex);
    if (users > 0)
        return;
    pthread_cond_destroy(&pending->changed);
    pthread_mutex_destroy(&pending->mutex);
    free(pending);
}

static void *make_call(void *arg)
{
    struct dt_nccl_pending *pending = arg;
    (void)cudaSetDevice(pending->device);
    ncclResult_t result = pending->call.make(&pending->call);
    pthread_mutex_lock(&pending->mutex);
    pending->call.result = result;
    pending->done = true;
    pthread_cond_signal(&pending->changed);
    leave(pending);
    return NULL;
}

dt_status dt_nccl_begin(struct dt_nccl_root *root, const struct dt_nccl_call *call,
                        struct dt_nccl_pending **out)
{
    struct dt_nccl_pending *pending = calloc(1, sizeof *pending);
    pthread_condattr_t monotonic;
    pthread_t thread;
    if (pending == NULL)
        return dt_fail(DT_ENOMEM, "no memory to call %s", call->name);
    pending->users = 2;
    pending->device = root->cuda->base.index;
    pending->call = *call;
    pthread_mutex_init(&pending->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pending->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&thread, NULL, make_call, pending) != 0) {
        pthread_mutex_lock(&pending->mutex);
        pending->users = 1;
        leave(pending);
        return dt_fail(DT_ELIB, "cannot start a thread for %s", call->name);
    }
    pthread_detach(thread);
    *out = pending;
    return DT_OK;
}

bool dt_nccl_await(struct dt_nccl_pending *pending, int64_t wait_ns)
{
    int64_t deadline_ns = dt_clock_machine_ns() + wait_ns;
    struct timespec until = {.tv_sec = deadline_ns / DT_NS_PER_SECOND,
                             .tv_nsec = deadline_ns % DT_NS_PER_SECOND};
    int error = 0;
    pthread_mutex_lock(&pending->mutex);
    while (!pending->done && error == 0)
        error = pthread_cond_timedwait(&pending->changed, &pending->mutex, &until);
    bool done = pending->done;
    pthread_mutex_unlock(&pending->mutex);
    return done;
}

dt_status dt_nccl_finish(struct dt_nccl_root *root, struct dt_nccl_pending *pending,
                         int64_t wait_ns, struct dt_nccl_call *call)
{
    bool done = dt_nccl_await(pending, wait_ns);
    const char *name = pending->call.name;
    pthread_mutex_lock(&pending->mutex);
    if (done && call != NULL)
        *call = pending->call;
    ncclResult_t result = done ? pending->call.result : ncclInProgress;
    ncclComm_t comm = done ? pending->call.comm : NULL;
    leave(pending);
    if (done)
        return dt_nccl_check(root, result, comm, name);
    root->stuck = true;
    dt_status status =
        dt_fail(DT_ETIMEOUT, "communicator lost: no end of %s: a rank is hung or dead", name);
    dt_nccl_lose(root);
    return status;
}

dt_status dt_nccl_within(struct dt_nccl_root *root, struct dt_nccl_call *call, int64_t wait_ns)
{
    struct dt_nccl_pending *pending = NULL;
    DT_TRY(dt_nccl_begin(root, call, &pending));
    return dt_nccl_finish(root, pending, wait_ns, call);
}

static ncclResult_t abort_one(struct dt_nccl_call *call)
{
    return ncclCommAbort(call->comm);
}

/* What an abort returns tells nothing: the communicator is gone in any case. */
dt_status dt_nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns)
{
    struct dt_nccl_pending *pending = NULL;
    if (root->lost.status == DT_OK)
        root->lost = (struct dt_error){DT_ELIB, "communicator lost: it was aborted"};
    for (struct dt_nccl_group *group = root->groups; !root->stuck && group != NULL;
         group = group->next) {
        const struct dt_nccl_call call = {
            .name = "ncclCommAbort", .make = abort_one, .comm = group->comm};
        group->comm = NULL;
        if (call.comm == NULL)
            continue;
        dt_status status = dt_nccl_begin(root, &call, &pending);
        root->stuck = status != DT_OK;
        DT_TRY(status);
        if (dt_nccl_finish(root, pending, deadline_ns - dt_clock_ns(), NULL) == DT_ETIMEOUT)
            break;
    }
    return !root->stuck
               ? DT_OK
               : dt_fail(DT_ETIMEOUT, "a call of NCCL does not end: this process must be replaced");
}
