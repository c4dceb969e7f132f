/* SPDX-License-Identifier: MIT */
/* nccl_int - shared by the comms of one rank: device, exchange stream, communicators, windows */
#ifndef DT_KERNELS_COMM_NCCL_INT_H
#define DT_KERNELS_COMM_NCCL_INT_H

#include "kernels/cuda/cuda_int.h"
#include "kernels/nccl.h"

#include <nccl.h>
#include <pthread.h>

/* Memory from alloc; it is a window of each communicator that has windows. */
struct dt_nccl_memory {
    struct dt_nccl_memory *next;
    void *at;
    size_t bytes;
    bool whole; /* allocated by all ranks of the root */
};

struct dt_nccl_window {
    struct dt_nccl_window *next;
    const void *at;
    ncclWindow_t handle;
};

/* A communicator, with the properties that decide whether another split can use it. */
struct dt_nccl_group {
    struct dt_nccl_group *next;
    ncclComm_t comm;
    cudaStream_t stream; /* the root's, or its own */
    int users;           /* comms that use it now */
    uint64_t last;       /* time of the last request */
    uint64_t serial;     /* unique, and equal on all its ranks */
    struct dt_comm_config config;
    struct dt_nccl_window *windows;
    int size;
    int members[]; /* ranks of the root */
};

/* Events of an exchange: the compute stream has reached it; it is done. */
struct dt_nccl_events {
    struct dt_nccl_events *next;
    cudaEvent_t ready, done;
};

/* The thread that ends the process when a post does not return. */
struct dt_nccl_watch {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool on, over;
    _Atomic uint64_t calls; /* begun and ended: odd within a call */
};

struct dt_nccl_root {
    struct dt_cuda *cuda; /* borrowed */
    struct dt_nccl_watch watch;
    cudaStream_t stream; /* of the highest priority */
    int priority;
    bool
        ordered; /* NCCL keeps the order of several communicators: each may have a stream of its own */
    int users; /* comms */
    uint64_t splits;
    struct dt_nccl_group *groups;
    struct dt_nccl_memory *memories;
    struct dt_nccl_events *idle, *posted;
    struct dt_error lost; /* why NCCL failed */
    bool stuck;           /* a call of NCCL hangs: nothing may be freed */
};

/* This rank's view of a comm. */
struct dt_nccl_seat {
    struct dt_nccl_root *root;
    struct dt_comm *host; /* owned; the same ranks */
    struct dt_nccl_group *group;
    struct dt_comm_config config;
    bool whole;    /* the first comm, with all ranks */
    int members[]; /* ranks of the root */
};

/* The exchanges of the table. */
dt_status dt_nccl_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_nccl_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request) DT_MUST_CHECK;
dt_status dt_nccl_exchange(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                           const struct dt_message *recvs, int recv_count,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_nccl_wait(struct dt_comm *comm, struct dt_request *request) DT_MUST_CHECK;

/* Adds one pair to idle. */
dt_status dt_nccl_events_new(struct dt_nccl_root *root) DT_MUST_CHECK;

/* Makes sure that the seat has its communicator; collective if it has to be created. */
dt_status dt_nccl_seat_group(struct dt_nccl_seat *seat) DT_MUST_CHECK;

/* DT_OK for success; else DT_ELIB, with "communicator lost" unless only this call failed. comm may be NULL. */
dt_status dt_nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                        const char *what) DT_MUST_CHECK;

/* From now on every call on the root fails with this thread's error message, or with an earlier one. */
void dt_nccl_lose(struct dt_nccl_root *root);

/* Returns the stored error; DT_OK if there is none. */
dt_status dt_nccl_ready(struct dt_nccl_root *root) DT_MUST_CHECK;

/* A call that waits for other ranks. make uses nothing but what is in it, since it may outlive its caller. */
struct dt_nccl_call {
    const char *name;
    ncclResult_t (*make)(struct dt_nccl_call *call);
    ncclResult_t result;
    ncclComm_t comm; /* in or out */
    int size, rank;  /* of a new communicator */
    ncclUniqueId id;
    ncclConfig_t config;
    void *at; /* of a window, or memory to free */
    size_t bytes;
    ncclWindow_t window; /* in or out */
};
struct dt_nccl_pending;

/* Begins the call on a thread of its own, on the root's device. await: whether it ends within the time. finish waits,
 * and copies to *call (NULL: nowhere) what the call has left; DT_ETIMEOUT if it does not end: the communicators are lost
 * and the root is stuck. within does both. */
dt_status dt_nccl_begin(struct dt_nccl_root *root, const struct dt_nccl_call *call,
                        struct dt_nccl_pending **pending) DT_MUST_CHECK;
bool dt_nccl_await(struct dt_nccl_pending *pending, int64_t wait_ns);
dt_status dt_nccl_finish(struct dt_nccl_root *root, struct dt_nccl_pending *pending,
                         int64_t wait_ns, struct dt_nccl_call *call) DT_MUST_CHECK;
dt_status dt_nccl_within(struct dt_nccl_root *root, struct dt_nccl_call *call,
                         int64_t wait_ns) DT_MUST_CHECK;

/* For calls that wait for this rank's GPU only: a minute; tests shorten it. */
extern _Atomic int64_t dt_nccl_patience_ns;

/* Around the calls of a post: a call that does not return within dt_nccl_patience_ns ends the process with a sentence
 * and exit code 1. */
dt_status dt_nccl_watch_start(struct dt_nccl_watch *watch) DT_MUST_CHECK;
void dt_nccl_watch_stop(struct dt_nccl_watch *watch);

/* The stream of a seat's exchanges, also while it has no communicator. */
static inline cudaStream_t dt_nccl_stream(const struct dt_nccl_seat *seat)
{
    return seat->group != NULL ? seat->group->stream : seat->root->stream;
}

/* The communicator of host's ranks, the members[] of the root: a cached one or a new one. Collective over host. */
dt_status dt_nccl_group_take(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                             const struct dt_comm_config *config,
                             struct dt_nccl_group **group) DT_MUST_CHECK;
void dt_nccl_group_give_back(struct dt_nccl_group *group); /* NULL is fine */

/* add registers memory as a window of the group, if it has windows and not yet this one; drop removes it from all groups.
 * DT_ETIMEOUT if NCCL does not return: the root is stuck. */
dt_status dt_nccl_window_add(struct dt_nccl_root *root, struct dt_nccl_group *group,
                             const struct dt_nccl_memory *memory) DT_MUST_CHECK;
dt_status dt_nccl_window_drop(struct dt_nccl_root *root,
                              const struct dt_nccl_memory *memory) DT_MUST_CHECK;
/* Forgets the windows of a group that was aborted. */
void dt_nccl_windows_forget(struct dt_nccl_group *group);

/* Aborts all communicators. DT_ETIMEOUT if a call of NCCL hangs. */
dt_status dt_nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns) DT_MUST_CHECK;
void dt_nccl_end(struct dt_nccl_root *root);

#endif
