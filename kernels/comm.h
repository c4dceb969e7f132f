/* SPDX-License-Identifier: MIT */
/* comm - how ranks exchange data: one small table a back end
 *
 * An exchange is posted and later waited for; between the two the buffers belong to the exchange. All ranks of a comm
 * post the same exchanges in the same order. What alltoall, shift and exchange carry lies where the comm's ranks compute:
 * in host memory, or for a comm made for a device (struct dt_comm.device) in that device's. barrier, gather, broadcast and
 * split block and carry host memory always.
 *
 * On a device nothing blocks: a post starts when what was queued on the device before it is done, and wait makes what is
 * queued after it wait; dt_compute.finish, given dt_comm_check, finds out how it ended.
 *
 * To add a back end: write kernels/comm/<name>.c with a struct dt_comm_ops at its end, and add a row to comm.def.
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
    int mark;          /* the caller's: of its timeline, when it posted */
};

/* A piece of an exchange: to a rank, or from one. */
struct dt_message {
    int peer; /* may be the own rank */
    void *at;
    size_t bytes; /* above 0 */
};

/* How a plan wants its comms; zero is the library's own choice. */
struct dt_comm_config {
    int ctas; /* blocks of threads an exchange may occupy; 0: the library's choice */
    bool
        windows; /* buffers from ops->alloc are registered with the library (symmetric memory, copy engines) */
};

struct dt_comm_ops {
    const char *name, *doc;
    bool recordable; /* exchanges may stand between dt_compute.record and recorded */
    /* Ranks of the same color form a comm, ordered by key. *out is new. config may be NULL. */
    dt_status (*split)(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out);
    void (*free)(struct dt_comm *comm);
    dt_status (*barrier)(struct dt_comm *comm);
    /* recv on rank 0 is size * bytes; others pass NULL. Blocks. */
    dt_status (*gather)(struct dt_comm *comm, const void *send, void *recv, size_t bytes);
    dt_status (*broadcast)(struct dt_comm *comm, void *data, size_t bytes); /* from rank 0 */
    /* send and recv are size blocks of `bytes`; block i goes to, comes from, rank i. Posts. */
    dt_status (*alltoall)(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                          struct dt_request *request);
    /* Sends to rank+1, receives from rank-1 (cyclic). Posts. */
    dt_status (*shift)(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                       struct dt_request *request);
    /* Any pieces: the i-th of those a rank sends to another is the i-th the other receives from it, of equal size. Posts;
     * the lists may be used again on return. */
    dt_status (*exchange)(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                          const struct dt_message *recvs, int recv_count,
                          struct dt_request *request);
    dt_status (*wait)(struct dt_comm *comm, struct dt_request *request);
    /* (optional) Lets posted exchanges progress; called between tiles. */
    void (*poll)(struct dt_comm *comm);
    /* (optional) An error that an exchange met after it was posted: DT_ELIB with a sentence; DT_ETIMEOUT when another rank has
     * failed (its abort was called) or is gone. Never blocks. */
    dt_status (*check)(struct dt_comm *comm);
    /* (optional) Ends what is under way, here, and lets the other ranks' check know; by deadline_ns or never (then DT_ETIMEOUT: the process must go). The comm can
     * only be freed after. */
    dt_status (*abort)(struct dt_comm *comm, int64_t deadline_ns);
    /* (optional, NULL together) Memory of the device that the library likes best for exchanges. */
    dt_status (*alloc)(struct dt_comm *comm, int64_t bytes, void **memory);
    void (*release)(struct dt_comm *comm, void *memory);
    /* (optional) Takes note of a computation of this rank, for back ends that record the order of events. */
    void (*note)(struct dt_comm *comm, const char *what, int index);
};

/* A comm of one rank: every exchange is a copy. */
dt_status dt_comm_self(struct dt_comm **comm) DT_MUST_CHECK;

#ifdef DT_HAVE_MPI
/* MPI_COMM_WORLD. Initialises MPI when no one has; dt_comm_mpi_end finalises. `oversubscribed`: waits yield the core. */
dt_status dt_comm_mpi(int *argc, char ***argv, int oversubscribed,
                      struct dt_comm **comm) DT_MUST_CHECK;
void dt_comm_mpi_end(void);
const char *dt_comm_mpi_version(void);
#endif

/* The comm for what these ranks compute on, over host, which it takes over when this succeeds: host itself where they compute
 * on the processor; else that of the name, or when name is NULL the fastest that works: nccl where each rank has a GPU of its
 * own, staged (through host memory) where ranks share one. Collective over host. */
dt_status dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                        struct dt_comm **comm) DT_MUST_CHECK;

void dt_comm_free(struct dt_comm *comm);

/* The table's functions of the same name, and the request's posted_ns and bytes. */
dt_status dt_comm_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_comm_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request) DT_MUST_CHECK;

dt_status dt_comm_exchange(struct dt_comm *comm, const struct dt_message *sends, int send_count,
                           const struct dt_message *recvs, int recv_count,
                           struct dt_request *request) DT_MUST_CHECK;

/* The table's check; DT_OK where there is none, and for NULL. */
dt_status dt_comm_check(struct dt_comm *comm) DT_MUST_CHECK;

/* The back ends that were built, NULL-ended. */
const struct dt_comm_ops *const *dt_comm_rows(void);

#endif
