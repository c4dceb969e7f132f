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
    int users;       /* comms that use it now */
    uint64_t last;   /* time of the last request */
    uint64_t serial; /* unique, and equal on all its ranks */
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

struct dt_nccl_root {
    struct dt_cuda *cuda; /* borrowed */
    cudaStream_t stream;
    int users; /* comms */
    uint64_t splits;
    struct dt_nccl_group *groups;
    struct dt_nccl_memory *memories;
    struct dt_nccl_events *idle, *posted;
    struct dt_error lost; /* why NCCL failed */
    bool stuck;           /* an abort hangs: nothing may be freed */
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

/* DT_OK for success, and for operations in progress; else DT_ELIB, with "communicator lost" unless only this call
 * failed. comm may be NULL. */
dt_status dt_nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                        const char *what) DT_MUST_CHECK;

/* From now on every call on the root fails with this thread's error message, or with an earlier one. */
void dt_nccl_lose(struct dt_nccl_root *root);

/* Returns the stored error; DT_OK if there is none. */
dt_status dt_nccl_ready(struct dt_nccl_root *root) DT_MUST_CHECK;

/* Waits until the calls on the communicator have completed. DT_ETIMEOUT at the deadline. */
dt_status dt_nccl_settle(struct dt_nccl_root *root, ncclComm_t comm, int64_t deadline_ns,
                         const char *what) DT_MUST_CHECK;

/* The communicator of host's ranks, the members[] of the root: a cached one or a new one. Collective over host. */
dt_status dt_nccl_group_take(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                             const struct dt_comm_config *config,
                             struct dt_nccl_group **group) DT_MUST_CHECK;
void dt_nccl_group_give_back(struct dt_nccl_group *group); /* NULL is fine */

/* add registers memory as a window of the group, if it has windows and not yet this one; the other removes it from all
 * groups. */
dt_status dt_nccl_window_add(struct dt_nccl_root *root, struct dt_nccl_group *group,
                             const struct dt_nccl_memory *memory) DT_MUST_CHECK;
void dt_nccl_window_drop(struct dt_nccl_root *root, const struct dt_nccl_memory *memory);
/* Remove all windows of a group that ends, or that was aborted. */
void dt_nccl_windows_end(struct dt_nccl_group *group);
void dt_nccl_windows_forget(struct dt_nccl_group *group);

/* Aborts all communicators by ncclCommAbort on a thread of its own, which may hang. */
dt_status dt_nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns) DT_MUST_CHECK;
void dt_nccl_end(struct dt_nccl_root *root);

#endif
