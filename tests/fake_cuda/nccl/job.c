/* SPDX-License-Identifier: MIT */
/* Work that continues after a call has returned, and the resulting states. */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char last_error[512];

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress"};
    return (unsigned)code < sizeof texts / sizeof texts[0] ? texts[code] : "unknown result code";
}

ncclResult_t comm_fail(struct ncclComm *comm, ncclResult_t code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    if (comm != NULL)
        comm->state = code;
    pthread_cond_broadcast(&fake_progress);
    return code;
}

void comm_drop(struct ncclComm *comm)
{
    if (--comm->refs > 0)
        return;
    if (comm->world != NULL)
        munmap(comm->world, comm->world_bytes);
    free(comm);
}

ncclResult_t nccl_enter(const char *name, int rank)
{
    if (fake_enter("nccl") != cudaSuccess)
        return comm_fail(NULL, ncclUnhandledCudaError, "Cuda failure '%s'",
                         cudaGetErrorString(cudaPeekAtLastError()));
    fake_lock();
    const struct fake_fault *fault = fake_fault(name, rank);
    fake_unlock();
    if (fault == NULL)
        return ncclSuccess;
    fake_sleep_ms(fault->ms);
    while (strcmp(fault->act, "hang") == 0)
        pause();
    return fault->code != 0 ? comm_fail(NULL, (ncclResult_t)fault->code, "a planted error")
                            : ncclSuccess;
}

ncclResult_t comm_ready(const char *name, struct ncclComm *comm)
{
    if (comm == NULL || comm->finalized || atomic_load(&comm->aborted))
        return comm_fail(NULL, ncclInvalidArgument, "%s: no communicator", name);
    if (comm->state == ncclInProgress) {
        fake_complain("%s on communicator %s of rank %d, where another call is still in progress",
                      name, comm->name, comm->rank);
        return ncclInvalidArgument;
    }
    return comm->state;
}

static const char *host_name(char text[64])
{
    const char *given = getenv("NCCL_HOSTID");
    if (given == NULL && fake_settings.host[0] != 0)
        given = fake_settings.host;
    if (given == NULL && gethostname(text, 64) == 0)
        return text;
    snprintf(text, 64, "%s", given != NULL ? given : "host");
    return text;
}

/* Two ranks of one host on one device are refused, as NCCL 2.28 does. */
static ncclResult_t check_devices(struct ncclComm *comm)
{
    for (int i = 0; i < comm->size; i++)
        for (int k = 0; k < i; k++)
            if (comm->world->who[i].device == comm->world->who[k].device &&
                strncmp(comm->world->who[i].host, comm->world->who[k].host, 64) == 0)
                return comm_fail(comm, ncclInvalidUsage,
                                 "Duplicate GPU detected : rank %d and rank %d both on CUDA device "
                                 "%x000",
                                 k, i, 0x18 + comm->world->who[i].device);
    return ncclSuccess;
}

static ncclResult_t join(struct ncclComm *comm)
{
    char text[64];
    int got[RANKS][2];
    const int mine[2] = {comm->rank, comm->size};
    struct world *world = world_open(comm->path, comm->size, &comm->world_bytes);
    comm->world = world;
    snprintf(world->who[comm->rank].host, sizeof world->who[0].host, "%s", host_name(text));
    world->who[comm->rank].device = comm->device;
    bool met = world_meet(comm, "init", mine, got);
    (void)unlink(comm->path);
    fake_lock();
    ncclResult_t result =
        met ? check_devices(comm) : comm_fail(comm, ncclInternalError, "the others never came");
    for (int i = 0; met && i < comm->size; i++)
        if (got[i][0] != i || got[i][1] != comm->size)
            result = comm_fail(comm, ncclInvalidUsage, "rank %d says it is %d of %d", i, got[i][0],
                               got[i][1]);
    fake_unlock();
    return result;
}

static ncclResult_t split(const struct call *call)
{
    struct ncclComm *parent = call->parent, *comm = call->comm;
    int got[RANKS][2], rank = 0, size = 0;
    const int mine[2] = {call->color, call->key};
    if (!world_meet(parent, "split", mine, got))
        return ncclInternalError;
    if (comm == NULL)
        return ncclSuccess;
    for (int i = 0; i < parent->size; i++)
        if (got[i][0] == call->color) {
            bool before = got[i][1] < call->key || (got[i][1] == call->key && i < parent->rank);
            rank += before;
            size++;
        }
    comm->rank = rank;
    comm->size = size;
    return join(comm);
}

static ncclResult_t post(const struct call *call)
{
    ncclResult_t result = ncclSuccess;
    fake_lock();
    for (struct posting *at = call->postings, *next; at != NULL; at = next) {
        next = at->next;
        struct ncclComm *comm = at->comm;
        bool aborted = atomic_load(&comm->aborted);
        ncclResult_t one = aborted ? ncclSuccess : posting_put(at);
        if (aborted)
            posting_free(at);
        if (comm->state == ncclInProgress)
            comm->state = one;
        comm_drop(comm);
        result = result != ncclSuccess ? result : one;
    }
    pthread_cond_broadcast(&fake_progress);
    fake_unlock();
    return result;
}

static ncclResult_t finalize(struct ncclComm *comm)
{
    fake_lock();
    while (comm->outstanding > 0 && !atomic_load(&comm->aborted))
        pthread_cond_wait(&fake_progress, fake_mutex());
    fake_unlock();
    return ncclSuccess;
}

static ncclResult_t perform(const struct call *call)
{
    static const int nothing[2];
    if (call->delay_us > 0)
        usleep((useconds_t)call->delay_us);
    switch (call->job) {
    case JOB_INIT:
        fake_sleep_ms(fake_settings.init_ms);
        return join(call->comm);
    case JOB_SPLIT:
        return split(call);
    case JOB_REGISTER:
        return world_meet(call->comm, "window", nothing, NULL) ? ncclSuccess : ncclInternalError;
    case JOB_FINALIZE:
        return finalize(call->comm);
    default:
        return post(call);
    }
}

/* The state after it: an error that came meanwhile stays. */
static void settle(struct ncclComm *comm, ncclResult_t result)
{
    if (comm == NULL)
        return;
    if (comm->state == ncclInProgress)
        comm->state = result;
    comm_drop(comm);
}

static void *serve(void *arg)
{
    struct call call = *(struct call *)arg;
    free(arg);
    ncclResult_t result = perform(&call);
    fake_lock();
    settle(call.comm, result);
    settle(call.parent, result);
    pthread_cond_broadcast(&fake_progress);
    fake_unlock();
    return NULL;
}

ncclResult_t call_start(const struct call *call)
{
    struct call *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (copy == NULL)
        abort();
    *copy = *call;
    struct ncclComm *both[2] = {call->comm, call->parent};
    fake_lock();
    for (int i = 0; i < 2; i++)
        if (both[i] != NULL) {
            both[i]->refs++;
            both[i]->state = ncclInProgress;
        }
    for (struct posting *at = call->postings; at != NULL; at = at->next) {
        at->comm->refs++;
        at->comm->state = ncclInProgress;
    }
    fake_unlock();
    if (pthread_create(&thread, NULL, serve, copy) != 0)
        abort();
    pthread_detach(thread);
    return ncclInProgress;
}
