/* SPDX-License-Identifier: MIT */
/* Every call is an exchange of pieces. A piece travels through the pipe of its pair behind a header with the comm, the
 * number of the call on it, and the index among the pieces of the call between the two. The pipe is small, so a piece
 * makes progress whenever one of the two ranks runs this code (a post, a wait, a poll). An arriving piece is written to
 * its destination if its receive is posted; until then it stays in the pipe, unless this rank waits for a piece behind
 * it: then it is set aside. */
#include "kernels/shared.h"

#include "kernels/comm/comm_int.h"
#include "kernels/comm/shared_move_int.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS 20000000

/* This rank's view of a comm. */
struct seat {
    struct dt_shared_root *root;
    uint64_t id, calls;
    int under_way;
    int members[]; /* ranks of the root */
};

static const struct dt_comm_ops ops;

static dt_status join(struct dt_shared_root *root, uint64_t id, const int members[], int size,
                      int rank, struct dt_comm **out)
{
    struct dt_comm *comm = calloc(1, sizeof *comm);
    struct seat *seat = calloc(1, sizeof *seat + (size_t)size * sizeof members[0]);
    if (comm == NULL || seat == NULL) {
        free(comm);
        free(seat);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    }
    *seat = (struct seat){.root = root, .id = id};
    memcpy(seat->members, members, (size_t)size * sizeof members[0]);
    *comm = (struct dt_comm){.ops = &ops, .rank = rank, .size = size, .state = seat};
    root->users++;
    *out = comm;
    return DT_OK;
}

static void release(struct dt_comm *comm)
{
    struct seat *seat = comm->state;
    seat->root->broken |= seat->under_way > 0;
    if (--seat->root->users == 0)
        dt_shared_root_free(seat->root);
    free(seat);
    free(comm);
}

static int index_of(const struct dt_message pieces[], int at)
{
    int index = 0;
    for (int i = 0; i < at; i++)
        index += pieces[i].peer == pieces[at].peer;
    return index;
}

/* Copies the pieces a rank sends to itself. */
static dt_status copy_own(int rank, const struct dt_message *sends, int send_count,
                          const struct dt_message *recvs, int recv_count)
{
    int from = 0;
    for (int i = 0; i < recv_count; i++) {
        if (recvs[i].peer != rank)
            continue;
        while (from < send_count && sends[from].peer != rank)
            from++;
        if (from == send_count || sends[from].bytes != recvs[i].bytes)
            return dt_fail(DT_EUSAGE, "rank %d does not send itself the %zu bytes it expects", rank,
                           recvs[i].bytes);
        memcpy(recvs[i].at, sends[from++].at, recvs[i].bytes);
    }
    return DT_OK;
}

static dt_status exchange(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                          const struct dt_message *recvs, int recv_count,
                          struct dt_request *request)
{
    struct seat *seat = comm->state;
    struct dt_shared_transfer *transfer = NULL;
    DT_TRY(copy_own(comm->rank, sends, send_count, recvs, recv_count));
    DT_TRY(dt_shared_transfer_new(seat->root, send_count + recv_count, &transfer));
    struct dt_shared_frame frame = {.comm = seat->id, .call = seat->calls++};
    for (int pass = 0; pass < 2; pass++) {
        const struct dt_message *list = pass == 0 ? recvs : sends;
        for (int i = 0; i < (pass == 0 ? recv_count : send_count); i++) {
            if (list[i].peer == comm->rank)
                continue;
            frame.index = (uint64_t)index_of(list, i);
            frame.bytes = list[i].bytes;
            dt_shared_enqueue(seat->root, transfer, &frame, seat->members[list[i].peer], pass == 1,
                              list[i].at);
        }
    }
    seat->under_way++;
    request->state[0] = transfer;
    bool moved;
    return dt_shared_progress(seat->root, &moved);
}

static dt_status wait(struct dt_comm *comm, struct dt_request *request)
{
    struct seat *seat = comm->state;
    DT_TRY(dt_shared_wait(seat->root, request->state[0]));
    seat->under_way--;
    return DT_OK;
}

/* The next wait reports an error again. */
static void poll_once(struct dt_comm *comm)
{
    struct seat *seat = comm->state;
    bool moved;
    if (!seat->root->broken && dt_shared_progress(seat->root, &moved) < 0)
        return;
}

static dt_status exchange_now(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                              const struct dt_message *recvs, int recv_count)
{
    struct dt_request request = {.bytes = 0};
    DT_TRY(exchange(comm, sends, send_count, recvs, recv_count, &request));
    return wait(comm, &request);
}

/* Dissemination barrier: messages to and from ranks 1, 2, 4, ... away (Hensgen et al. 1988). */
static dt_status barrier(struct dt_comm *comm)
{
    char out = 0, in = 0;
    for (int away = 1; away < comm->size; away *= 2) {
        struct dt_message to = {(comm->rank + away) % comm->size, &out, 1};
        struct dt_message from = {(comm->rank + comm->size - away) % comm->size, &in, 1};
        DT_TRY(exchange_now(comm, &to, 1, &from, 1));
    }
    return DT_OK;
}

static dt_status gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_message own = {0, (void *)send, bytes};
    if (comm->rank != 0)
        return exchange_now(comm, &own, 1, NULL, 0);
    struct dt_message *all = calloc((size_t)comm->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to gather from %d ranks", comm->size);
    for (int i = 0; i < comm->size; i++)
        all[i] = (struct dt_message){i, (char *)recv + (size_t)i * bytes, bytes};
    dt_status status = exchange_now(comm, &own, 1, all, comm->size);
    free(all);
    return status;
}

static dt_status broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    struct dt_message from = {0, data, bytes};
    if (comm->rank != 0)
        return exchange_now(comm, NULL, 0, &from, 1);
    struct dt_message *all = calloc((size_t)comm->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to tell %d ranks", comm->size);
    for (int i = 1; i < comm->size; i++)
        all[i - 1] = (struct dt_message){i, data, bytes};
    dt_status status = exchange_now(comm, all, comm->size - 1, NULL, 0);
    free(all);
    return status;
}

static dt_status alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                          struct dt_request *request)
{
    struct seat *seat = comm->state;
    struct dt_message *sends = seat->root->lists, *recvs = sends + seat->root->map.region->ranks;
    for (int i = 0; i < comm->size; i++) {
        int peer = (comm->rank + i) % comm->size; /* not all to the same rank at once */
        sends[i] = (struct dt_message){peer, (char *)send + (size_t)peer * bytes, bytes};
        recvs[i] = (struct dt_message){peer, (char *)recv + (size_t)peer * bytes, bytes};
    }
    return exchange(comm, sends, comm->size, recvs, comm->size, request);
}

static dt_status shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                       struct dt_request *request)
{
    struct dt_message to = {(comm->rank + 1) % comm->size, (void *)send, bytes};
    struct dt_message from = {(comm->rank + comm->size - 1) % comm->size, recv, bytes};
    return exchange(comm, &to, 1, &from, 1, request);
}

static dt_status split(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out)
{
    struct seat *seat = comm->state;
    int mine[2] = {color, key}, rank = 0;
    int *pairs = calloc((size_t)comm->size * 3, sizeof *pairs);
    (void)config;
    if (pairs == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to split a communicator");
    int *members = pairs + (size_t)comm->size * 2;
    dt_status status = gather(comm, mine, pairs, sizeof mine);
    if (status == DT_OK)
        status = broadcast(comm, pairs, (size_t)comm->size * sizeof mine);
    if (status == DT_OK) {
        int size = dt_comm_members(comm, pairs, color, members, &rank);
        for (int i = 0; i < size; i++)
            members[i] = seat->members[members[i]];
        uint64_t id = dt_rng_hash(seat->id, seat->calls, (uint64_t)(uint32_t)color);
        status = join(seat->root, id, members, size, rank, out);
    }
    free(pairs);
    return status;
}

dt_status dt_comm_shared(int fd, int rank, int ranks, struct dt_comm **comm)
{
    struct dt_shared_root *root = NULL;
    DT_TRY(dt_shared_root_new(fd, rank, ranks, &root));
    int *members = calloc((size_t)ranks, sizeof *members);
    dt_status status =
        members != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %d ranks", ranks);
    for (int i = 0; status == DT_OK && i < ranks; i++)
        members[i] = i;
    if (status == DT_OK)
        status = join(root, 1, members, ranks, rank, comm);
    if (status != DT_OK)
        dt_shared_root_free(root);
    free(members);
    return status;
}

/* The failure of any rank fails all, since a rank that computes may be waiting for it on a device. A rank that has
 * finished and left has not failed. */
static dt_status check(struct dt_comm *comm)
{
    struct dt_shared_root *root = ((struct seat *)comm->state)->root;
    int64_t now = dt_clock_ns();
    if (now - root->looked_ns < LOOK_NS)
        return DT_OK;
    root->looked_ns = now;
    for (int i = 0; i < root->map.region->ranks; i++) {
        int pid;
        if (i != root->map.rank && dt_shared_failed(&root->map, i, &pid))
            return dt_fail(DT_ETIMEOUT, "rank %d (process %d) has failed or ended", i, pid);
    }
    return DT_OK;
}

static dt_status tell_failure(struct dt_comm *comm, int64_t deadline_ns)
{
    (void)deadline_ns;
    dt_shared_fail(&((struct seat *)comm->state)->root->map);
    return DT_OK;
}

static const struct dt_comm_ops ops = {
    .name = "shared",
    .split = split,
    .free = release,
    .barrier = barrier,
    .gather = gather,
    .broadcast = broadcast,
    .alltoall = alltoall,
    .shift = shift,
    .exchange = exchange,
    .wait = wait,
    .poll = poll_once,
    .check = check,
    .abort = tell_failure,
};
