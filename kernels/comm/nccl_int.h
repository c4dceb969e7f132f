/* SPDX-License-Identifier: MIT */
/* nccl_int - what the comms of one rank share: its device, the stream of exchanges, its communicators, its windows */
#ifndef DT_KERNELS_COMM_NCCL_INT_H
#define DT_KERNELS_COMM_NCCL_INT_H

#include "kernels/cuda/cuda_int.h"
#include "kernels/nccl.h"

#include <nccl.h>
#include <pthread.h>

/* Memory from alloc; of each communicator that has windows it is one. */
struct dt_nccl_memory {
    struct dt_nccl_memory *next;
    void *at;
    size_t bytes;
    bool whole; /* of all ranks of the root */
};

struct dt_nccl_window {
    struct dt_nccl_window *next;
    const void *at;
    ncclWindow_t handle;
};

/* A communicator, and what makes it fit another split. */
struct dt_nccl_group {
    struct dt_nccl_group *next;
    ncclComm_t comm;
    int users;       /* comms that exchange with it now */
    uint64_t last;   /* when it was last asked for */
    uint64_t serial; /* the same on all its ranks, of no other */
    struct dt_comm_config config;
    struct dt_nccl_window *windows;
    int size;
    int members[]; /* ranks of the root */
};

/* Events of an exchange: the compute stream has come to it; it is done. */
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
    bool lost;           /* NCCL failed: sentence says how */
    bool stuck;          /* an abort never ended: nothing of it may be freed */
    char sentence[1024]; /* of that */
};

/* What a comm is to this rank. */
struct dt_nccl_seat {
    struct dt_nccl_root *root;
    struct dt_comm *host; /* own; of the same ranks */
    struct dt_nccl_group *group;
    struct dt_comm_config config;
    bool whole;    /* the first comm, of all ranks */
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

/* One pair more in idle. */
dt_status dt_nccl_events_new(struct dt_nccl_root *root) DT_MUST_CHECK;

/* The seat has its communicator. Collective where it has not. */
dt_status dt_nccl_seat_group(struct dt_nccl_seat *seat) DT_MUST_CHECK;

/* DT_OK for success, and for what is still under way; else DT_ELIB with "communicator lost" unless it is only this call that
 * failed. comm may be NULL. */
dt_status dt_nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                        const char *what) DT_MUST_CHECK;

/* From now on all that is asked of the root fails with this sentence, unless it does already. */
void dt_nccl_lose(struct dt_nccl_root *root, const char *sentence);

/* The error told again; DT_OK when there was none. */
dt_status dt_nccl_ready(struct dt_nccl_root *root) DT_MUST_CHECK;

/* Until what was called on it is no longer under way. DT_ETIMEOUT at the deadline. */
dt_status dt_nccl_settle(struct dt_nccl_root *root, ncclComm_t comm, int64_t deadline_ns,
                         const char *what) DT_MUST_CHECK;

/* The communicator of host's ranks, who are the members[] of the root: one that is there, or a new one. Collective over host. */
dt_status dt_nccl_group_take(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                             const struct dt_comm_config *config,
                             struct dt_nccl_group **group) DT_MUST_CHECK;
void dt_nccl_group_give_back(struct dt_nccl_group *group); /* NULL is fine */

/* Memory becomes a window of the group, where that has windows and has it not yet; and no longer, of any. */
dt_status dt_nccl_window_add(struct dt_nccl_root *root, struct dt_nccl_group *group,
                             const struct dt_nccl_memory *memory) DT_MUST_CHECK;
void dt_nccl_window_drop(struct dt_nccl_root *root, const struct dt_nccl_memory *memory);
/* All windows of a group, which ends; of one that was aborted. */
void dt_nccl_windows_end(struct dt_nccl_group *group);
void dt_nccl_windows_forget(struct dt_nccl_group *group);

/* Ends all communicators: as they should, or by ncclCommAbort on a thread of its own, which may hang. */
dt_status dt_nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns) DT_MUST_CHECK;
void dt_nccl_end(struct dt_nccl_root *root);

#endif
