/* SPDX-License-Identifier: MIT */
/* An exchange as it runs on a stream: pieces of a pair of ranks one after the other, those of
 * different pairs as they come. */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t type_bytes(int type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        return 4;
    }
}

void posting_free(struct posting *posting)
{
    free(posting->pieces);
    free(posting->gathered);
    free(posting);
}

static void label_of(const struct piece *piece, uint64_t number, struct label *label)
{
    memset(label, 0, sizeof *label);
    memcpy(label->kind, piece->kind, sizeof label->kind);
    label->number = number;
    label->count = piece->count;
    label->type = piece->type;
}

static bool same(const struct label *a, const struct label *b)
{
    return strcmp(a->kind, b->kind) == 0 && a->number == b->number && a->count == b->count &&
           a->type == b->type;
}

/* One slot of a piece, when the mailbox is ready: 1; 0: not yet; -1: the other
 * side has another piece. */
static int move(struct ncclComm *comm, struct piece *piece)
{
    int from = piece->send ? comm->rank : piece->peer, to = piece->send ? piece->peer : comm->rank;
    struct mailbox *box = &comm->world->mail[from * comm->size + to];
    uint64_t written = atomic_load(&box->written), read = atomic_load(&box->read);
    size_t left = piece->bytes - piece->done, now = left < SLOT ? left : SLOT;
    struct label label;
    if (piece->send) {
        if (written != read)
            return 0;
        label_of(piece, comm->sent[to], &box->label);
        box->bytes = now;
        memcpy(box->data, (const char *)piece->at + piece->done, now);
        atomic_store(&box->written, written + 1);
    } else {
        if (written == read)
            return 0;
        label_of(piece, comm->received[from], &label);
        if (!same(&label, &box->label) || box->bytes != now) {
            fake_complain(
                "nccl %s: rank %d expects %s number %llu from rank %d, %llu of type %d; it "
                "sent %s number %llu, %llu of type %d",
                comm->name, comm->rank, label.kind, (unsigned long long)label.number, from,
                (unsigned long long)label.count, label.type, box->label.kind,
                (unsigned long long)box->label.number, (unsigned long long)box->label.count,
                box->label.type);
            return -1;
        }
        memcpy((char *)(uintptr_t)piece->at + piece->done, box->data, now);
        atomic_store(&box->read, read + 1);
    }
    piece->done += now;
    if (piece->done == piece->bytes)
        piece->send ? comm->sent[to]++ : comm->received[from]++;
    return 1;
}

/* No earlier piece of the same pair and direction is unfinished. */
static bool first(const struct posting *posting, int i)
{
    for (int k = 0; k < i; k++)
        if (posting->pieces[k].peer == posting->pieces[i].peer &&
            posting->pieces[k].send == posting->pieces[i].send &&
            posting->pieces[k].done < posting->pieces[k].bytes)
            return false;
    return true;
}

/* False: something else came. */
static bool exchange(struct posting *posting, const struct fake_device *device)
{
    struct ncclComm *comm = posting->comm;
    for (int idle = 0;;) {
        bool all = true, moved = false;
        for (int i = 0; i < posting->count; i++) {
            struct piece *piece = &posting->pieces[i];
            if (piece->done == piece->bytes)
                continue;
            all = false;
            int progress = first(posting, i) ? move(comm, piece) : 0;
            if (progress < 0)
                return false;
            moved = moved || progress > 0;
        }
        if (all || atomic_load(&comm->aborted) || device->sticky != cudaSuccess)
            return true;
        struct timespec time = {0, idle < 200 ? 20000 : 500000};
        idle = moved ? 0 : idle + 1;
        if (idle > 20)
            nanosleep(&time, NULL);
        else if (idle > 0)
            sched_yield();
    }
}

/* The result in the order of ranks, so that all have the same. */
static void reduce(const struct posting *posting, void *to)
{
    int size = posting->comm->size, op = posting->reduce.op;
    uint64_t n = posting->reduce.count;
    for (uint64_t i = 0; i < n; i++)
        for (int rank = 0; rank < size; rank++) {
            uint64_t at = (uint64_t)rank * n + i;
            if (posting->reduce.type == ncclFloat32) {
                float *out = (float *)to + i, one = ((const float *)posting->gathered)[at];
                *out = rank == 0       ? one
                       : op == ncclSum ? *out + one
                       : op == ncclMax ? (one > *out ? one : *out)
                                       : (one < *out ? one : *out);
            } else {
                int32_t *out = (int32_t *)to + i, one = ((const int32_t *)posting->gathered)[at];
                *out = rank == 0       ? one
                       : op == ncclSum ? *out + one
                       : op == ncclMax ? (one > *out ? one : *out)
                                       : (one < *out ? one : *out);
            }
        }
}

static bool see_all(struct CUstream_st *stream, struct posting *posting)
{
    for (int i = 0; i < posting->count; i++) {
        struct piece *piece = &posting->pieces[i];
        piece->done = 0;
        if (posting->reduce.count > 0 && !piece->send)
            piece->at = posting->gathered + (size_t)piece->peer * piece->bytes;
        else if (!fake_see_field(stream, &piece->at, (int64_t)piece->bytes))
            return false;
    }
    return true;
}

static void spoil(const struct posting *posting, const char *act)
{
    for (int i = 0; strcmp(act, "corrupt") == 0 && i < posting->count; i++)
        if (!posting->pieces[i].send) {
            ((unsigned char *)(uintptr_t)posting->pieces[i].at)[1] ^= 0x40;
            return;
        }
}

static void until_aborted(const struct ncclComm *comm)
{
    while (!atomic_load(&comm->aborted))
        fake_sleep_ms(1);
}

static cudaError_t execute(struct CUstream_st *stream, struct posting *posting)
{
    struct ncclComm *comm = posting->comm;
    const char *act = posting->fault != NULL ? posting->fault->act : "";
    void *to = posting->reduce.to;
    if (atomic_load(&comm->aborted))
        return cudaSuccess;
    if (!see_all(stream, posting) ||
        !fake_see_field(stream, &to,
                        (int64_t)(posting->reduce.count * type_bytes(posting->reduce.type))))
        return cudaErrorIllegalAddress;
    if (strcmp(act, "delay") == 0)
        fake_sleep_ms(posting->fault->ms);
    if (strcmp(act, "drop") == 0 || strcmp(act, "hang") == 0)
        until_aborted(comm);
    if (strcmp(act, "error") == 0) {
        fake_lock();
        comm_fail(comm,
                  posting->fault->code != 0 ? (ncclResult_t)posting->fault->code : ncclRemoteError,
                  "a planted error");
        fake_unlock();
        until_aborted(comm);
    }
    if (atomic_load(&comm->aborted))
        return cudaSuccess;
    bool fine = exchange(posting, stream->device);
    if (!fine) {
        fake_lock();
        comm_fail(comm, ncclInternalError, "%s", dt_fake_cuda_complaint());
        fake_unlock();
        until_aborted(comm);
    } else if (posting->reduce.count > 0 && !atomic_load(&comm->aborted)) {
        reduce(posting, to);
    }
    spoil(posting, act);
    return cudaSuccess;
}

struct queued {
    struct posting *posting;
};

/* Works on a copy of the pieces, since a graph runs it again. */
static cudaError_t run(struct CUstream_st *stream, void *data)
{
    struct posting *posting = ((struct queued *)data)->posting, copy = *posting;
    size_t bytes = (size_t)posting->count * sizeof *posting->pieces;
    copy.pieces = malloc(bytes + 1);
    if (copy.pieces == NULL)
        abort();
    memcpy(copy.pieces, posting->pieces, bytes);
    cudaError_t error = execute(stream, &copy);
    free(copy.pieces);
    return error;
}

static void drop(void *data)
{
    struct posting *posting = ((struct queued *)data)->posting;
    if (--posting->comm->outstanding == 0)
        pthread_cond_broadcast(&fake_progress);
    comm_drop(posting->comm);
    posting_free(posting);
}

ncclResult_t posting_put(struct posting *posting)
{
    struct ncclComm *comm = posting->comm;
    struct queued queued = {posting};
    struct fake_task task = {run, drop, sizeof queued};
    comm->refs++;
    comm->outstanding++;
    cudaError_t error = fake_put(posting->stream, FAKE_WORK, &task, &queued);
    return error == cudaSuccess ? ncclSuccess
                                : comm_fail(comm, ncclUnhandledCudaError, "the stream says %s",
                                            cudaGetErrorString(error));
}
