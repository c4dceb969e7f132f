/* SPDX-License-Identifier: MIT */
/* comm - how ranks exchange data: one small table a back end
 *
 * An exchange is posted and later waited for; between the two the buffers belong to the exchange. All ranks of a comm
 * post the same exchanges in the same order. Host memory.
 *
 * To add a back end: write kernels/comm/<name>.c with a struct dt_comm_ops at its end, and add a row to comm.def.
 */
#ifndef DT_KERNELS_COMM_H
#define DT_KERNELS_COMM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct dt_comm {
    const struct dt_comm_ops *ops;
    int rank, size;
    void *state; /* the back end's */
};

struct dt_request {
    void *state[4];    /* the back end's */
    int64_t posted_ns; /* set by dt_comm_alltoall, dt_comm_shift */
    int64_t bytes;     /* sent to others */
};

struct dt_comm_ops {
    const char *name, *doc;
    /* Ranks of the same color form a comm, ordered by key. *out is new. */
    dt_status (*split)(struct dt_comm *comm, int color, int key, struct dt_comm **out);
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
    dt_status (*wait)(struct dt_comm *comm, struct dt_request *request);
    /* (optional) Lets posted exchanges progress; called between tiles. */
    void (*poll)(struct dt_comm *comm);
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

void dt_comm_free(struct dt_comm *comm);

/* The table's functions of the same name, and the request's posted_ns and bytes. */
dt_status dt_comm_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_comm_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request) DT_MUST_CHECK;

/* The back ends that were built, NULL-ended. */
const struct dt_comm_ops *const *dt_comm_rows(void);

#endif
