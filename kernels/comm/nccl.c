/* SPDX-License-Identifier: MIT */
/* The comms of a rank share one root, which the last of them frees. Control messages use the host's comm of the same
 * ranks. */
#include "kernels/nccl.h"

#include "base/host.h"
#include "kernels/comm/nccl_int.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 64 };

extern const struct dt_comm_ops dt_comm_nccl_ops;

static struct dt_nccl_seat *of(struct dt_comm *comm)
{
    return comm->state;
}

static void free_events(struct dt_nccl_events *first)
{
    while (first != NULL) {
        struct dt_nccl_events *next = first->next;
        if (first->ready != NULL)
            (void)cudaEventDestroy(first->ready);
        if (first->done != NULL)
            (void)cudaEventDestroy(first->done);
        free(first);
        first = next;
    }
}

static ncclResult_t free_memory(struct dt_nccl_call *call)
{
    return ncclMemFree(call->at);
}

/* The first of *at. Stays where NCCL does not return, or where a window of it does not end. */
static dt_status end_memory(struct dt_nccl_root *root, struct dt_nccl_memory **at)
{
    struct dt_nccl_memory *memory = *at;
    struct dt_nccl_call call = {.name = "ncclMemFree", .make = free_memory, .at = memory->at};
    DT_TRY(dt_nccl_window_drop(root, memory));
    DT_TRY(dt_nccl_within(root, &call, atomic_load(&dt_nccl_patience_ns)));
    *at = memory->next;
    free(memory);
    return DT_OK;
}

/* Memory that a hung call may still use is never freed. */
static void free_root(struct dt_nccl_root *root)
{
    (void)dt_cuda_of(&root->cuda->base);
    if (root->stream != NULL)
        dt_nccl_end(root);
    dt_nccl_watch_stop(&root->watch);
    while (root->memories != NULL && !root->stuck)
        if (end_memory(root, &root->memories) != DT_OK)
            root->stuck = true;
    if (root->stuck)
        return;
    free_events(root->idle);
    free_events(root->posted);
    if (root->stream != NULL)
        (void)cudaStreamDestroy(root->stream);
    free(root);
}

/* NCCL_LAUNCH_ORDER_IMPLICIT: NCCL starts operations of several communicators in the order in which this rank posts them,
 * as far as they may run at the same time (NCCL's user guide, "Using multiple NCCL communicators concurrently"; since
 * 2.26). Without it only one stream keeps them from waiting for each other for ever. */
static bool is_ordered(void)
{
    const char *text = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    int version = 0;
    return text != NULL && strtol(text, NULL, 0) != 0 && ncclGetVersion(&version) == ncclSuccess &&
           version >= 22600;
}

static dt_status make_root(struct dt_nccl_root *root)
{
    int least = 0;
    DT_TRY(dt_nccl_watch_start(&root->watch));
    root->ordered = is_ordered();
    DT_CUDA(root->cuda, cudaDeviceGetStreamPriorityRange(&least, &root->priority),
            "have priorities");
    DT_CUDA(root->cuda,
            cudaStreamCreateWithPriority(&root->stream, cudaStreamNonBlocking, root->priority),
            "make a stream");
    for (int i = 0; i < EVENTS; i++)
        DT_TRY(dt_nccl_events_new(root));
    return DT_OK;
}

/* Owns host on success. */
static dt_status join(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                      const struct dt_comm_config *config, struct dt_comm **out)
{
    size_t bytes = (size_t)host->size * sizeof members[0];
    struct dt_comm *comm = calloc(1, sizeof *comm);
    struct dt_nccl_seat *seat = calloc(1, sizeof *seat + bytes);
    if (comm == NULL || seat == NULL) {
        free(comm);
        free(seat);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    }
    *seat = (struct dt_nccl_seat){.root = root, .host = host};
    if (config != NULL)
        seat->config = *config;
    memcpy(seat->members, members, bytes);
    *comm = (struct dt_comm){.ops = &dt_comm_nccl_ops,
                             .rank = host->rank,
                             .size = host->size,
                             .device = &root->cuda->base,
                             .state = seat};
    root->users++;
    *out = comm;
    return DT_OK;
}

static void release(struct dt_comm *comm)
{
    struct dt_nccl_seat *seat = of(comm);
    dt_nccl_group_give_back(seat->group);
    if (--seat->root->users == 0)
        free_root(seat->root);
    dt_comm_free(seat->host);
    free(seat);
    free(comm);
}

static dt_status check(struct dt_comm *comm)
{
    struct dt_nccl_root *root = of(comm)->root;
    DT_TRY(dt_nccl_ready(root));
    DT_TRY(dt_comm_check(of(comm)->host));
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
        ncclResult_t state = ncclSuccess;
        ncclResult_t code = ncclCommGetAsyncError(group->comm, &state);
        DT_TRY(dt_nccl_check(root, code, group->comm, "ncclCommGetAsyncError"));
        DT_TRY(dt_nccl_check(root, state, group->comm, "an exchange"));
    }
    return DT_OK;
}

static dt_status abort_all(struct dt_comm *comm, int64_t deadline_ns)
{
    return dt_nccl_abort(of(comm)->root, deadline_ns);
}

static dt_status barrier(struct dt_comm *comm)
{
    return of(comm)->host->ops->barrier(of(comm)->host);
}

static dt_status gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    return of(comm)->host->ops->gather(of(comm)->host, send, recv, bytes);
}

static dt_status broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    return of(comm)->host->ops->broadcast(of(comm)->host, data, bytes);
}

/* Writes the part's ranks in the root to members[part->size]. */
static dt_status name_members(const struct dt_nccl_seat *seat, int rank, struct dt_comm *part,
                              int members[])
{
    int own = seat->members[rank];
    DT_TRY(part->ops->gather(part, &own, members, sizeof own));
    return part->ops->broadcast(part, members, (size_t)part->size * sizeof own);
}

static dt_status split(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out)
{
    struct dt_nccl_seat *seat = of(comm);
    struct dt_comm *part = NULL, *made = NULL;
    DT_TRY(seat->host->ops->split(seat->host, color, key, config, &part));
    int *members = calloc((size_t)part->size, sizeof *members);
    dt_status status = members != NULL ? name_members(seat, comm->rank, part, members)
                                       : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    if (status == DT_OK)
        status = join(seat->root, part, members, config, &made);
    free(members);
    if (status != DT_OK) {
        dt_comm_free(part);
        return status;
    }
    if (made->size > 1)
        status = dt_nccl_seat_group(of(made));
    if (status != DT_OK) {
        dt_comm_free(made);
        return status;
    }
    *out = made;
    return DT_OK;
}

/* Windows must be of equal size on all ranks. */
static dt_status largest(struct dt_comm *host, int64_t *bytes)
{
    int64_t most = *bytes, *all = calloc((size_t)host->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to agree among %d ranks", host->size);
    dt_status status = host->ops->gather(host, bytes, all, sizeof *bytes);
    for (int i = 0; status == DT_OK && host->rank == 0 && i < host->size; i++)
        most = all[i] > most ? all[i] : most;
    free(all);
    DT_TRY(status);
    DT_TRY(host->ops->broadcast(host, &most, sizeof most));
    *bytes = most;
    return DT_OK;
}

static dt_status alloc(struct dt_comm *comm, int64_t bytes, void **memory)
{
    struct dt_nccl_seat *seat = of(comm);
    struct dt_nccl_root *root = seat->root;
    DT_TRY(largest(seat->host, &bytes));
    struct dt_nccl_memory *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a window");
    (void)dt_cuda_of(&root->cuda->base);
    made->bytes = (size_t)bytes;
    made->whole = seat->whole;
    if (ncclMemAlloc(&made->at, made->bytes) != ncclSuccess) {
        free(made);
        (void)cudaGetLastError();
        return dt_fail(DT_ENOMEM, "GPU %d has not the memory for %lld bytes of exchanges",
                       root->cuda->base.index, (long long)bytes);
    }
    made->next = root->memories;
    root->memories = made;
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next)
        if (made->whole ? group->users > 0 : group == seat->group)
            DT_TRY(dt_nccl_window_add(root, group, made));
    *memory = made->at;
    return DT_OK;
}

static void release_memory(struct dt_comm *comm, void *memory)
{
    struct dt_nccl_root *root = of(comm)->root;
    struct dt_nccl_memory **at = &root->memories;
    while (*at != NULL && (*at)->at != memory)
        at = &(*at)->next;
    if (*at != NULL && !root->stuck && end_memory(root, at) != DT_OK)
        dt_nccl_lose(root); /* reported by the next call */
}

dt_status dt_comm_nccl(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm)
{
    struct dt_nccl_root *root = calloc(1, sizeof *root);
    int *members = calloc((size_t)host->size, sizeof *members);
    struct dt_comm *made = NULL;
    dt_status status = root != NULL && members != NULL
                           ? DT_OK
                           : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    if (status == DT_OK) {
        root->cuda = dt_cuda_of(device);
        status = make_root(root);
    }
    for (int i = 0; status == DT_OK && i < host->size; i++)
        members[i] = i;
    if (status == DT_OK)
        status = join(root, host, members, NULL, &made);
    free(members);
    if (status != DT_OK) {
        if (root != NULL && root->cuda != NULL)
            free_root(root);
        else
            free(root);
        return status;
    }
    of(made)->whole = true;
    *comm = made;
    return DT_OK;
}

/* Host and device of a rank. */
struct place {
    char host[128], device[32];
};

static bool all_differ(const struct place places[], int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&places[i], &places[j], sizeof places[i]) == 0)
                return false;
    return true;
}

/* Each rank of host has a GPU of its own, as NCCL requires: no two have the same host and PCI device. */
static dt_status fit(struct dt_comm *host, const struct dt_device *device, bool *fits)
{
    struct place own = {"", ""}, *all = calloc((size_t)host->size, sizeof *all);
    bool differ = false;
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to ask %d ranks", host->size);
    snprintf(own.host, sizeof own.host, "%s", dt_host_name());
    if (cudaDeviceGetPCIBusId(own.device, sizeof own.device, device->index) != cudaSuccess) {
        (void)cudaGetLastError();
        memset(own.device, 0, sizeof own.device); /* unknown, like any other's */
    }
    dt_status status = host->ops->gather(host, &own, all, sizeof own);
    if (status == DT_OK && host->rank == 0)
        differ = all_differ(all, host->size);
    free(all);
    DT_TRY(status);
    DT_TRY(host->ops->broadcast(host, &differ, sizeof differ));
    *fits = differ;
    return DT_OK;
}

/* NCCL refuses two ranks on one GPU unless they appear to be on different hosts (2.28: init.cc): for tests of
 * correctness only. */
static dt_status over(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm)
{
    bool fits = false;
    char id[32];
    DT_TRY(fit(host, device, &fits));
    snprintf(id, sizeof id, "dittune-%d", host->rank);
    if (!fits && setenv("NCCL_HOSTID", id, 0) != 0)
        return dt_fail(DT_ENOMEM, "no memory for the environment");
    return dt_comm_nccl(host, device, comm);
}

const char *dt_comm_nccl_version(void)
{
    static char text[32];
    int version = 0;
    if (text[0] == '\0' && ncclGetVersion(&version) == ncclSuccess) /* 22809, since 2.9 */
        snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
    return text;
}

const struct dt_comm_ops dt_comm_nccl_ops = {
    .name = "nccl",
    .over = over,
    .fits = fit,
    .recordable = true,
    .split = split,
    .free = release,
    .barrier = barrier,
    .gather = gather,
    .broadcast = broadcast,
    .alltoall = dt_nccl_alltoall,
    .shift = dt_nccl_shift,
    .exchange = dt_nccl_exchange,
    .wait = dt_nccl_wait,
    .check = check,
    .abort = abort_all,
    .alloc = alloc,
    .release = release_memory,
};
