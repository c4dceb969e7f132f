/* SPDX-License-Identifier: MIT */
/* Posting: what one thread posts between the outermost ncclGroupStart and ncclGroupEnd becomes one
 * task a communicator. With a communicator that does not block, a call may return ncclInProgress,
 * and what was posted is on its stream only once ncclCommGetAsyncError says ncclSuccess. */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int depth;
static _Thread_local struct posting *postings;
static _Thread_local ncclResult_t failed;
static _Thread_local struct ncclComm *later[RANKS];
static _Thread_local int later_count;

bool group_later(struct ncclComm *comm)
{
    if (depth == 0)
        return false;
    for (int i = 0; i < later_count; i++)
        if (later[i] == comm)
            return true;
    if (later_count < RANKS)
        later[later_count++] = comm;
    return true;
}

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

/* The posting of a communicator in this group. Locked. */
static struct posting *posting_of(struct ncclComm *comm, cudaStream_t stream)
{
    struct posting **at = &postings;
    while (*at != NULL && (*at)->comm != comm)
        at = &(*at)->next;
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL)
            abort();
        (*at)->comm = comm;
        (*at)->stream = stream;
    } else if ((*at)->stream != stream) {
        fake_complain("nccl %s: two streams in one group", comm->name);
    }
    return *at;
}

static void add(struct posting *posting, const struct piece *piece)
{
    if (piece->bytes == 0)
        return;
    if (posting->count == posting->room) {
        posting->room = posting->room > 0 ? 2 * posting->room : 16;
        posting->pieces = realloc(posting->pieces, (size_t)posting->room * sizeof *posting->pieces);
        if (posting->pieces == NULL)
            abort();
    }
    posting->pieces[posting->count++] = *piece;
}

/* Locked. */
static ncclResult_t check(const char *name, struct ncclComm *comm, cudaStream_t handle, int peer)
{
    ncclResult_t result = comm_ready(name, comm);
    if (result != ncclSuccess)
        return result;
    const struct CUstream_st *stream = fake_stream_at(handle);
    if (stream == NULL || stream->device->index != comm->device) {
        fake_complain("%s: the stream is not of the communicator's device", name);
        return ncclInvalidUsage;
    }
    return peer < 0 || peer >= comm->size ? ncclInvalidArgument : ncclSuccess;
}

static ncclResult_t reachable(const char *name, const struct ncclComm *comm, const void *memory,
                              size_t bytes)
{
    struct fake_device *device = NULL;
    if (bytes == 0 || fake_pinned(memory, bytes))
        return ncclSuccess;
    if (fake_block_at(memory, bytes, &device) == NULL || device->index != comm->device) {
        fake_complain("%s: %zu bytes at %p are not memory of device %d", name, bytes, memory,
                      comm->device);
        return ncclInvalidArgument;
    }
    return ncclSuccess;
}

static void say(const struct posting *posting)
{
    char line[220];
    int length =
        snprintf(line, sizeof line, "%s comm=%s",
                 posting->count > 0 ? posting->pieces[0].kind : "nothing", posting->comm->name);
    for (int i = 0; i < posting->count && length < 180; i++) {
        const struct piece *piece = &posting->pieces[i];
        length += snprintf(line + length, sizeof line - (size_t)length, " %s%d:%llux%d",
                           piece->send ? ">" : "<", piece->peer, (unsigned long long)piece->count,
                           piece->type);
    }
    log_post(posting->comm, "%s", line);
}

/* Puts all that the group has, at once or a little later. */
static ncclResult_t flush(void)
{
    struct posting *all = postings;
    postings = NULL;
    ncclResult_t result = failed;
    failed = ncclSuccess;
    bool free_to_wait = true;
    fake_lock();
    for (struct posting *at = all; at != NULL; at = at->next) {
        say(at);
        at->fault = fake_fault("exchange", at->comm->root_rank);
        free_to_wait = free_to_wait && !at->comm->blocking;
    }
    struct ncclComm *one = all != NULL ? all->comm : NULL;
    uint64_t chance =
        one != NULL
            ? (one->random = one->random * 6364136223846793005u + 1442695040888963407u) >> 40
            : 0;
    if (result != ncclSuccess || !free_to_wait || (chance & 1) == 0 || all == NULL) {
        for (struct posting *at = all, *next; at != NULL; at = next) {
            next = at->next;
            ncclResult_t mine = result == ncclSuccess ? posting_put(at) : ncclSuccess;
            if (result != ncclSuccess)
                posting_free(at);
            result = result != ncclSuccess ? result : mine;
        }
        fake_unlock();
        return result;
    }
    fake_unlock();
    struct call call = {.job = JOB_POST, .postings = all, .delay_us = (int)(chance >> 1) % 300};
    return call_start(&call);
}

ncclResult_t ncclGroupEnd(void)
{
    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0)
        return ncclSuccess;
    ncclResult_t result = flush();
    for (int i = 0; i < later_count; i++) {
        fake_lock();
        while (later[i]->state == ncclInProgress)
            pthread_cond_wait(&fake_progress, fake_mutex());
        result = result != ncclSuccess ? result : later[i]->state;
        fake_unlock();
    }
    later_count = 0;
    return result;
}

static ncclResult_t ended(ncclResult_t result)
{
    if (result != ncclSuccess && failed == ncclSuccess)
        failed = result;
    ncclResult_t end = ncclGroupEnd();
    return result != ncclSuccess ? result : end;
}

static ncclResult_t one_piece(const char *name, struct piece piece, ncclComm_t comm,
                              cudaStream_t stream)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    ncclGroupStart();
    ncclResult_t result = nccl_enter(name, comm->root_rank);
    piece.bytes = piece.count * type_bytes(piece.type);
    fake_lock();
    if (result == ncclSuccess)
        result = check(name, comm, stream, piece.peer);
    if (result == ncclSuccess)
        result = reachable(name, comm, piece.at, piece.bytes);
    if (result == ncclSuccess)
        add(posting_of(comm, stream), &piece);
    fake_unlock();
    return ended(result);
}

ncclResult_t ncclSend(const void *at, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return one_piece(__func__, (struct piece){peer, true, at, count, (int)type, 0, 0, "p2p"}, comm,
                     stream);
}

ncclResult_t ncclRecv(void *at, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return one_piece(__func__, (struct piece){peer, false, at, count, (int)type, 0, 0, "p2p"}, comm,
                     stream);
}

/* To and from each rank; recv NULL: into what the posting gathers. */
static void all_pieces(struct posting *posting, struct piece piece, const void *recv, bool apart)
{
    size_t bytes = piece.bytes;
    const char *send = piece.at;
    for (int i = 0; i < posting->comm->size; i++) {
        piece.peer = i;
        piece.send = true;
        piece.at = send + (apart ? (size_t)i * bytes : 0);
        add(posting, &piece);
        piece.send = false;
        piece.at = recv != NULL ? (const char *)recv + (size_t)i * bytes : send;
        add(posting, &piece);
    }
}

ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    ncclGroupStart();
    ncclResult_t result = nccl_enter(__func__, comm->root_rank);
    struct piece piece = {0, true,      send, count, (int)type, count * type_bytes((int)type),
                          0, "alltoall"};
    fake_lock();
    if (result == ncclSuccess)
        result = check(__func__, comm, stream, 0);
    size_t all = piece.bytes * (size_t)comm->size;
    if (result == ncclSuccess)
        result = reachable(__func__, comm, send, all);
    if (result == ncclSuccess)
        result = reachable(__func__, comm, recv, all);
    if (result == ncclSuccess && send == recv)
        result = ncclInvalidArgument;
    if (result == ncclSuccess)
        all_pieces(posting_of(comm, stream), piece, recv, true);
    fake_unlock();
    return ended(result);
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    ncclGroupStart();
    ncclResult_t result = nccl_enter(__func__, comm->root_rank);
    struct piece piece = {0, true, send, count, (int)type, count * 4, 0, "allreduce"};
    fake_lock();
    if (result == ncclSuccess)
        result = check(__func__, comm, stream, 0);
    if (result == ncclSuccess && type != ncclFloat32 && type != ncclInt32)
        result = ncclInvalidArgument;
    if (result == ncclSuccess)
        result = reachable(__func__, comm, recv, piece.bytes);
    if (result == ncclSuccess) {
        struct posting *posting = posting_of(comm, stream);
        posting->gathered = malloc(piece.bytes * (size_t)comm->size);
        if (posting->gathered == NULL)
            abort();
        posting->reduce.count = count;
        posting->reduce.type = (int)type;
        posting->reduce.op = (int)op;
        posting->reduce.to = recv;
        all_pieces(posting, piece, NULL, false);
    }
    fake_unlock();
    return ended(result);
}
