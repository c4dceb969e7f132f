/* SPDX-License-Identifier: MIT */
/* The data of an exchange is in one piece of host memory, which later exchanges reuse: a plan
 * repeats its exchanges, so after its first step nothing is allocated. */
#include "kernels/staged.h"
#include "kernels/comm/comm_int.h"

#include "base/clock.h"
#include "kernels/compute.h"

#include <stdlib.h>

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

/* A posted exchange; owned by the comm until the wait. */
struct stage {
    struct stage *next;
    struct dt_request inner;
    char *memory; /* data to send, then received data */
    size_t room, sent;
    struct dt_message *pieces; /* pieces to receive, on the device; room for those to send, too */
    int count, most;
};

struct staged {
    struct dt_comm *inner;
    struct stage *posted, *idle;
};

static struct staged *staged_of(struct dt_comm *comm)
{
    return comm->state;
}

static struct dt_comm *inner_of(struct dt_comm *comm)
{
    return staged_of(comm)->inner;
}

static void free_stages(struct stage *first)
{
    while (first != NULL) {
        struct stage *next = first->next;
        free(first->memory);
        free(first->pieces);
        free(first);
        first = next;
    }
}

/* The inner comm first: it may still write to posted buffers. */
static void staged_release(struct dt_comm *comm)
{
    dt_comm_free(inner_of(comm));
    free_stages(staged_of(comm)->posted);
    free_stages(staged_of(comm)->idle);
    free(comm);
}

static dt_status grow_stage(struct stage *stage, size_t bytes, int pieces)
{
    if (bytes > stage->room) {
        free(stage->memory);
        stage->memory = malloc(bytes);
        stage->room = stage->memory != NULL ? bytes : 0;
    }
    if (pieces > stage->most) {
        free(stage->pieces);
        stage->pieces = calloc((size_t)pieces, sizeof *stage->pieces);
        stage->most = stage->pieces != NULL ? pieces : 0;
    }
    if (stage->room < bytes || stage->most < pieces)
        return dt_fail(DT_ENOMEM, "no %zu bytes of host memory for an exchange", bytes);
    return DT_OK;
}

/* The first idle one that is large enough, or any. */
static dt_status take_stage(struct staged *staged, size_t bytes, int pieces, struct stage **out)
{
    struct stage **at = &staged->idle;
    while (*at != NULL && ((*at)->room < bytes || (*at)->most < pieces))
        at = &(*at)->next;
    if (*at == NULL)
        at = &staged->idle;
    struct stage *stage = *at != NULL ? *at : calloc(1, sizeof *stage);
    if (stage == NULL)
        return dt_fail(DT_ENOMEM, "no memory for an exchange");
    if (*at != NULL)
        *at = stage->next;
    stage->next = staged->posted;
    staged->posted = stage;
    *out = stage;
    return grow_stage(stage, bytes, pieces);
}

static size_t sum_bytes(const struct dt_message *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    return bytes;
}

/* Copies the data to send to the host; all work queued before is then done. */
static dt_status fetch_pieces(struct dt_comm *comm, const struct dt_pieces *pieces,
                              struct stage **out)
{
    struct dt_device *device = comm->device;
    struct stage *stage = NULL;
    int recv_count = pieces->recv_count;
    size_t bytes =
        sum_bytes(pieces->sends, pieces->send_count) + sum_bytes(pieces->recvs, recv_count);
    /* one more of each, so that empty exchanges have an address, too */
    DT_TRY(take_stage(staged_of(comm), bytes + 1, pieces->send_count + 2 * recv_count + 1, &stage));
    DT_TRY(device->compute->finish(device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    char *at = stage->memory;
    for (int i = 0; i < pieces->send_count; i++) {
        const struct dt_message *send = &pieces->sends[i];
        DT_TRY(device->compute->memory.get(device, at, send->at, (int64_t)send->bytes));
        at += send->bytes;
    }
    stage->sent = (size_t)(at - stage->memory);
    stage->count = recv_count;
    for (int i = 0; i < recv_count; i++)
        stage->pieces[i] = pieces->recvs[i];
    *out = stage;
    return DT_OK;
}

static dt_status staged_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                                 struct dt_request *request)
{
    struct dt_comm *inner = inner_of(comm);
    struct stage *stage = NULL;
    DT_TRY(fetch_pieces(comm, pieces, &stage));
    struct dt_pieces there = *pieces; /* on the host */
    there.recvs = stage->pieces + pieces->recv_count;
    there.sends = there.recvs + pieces->recv_count;
    char *at = stage->memory;
    for (int i = 0; i < pieces->send_count; i++) {
        there.sends[i] = pieces->sends[i];
        there.sends[i].at = at;
        at += there.sends[i].bytes;
    }
    for (int i = 0; i < pieces->recv_count; i++) {
        there.recvs[i] = pieces->recvs[i];
        there.recvs[i].at = at;
        at += there.recvs[i].bytes;
    }
    request->state[0] = stage;
    return inner->ops->exchange(inner, &there, &stage->inner);
}

static dt_status staged_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                                 struct dt_request *request)
{
    struct dt_comm *inner = inner_of(comm);
    struct dt_message all = {0, (void *)send, bytes * (size_t)comm->size};
    struct dt_message back = {0, recv, bytes * (size_t)comm->size};
    struct stage *stage = NULL;
    DT_TRY(fetch_pieces(comm, &(struct dt_pieces){&all, &back, 1, 1}, &stage));
    request->state[0] = stage;
    return inner->ops->alltoall(inner, stage->memory, stage->memory + stage->sent, bytes,
                                &stage->inner);
}

static dt_status staged_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                              struct dt_request *request)
{
    struct dt_comm *inner = inner_of(comm);
    struct dt_message to = {0, (void *)send, bytes}, from = {0, recv, bytes};
    struct stage *stage = NULL;
    DT_TRY(fetch_pieces(comm, &(struct dt_pieces){&to, &from, 1, 1}, &stage));
    request->state[0] = stage;
    return inner->ops->shift(inner, stage->memory, stage->memory + stage->sent, bytes,
                             &stage->inner);
}

static dt_status staged_wait(struct dt_comm *comm, struct dt_request *request)
{
    struct staged *staged = staged_of(comm);
    struct dt_device *device = comm->device;
    struct stage *stage = request->state[0], **in = &staged->posted;
    DT_TRY(staged->inner->ops->wait(staged->inner, &stage->inner));
    char *at = stage->memory + stage->sent;
    for (int i = 0; i < stage->count; i++) {
        const struct dt_message *to = &stage->pieces[i];
        DT_TRY(device->compute->memory.put(device, to->at, at, (int64_t)to->bytes));
        at += to->bytes;
    }
    while (*in != stage)
        in = &(*in)->next;
    *in = stage->next;
    stage->next = staged->idle;
    staged->idle = stage;
    return DT_OK;
}

static dt_status staged_barrier(struct dt_comm *comm)
{
    return inner_of(comm)->ops->barrier(inner_of(comm));
}

static dt_status staged_gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    return inner_of(comm)->ops->gather(inner_of(comm), send, recv, bytes);
}

static dt_status staged_broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    return inner_of(comm)->ops->broadcast(inner_of(comm), data, bytes);
}

static dt_status staged_split(struct dt_comm *comm, int color, int key,
                              const struct dt_comm_config *config, struct dt_comm **out)
{
    struct dt_comm *part = NULL;
    DT_TRY(inner_of(comm)->ops->split(inner_of(comm), color, key, config, &part));
    dt_status status = dt_comm_staged(part, comm->device, out);
    if (status < 0)
        dt_comm_free(part);
    return status;
}

static void poll_inner(struct dt_comm *comm)
{
    if (inner_of(comm)->ops->poll != NULL)
        inner_of(comm)->ops->poll(inner_of(comm));
}

static dt_status staged_check(struct dt_comm *comm)
{
    return dt_comm_check(inner_of(comm));
}

static void staged_note(struct dt_comm *comm, const char *what, int index)
{
    if (inner_of(comm)->ops->note != NULL)
        inner_of(comm)->ops->note(inner_of(comm), what, index);
}

extern const struct dt_comm_ops dt_comm_staged_ops;

dt_status dt_comm_staged(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm)
{
    DT_TRY(dt_comm_make(&dt_comm_staged_ops, sizeof(struct staged), comm));
    (*comm)->rank = host->rank;
    (*comm)->size = host->size;
    (*comm)->device = device;
    staged_of(*comm)->inner = host;
    return DT_OK;
}

const struct dt_comm_ops dt_comm_staged_ops = {
    .name = "staged",
    .over = dt_comm_staged,
    .split = staged_split,
    .free = staged_release,
    .barrier = staged_barrier,
    .gather = staged_gather,
    .broadcast = staged_broadcast,
    .alltoall = staged_alltoall,
    .shift = staged_shift,
    .exchange = staged_exchange,
    .wait = staged_wait,
    .poll = poll_inner,
    .check = staged_check,
    .note = staged_note,
};
