/* SPDX-License-Identifier: MIT */
/* comm - exchanges between ranks: one small table per back end
 *
 * An exchange is posted and later waited for; between the two the buffers belong to the exchange.
 * All ranks of a comm post the same exchanges in the same order. The buffers of alltoall, shift and
 * exchange are where the comm's ranks compute: in host memory, or for a comm made for a device
 * (struct dt_comm.device) in that device's memory. barrier, gather, broadcast and split block and
 * always use host memory.
 *
 * On a device nothing blocks: a post starts after the work queued on the device before it, and wait
 * delays the work queued after it; dt_compute.finish, given dt_comm_check, returns the errors.
 *
 * To add a back end for devices: write kernels/comm/<name>.c with a struct dt_comm_ops that has
 * `over`, and add a row to comm.def.
 */
#ifndef DT_KERNELS_COMM_H
#define DT_KERNELS_COMM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_device;

struct dt_comm {
    const struct dt_comm_ops *ops;
    int rank, size;
    struct dt_device *device; /* borrowed; NULL: host memory */
    void *state;              /* the back end's */
};

struct dt_request {
    void *state[4];    /* the back end's */
    int64_t posted_ns; /* set by dt_comm_alltoall, dt_comm_shift, dt_comm_exchange */
    int64_t bytes;     /* sent to others */
    int mark;          /* the caller's timeline mark at the post */
};

/* A piece of an exchange, sent to or received from a rank. */
struct dt_message {
    int peer; /* may be the own rank */
    void *at;
    size_t bytes; /* above 0 */
};

/* The pieces of an exchange that a rank sends, and those that it receives. */
struct dt_pieces {
    struct dt_message *sends, *recvs;
    int send_count, recv_count;
};

/* A plan's settings of its comms; zero: the library's choice. */
struct dt_comm_config {
    int ctas;     /* thread blocks of an exchange; 0: the library's choice */
    bool windows; /* register buffers of ops->alloc (symmetric memory, copy engines) */
};

struct dt_comm_ops {
    const char *name;
    bool recordable; /* exchanges may be recorded (dt_compute.record) */
    /* Ranks of the same color form a comm, ordered by key. *out is new. config may be NULL. */
    dt_status (*split)(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out);
    void (*free)(struct dt_comm *comm);
    dt_status (*barrier)(struct dt_comm *comm);
    /* recv on rank 0 is size * bytes; others pass NULL. Blocks. */
    dt_status (*gather)(struct dt_comm *comm, const void *send, void *recv, size_t bytes);
    dt_status (*broadcast)(struct dt_comm *comm, void *data, size_t bytes); /* from rank 0 */
    /* send and recv are size blocks of `bytes`; block i is sent to or
     * received from rank i. Posts. */
    dt_status (*alltoall)(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                          struct dt_request *request);
    /* Sends to rank+1, receives from rank-1 (cyclic). Posts. */
    dt_status (*shift)(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                       struct dt_request *request);
    /* Any pieces: the i-th piece sent from one rank to another is the i-th received there, of equal
     * size. Posts; the lists may be reused on return. */
    dt_status (*exchange)(struct dt_comm *comm, const struct dt_pieces *pieces,
                          struct dt_request *request);
    dt_status (*wait)(struct dt_comm *comm, struct dt_request *request);
    /* (optional) Lets posted exchanges progress; called between tiles. */
    void (*poll)(struct dt_comm *comm);
    /* (optional) Error of an exchange after its post: DT_ELIB with a sentence; DT_ETIMEOUT when
     * another rank has failed (its abort was called) or has ended. Never blocks. */
    dt_status (*check)(struct dt_comm *comm);
    /* (optional) Aborts the exchanges in flight on this rank, and makes the other ranks' check
     * fail; when not done by deadline_ns, DT_ETIMEOUT: the process must end. Afterwards the
     * comm can only be freed. */
    dt_status (*abort)(struct dt_comm *comm, int64_t deadline_ns);
    /* (optional, NULL together) Device memory in the library's preferred form for exchanges. */
    dt_status (*alloc)(struct dt_comm *comm, int64_t bytes, void **memory);
    void (*release)(struct dt_comm *comm, void *memory);
    /* (optional) Records a computation of this rank, for back ends that log the order of events. */
    void (*note)(struct dt_comm *comm, const char *what, int index);
    /* Back ends for devices. over: the comm of the ranks' devices, which owns host on success. fits
     * (optional): it may be chosen by default. Collective over host. */
    dt_status (*over)(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm);
    dt_status (*fits)(struct dt_comm *host, const struct dt_device *device, bool *fits);
};

/* A comm of one rank: every exchange is a copy. */
dt_status dt_comm_self(struct dt_comm **comm) DT_MUST_CHECK;

#ifdef DT_HAVE_MPI
/* MPI_COMM_WORLD. Initialises MPI when no one has; dt_comm_mpi_end finalises. `oversubscribed`:
 * waits yield the core. */
dt_status dt_comm_mpi(int *argc, char ***argv, int oversubscribed,
                      struct dt_comm **comm) DT_MUST_CHECK;
void dt_comm_mpi_end(void);
const char *dt_comm_mpi_version(void);
#endif

/* Makes the comm for the ranks' devices over host, and owns host on success: host itself where
 * ranks compute on the processor; else the named row of comm.def, or when name is NULL the first
 * that fits. Collective over host. */
dt_status dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                        struct dt_comm **comm) DT_MUST_CHECK;

void dt_comm_free(struct dt_comm *comm);

/* Call the back end's functions of the same name, and set the request's posted_ns and bytes. */
dt_status dt_comm_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_comm_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request) DT_MUST_CHECK;

dt_status dt_comm_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                           struct dt_request *request) DT_MUST_CHECK;

/* Calls the back end's check; DT_OK if it has none, and for NULL. */
dt_status dt_comm_check(struct dt_comm *comm) DT_MUST_CHECK;

#endif
