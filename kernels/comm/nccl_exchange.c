/* SPDX-License-Identifier: MIT */
/* An exchange begins when the compute stream has reached its post (an event), and ends with an event on the exchange
 * stream, for which wait makes the compute stream wait. The events are created beforehand, so that a post allocates
 * nothing and can be recorded into a graph. */
#include "kernels/comm/nccl_int.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct dt_nccl_seat *of(struct dt_comm *comm)
{
    return comm->state;
}

dt_status dt_nccl_events_new(struct dt_nccl_root *root)
{
    struct dt_nccl_events *events = calloc(1, sizeof *events);
    if (events == NULL)
        return dt_fail(DT_ENOMEM, "no memory for events");
    events->next = root->idle;
    root->idle = events;
    DT_CUDA(root->cuda, cudaEventCreateWithFlags(&events->ready, cudaEventDisableTiming),
            "make an event");
    DT_CUDA(root->cuda, cudaEventCreateWithFlags(&events->done, cudaEventDisableTiming),
            "make an event");
    return DT_OK;
}

dt_status dt_nccl_seat_group(struct dt_nccl_seat *seat)
{
    if (seat->group != NULL)
        return dt_nccl_ready(seat->root);
    return dt_nccl_group_take(seat->root, seat->host, seat->members, &seat->config, &seat->group);
}

/* Makes the exchange stream wait for the work queued on the device. */
static dt_status begin(struct dt_comm *comm, struct dt_nccl_events **out)
{
    struct dt_nccl_root *root = of(comm)->root;
    struct dt_cuda *cuda = root->cuda;
    if (dt_cuda_enter(&cuda->base) == NULL)
        DT_TRY(dt_cuda_ready(cuda));
    if (comm->size > 1)
        DT_TRY(dt_nccl_seat_group(of(comm)));
    if (root->idle == NULL)
        DT_TRY(dt_nccl_events_new(root));
    struct dt_nccl_events *events = root->idle;
    DT_CUDA(cuda, cudaEventRecord(events->ready, cuda->stream), "begin an exchange");
    DT_CUDA(cuda, cudaStreamWaitEvent(dt_nccl_stream(of(comm)), events->ready, 0),
            "begin an exchange");
    root->idle = events->next;
    events->next = root->posted;
    root->posted = events;
    *out = events;
    return DT_OK;
}

static dt_status end(struct dt_comm *comm, struct dt_nccl_events *events,
                     struct dt_request *request)
{
    struct dt_nccl_root *root = of(comm)->root;
    DT_CUDA(root->cuda, cudaEventRecord(events->done, dt_nccl_stream(of(comm))), "end an exchange");
    request->state[0] = events;
    return DT_OK;
}

static dt_status copy_here(struct dt_comm *comm, void *to, const void *from, size_t bytes)
{
    const struct dt_nccl_seat *seat = of(comm);
    DT_CUDA(seat->root->cuda,
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, dt_nccl_stream(seat)),
            "copy what a rank sends itself");
    return DT_OK;
}

static dt_status copy_own(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                          const struct dt_message *recvs, int recv_count)
{
    int from = 0;
    for (int i = 0; i < recv_count; i++) {
        if (recvs[i].peer != comm->rank)
            continue;
        while (from < send_count && sends[from].peer != comm->rank)
            from++;
        if (from == send_count || sends[from].bytes != recvs[i].bytes)
            return dt_fail(DT_EUSAGE, "rank %d does not send itself the %zu bytes it expects",
                           comm->rank, recvs[i].bytes);
        DT_TRY(copy_here(comm, recvs[i].at, sends[from++].at, recvs[i].bytes));
    }
    return DT_OK;
}

/* Posts the pieces to and from other ranks, between ncclGroupStart and ncclGroupEnd. */
static dt_status send_and_receive(struct dt_comm *comm, const struct dt_message *sends,
                                  int send_count, const struct dt_message *recvs, int recv_count)
{
    struct dt_nccl_root *root = of(comm)->root;
    ncclComm_t nccl = of(comm)->group->comm;
    for (int i = 0; i < send_count; i++)
        if (sends[i].peer != comm->rank)
            DT_TRY(dt_nccl_check(root,
                                 ncclSend(sends[i].at, sends[i].bytes, ncclUint8, sends[i].peer,
                                          nccl, dt_nccl_stream(of(comm))),
                                 nccl, "ncclSend"));
    for (int i = 0; i < recv_count; i++)
        if (recvs[i].peer != comm->rank)
            DT_TRY(dt_nccl_check(root,
                                 ncclRecv(recvs[i].at, recvs[i].bytes, ncclUint8, recvs[i].peer,
                                          nccl, dt_nccl_stream(of(comm))),
                                 nccl, "ncclRecv"));
    return DT_OK;
}

/* The calls of a post, under the eyes of the watchdog. */
static dt_status post(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                      const struct dt_message *recvs, int recv_count)
{
    struct dt_nccl_root *root = of(comm)->root;
    ncclComm_t nccl = of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    dt_status status = dt_nccl_check(root, ncclGroupStart(), nccl, "ncclGroupStart");
    if (status == DT_OK) {
        status = send_and_receive(comm, sends, send_count, recvs, recv_count);
        ncclResult_t code = ncclGroupEnd(); /* always, also after an error */
        if (status == DT_OK)
            status = dt_nccl_check(root, code, nccl, "ncclGroupEnd");
    }
    atomic_fetch_add(&root->watch.calls, 1);
    return status;
}

dt_status dt_nccl_exchange(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                           const struct dt_message *recvs, int recv_count,
                           struct dt_request *request)
{
    struct dt_nccl_events *events = NULL;
    DT_TRY(begin(comm, &events));
    DT_TRY(copy_own(comm, sends, send_count, recvs, recv_count));
    if (comm->size > 1)
        DT_TRY(post(comm, sends, send_count, recvs, recv_count));
    return end(comm, events, request);
}

dt_status dt_nccl_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request)
{
    struct dt_message to = {(comm->rank + 1) % comm->size, (void *)send, bytes};
    struct dt_message from = {(comm->rank + comm->size - 1) % comm->size, recv, bytes};
    return dt_nccl_exchange(comm, &to, 1, &from, 1, request);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static dt_status alltoall_of(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_nccl_root *root = of(comm)->root;
    ncclComm_t nccl = of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    ncclResult_t code = ncclAlltoAll(send, recv, bytes, ncclUint8, nccl, dt_nccl_stream(of(comm)));
    atomic_fetch_add(&root->watch.calls, 1);
    return dt_nccl_check(root, code, nccl, "ncclAlltoAll");
}
#else
static dt_status alltoall_of(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_nccl_root *root = of(comm)->root;
    ncclComm_t nccl = of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    dt_status status = dt_nccl_check(root, ncclGroupStart(), nccl, "ncclGroupStart");
    for (int i = 0; status == DT_OK && i < comm->size; i++) {
        struct dt_message to = {i, (char *)send + (size_t)i * bytes, bytes};
        struct dt_message from = {i, (char *)recv + (size_t)i * bytes, bytes};
        status = i == comm->rank ? copy_here(comm, from.at, to.at, bytes)
                                 : send_and_receive(comm, &to, 1, &from, 1);
    }
    ncclResult_t code = ncclGroupEnd();
    atomic_fetch_add(&root->watch.calls, 1);
    DT_TRY(status);
    return dt_nccl_check(root, code, nccl, "ncclGroupEnd");
}
#endif

dt_status dt_nccl_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request)
{
    struct dt_nccl_events *events = NULL;
    DT_TRY(begin(comm, &events));
    if (comm->size == 1)
        DT_TRY(copy_here(comm, recv, send, bytes));
    else
        DT_TRY(alltoall_of(comm, send, recv, bytes));
    return end(comm, events, request);
}

dt_status dt_nccl_wait(struct dt_comm *comm, struct dt_request *request)
{
    struct dt_nccl_root *root = of(comm)->root;
    struct dt_nccl_events *events = request->state[0], **at = &root->posted;
    struct dt_cuda *cuda = root->cuda;
    if (dt_cuda_enter(&cuda->base) == NULL)
        DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaStreamWaitEvent(cuda->stream, events->done, 0), "wait for an exchange");
    while (*at != events)
        at = &(*at)->next;
    *at = events->next;
    events->next = root->idle;
    root->idle = events;
    return DT_OK;
}
