/* SPDX-License-Identifier: MIT */
/* Checks and aborts NCCL's operations. After every error except an invalid argument only ncclCommAbort may be called on
 * a communicator (NCCL's user guide, "Fault tolerance"), and that call may hang: it runs on a thread of its own, which
 * is then abandoned. */
#include "kernels/comm/nccl_int.h"

#include "base/clock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* A post is launched by a thread that NCCL starts for it, which takes tens of microseconds. */
#define EAGER_NS 1000000

void dt_nccl_lose(struct dt_nccl_root *root)
{
    dt_error_keep(&root->lost, DT_ELIB);
}

dt_status dt_nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                        const char *what)
{
    if (code == ncclSuccess || code == ncclInProgress)
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

dt_status dt_nccl_settle(struct dt_nccl_root *root, ncclComm_t comm, int64_t deadline_ns,
                         const char *what)
{
    int64_t start = dt_clock_ns();
    for (;;) {
        ncclResult_t state = ncclSuccess;
        DT_TRY(dt_nccl_check(root, ncclCommGetAsyncError(comm, &state), comm, what));
        if (state != ncclInProgress)
            return dt_nccl_check(root, state, comm, what);
        int64_t now = dt_clock_ns();
        if (now > deadline_ns)
            break;
        if (now - start < EAGER_NS)
            sched_yield();
        else
            dt_clock_sleep_ns(DT_NS_PER_SECOND / 10000);
    }
    dt_status status =
        dt_fail(DT_ETIMEOUT, "communicator lost: no end of %s: a rank is hung or dead", what);
    dt_nccl_lose(root);
    return status;
}

/* Shared by the aborting thread and the one that waits for it; the last of them frees it. */
struct abortion {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int users, device, count;
    bool done;
    ncclComm_t comms[];
};

static void leave(struct abortion *job)
{
    int users = --job->users;
    pthread_mutex_unlock(&job->mutex);
    if (users > 0)
        return;
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->mutex);
    free(job);
}

static void *abort_all(void *arg)
{
    struct abortion *job = arg;
    (void)cudaSetDevice(job->device);
    for (int i = 0; i < job->count; i++)
        (void)ncclCommAbort(job->comms[i]);
    pthread_mutex_lock(&job->mutex);
    job->done = true;
    pthread_cond_signal(&job->changed);
    leave(job);
    return NULL;
}

static struct abortion *new_abortion(const struct dt_nccl_root *root, int room)
{
    struct abortion *job = calloc(1, sizeof *job + (size_t)room * sizeof(ncclComm_t));
    pthread_condattr_t monotonic;
    if (job == NULL)
        return NULL;
    job->users = 2;
    job->device = root->cuda->base.index;
    pthread_mutex_init(&job->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return job;
}

/* Owns job. */
static dt_status run_abortion(struct dt_nccl_root *root, struct abortion *job, int64_t deadline_ns)
{
    struct timespec until = {.tv_sec = deadline_ns / DT_NS_PER_SECOND,
                             .tv_nsec = deadline_ns % DT_NS_PER_SECOND};
    pthread_t thread;
    int count = job->count;
    if (pthread_create(&thread, NULL, abort_all, job) != 0) {
        pthread_mutex_lock(&job->mutex);
        job->users--;
        leave(job);
        root->stuck = true;
        return dt_fail(DT_ELIB, "cannot start a thread to abort %d communicators", count);
    }
    pthread_detach(thread);
    pthread_mutex_lock(&job->mutex);
    int error = 0;
    while (!job->done && error == 0)
        error = pthread_cond_timedwait(&job->changed, &job->mutex, &until);
    bool done = job->done;
    leave(job);
    if (done)
        return DT_OK;
    root->stuck = true;
    return dt_fail(DT_ETIMEOUT,
                   "the abort of %d communicators does not end: this process must be replaced",
                   count);
}

dt_status dt_nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns)
{
    int count = 0;
    if (root->stuck)
        return dt_fail(DT_ETIMEOUT, "an abort never ended: this process must be replaced");
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next)
        count += group->comm != NULL;
    struct abortion *job = new_abortion(root, count);
    if (job == NULL)
        return dt_fail(DT_ENOMEM, "no memory to abort %d communicators", count);
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
        if (group->comm != NULL)
            job->comms[job->count++] = group->comm;
        group->comm = NULL;
    }
    if (root->lost.status == DT_OK)
        root->lost = (struct dt_error){DT_ELIB, "communicator lost: it was aborted"};
    return run_abortion(root, job, deadline_ns);
}
