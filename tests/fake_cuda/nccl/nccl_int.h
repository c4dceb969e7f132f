/* SPDX-License-Identifier: MIT */
/* nccl_int - communicators between threads and between processes
 *
 * The ranks of a communicator share a mapped file, the world: who they are, a place where all meet
 * (init, split, windows) and a mailbox for each pair of ranks. An exchange is a task on a stream,
 * whose thread moves its pieces through the mailboxes, whatever comes first; a piece says what it
 * is, so that the other side sees when it expected another.
 */
#ifndef DT_TESTS_FAKE_CUDA_NCCL_NCCL_INT_H
#define DT_TESTS_FAKE_CUDA_NCCL_NCCL_INT_H

#include "tests/fake_cuda/fake_cuda_int.h"

#include <nccl.h>

#define RANKS 32
#define SLOT  ((size_t)64 << 10)

/* ---- world.c */

struct label { /* of a piece */
    char kind[12];
    uint64_t number; /* of the pair's pieces */
    uint64_t count;
    int type;
};

struct mailbox {
    _Atomic uint64_t written, read; /* slots so far */
    struct label label;
    uint64_t bytes; /* in the slot */
    char data[SLOT];
};

struct seat {
    _Atomic uint64_t serial;
    char what[12];
    int a, b;
};

struct world {
    struct {
        char host[64];
        int device;
    } who[RANKS];
    struct seat seats[2][RANKS];
    struct mailbox mail[]; /* [from][to] */
};

enum job { JOB_NONE, JOB_INIT, JOB_SPLIT, JOB_REGISTER, JOB_POST, JOB_FINALIZE };

struct ncclComm {
    int refs; /* its owner's, its tasks', its job's */
    int rank, size, root_rank, device;
    int splits;
    char name[64], path[128];
    struct world *world; /* NULL: not yet */
    size_t world_bytes;
    uint64_t met; /* meetings so far */
    uint64_t sent[RANKS], received[RANKS];
    bool blocking, finalized;
    _Atomic bool aborted;
    ncclResult_t state; /* what ncclCommGetAsyncError says */
    int outstanding;    /* tasks not done */
    int posts;
    uint64_t random;
};

struct world *world_open(const char *path, int size, size_t *bytes);
/* All ranks come, each with two numbers; what must be the same. out[size][2]. False: aborted, or
 * another thing was met. */
bool world_meet(struct ncclComm *comm, const char *what, const int mine[2], int out[][2]);

/* ---- job.c: what goes on after a call has returned */

struct call {
    enum job job;
    struct ncclComm *comm;
    int color, key;           /* split */
    struct ncclComm *parent;  /* split */
    struct posting *postings; /* post: owned */
    int delay_us;
};

/* Does it: in a thread of its own when the communicator does not block, or here. */
ncclResult_t call_start(const struct call *call);
void comm_drop(struct ncclComm *comm); /* locked */
ncclResult_t comm_fail(struct ncclComm *comm, ncclResult_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The error of a call on it: an aborted one, one that failed, one that is not ready. Locked. */
ncclResult_t comm_ready(const char *name, struct ncclComm *comm);
ncclResult_t nccl_enter(const char *name, int rank);

/* ---- run.c */

struct piece {
    int peer;
    bool send;
    const void *at;
    uint64_t count;
    int type;
    size_t bytes, done;
    char kind[12];
};

struct posting {
    struct posting *next;
    struct ncclComm *comm;
    cudaStream_t stream;
    int device;
    const struct fake_fault *fault;
    struct { /* of an all-reduce; count 0: none */
        uint64_t count;
        int type, op;
        void *to;
    } reduce;
    char *gathered; /* [size][bytes], owned */
    int count, room;
    struct piece *pieces; /* owned */
};

size_t type_bytes(int type);
/* Puts it on its stream. Locked; what it owns goes with it. */
ncclResult_t posting_put(struct posting *posting);
void posting_free(struct posting *posting);

/* ---- group.c: whether a call is waited for when the group ends */
bool group_later(struct ncclComm *comm);

/* ---- log.c */

void log_post(const struct ncclComm *comm, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
