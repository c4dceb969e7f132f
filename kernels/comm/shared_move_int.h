/* SPDX-License-Identifier: MIT */
/* shared_move_int - moves the pieces of exchanges through the pipes */
#ifndef DT_KERNELS_COMM_SHARED_MOVE_INT_H
#define DT_KERNELS_COMM_SHARED_MOVE_INT_H

#include "kernels/comm.h"
#include "kernels/comm/shared_int.h"

/* Header of a piece. */
struct dt_shared_frame {
    uint64_t comm, call, index, bytes;
};

struct dt_shared_piece {
    struct dt_shared_piece *next;
    struct dt_shared_transfer *transfer;
    struct dt_shared_frame frame;
    char *at;
    size_t done;
    bool announced; /* its frame is in the pipe */
};

/* A posted exchange. */
struct dt_shared_transfer {
    struct dt_shared_transfer *next;
    int open, room, count;
    struct dt_shared_piece pieces[];
};

/* A piece that arrived before its receive was posted. */
struct dt_shared_aside {
    struct dt_shared_aside *next;
    struct dt_shared_frame frame;
    size_t done;
    char data[];
};

struct dt_shared_queue {
    struct dt_shared_piece *first, **end;
};

struct dt_shared_peer {
    struct dt_shared_queue out, in;
    bool arriving; /* frame is read, its bytes not completely */
    /* for a posted receive, or set aside, or (both NULL) in the pipe */
    struct dt_shared_frame frame;
    struct dt_shared_piece *into;
    struct dt_shared_aside *aside, *kept;
};

/* State of a rank, shared by its comms. */
struct dt_shared_root {
    struct dt_shared_map map;
    int users;
    bool broken;
    int64_t looked_ns; /* time of the last check for ended ranks */
    struct dt_shared_transfer *idle, *posted;
    struct dt_message *lists; /* two lists with one piece for each rank */
    struct dt_shared_peer peers[];
};

dt_status dt_shared_root_new(int fd, int rank, int ranks,
                             struct dt_shared_root **root) DT_MUST_CHECK;
void dt_shared_root_free(struct dt_shared_root *root);

/* Makes a transfer with room for n pieces, owned by the root until the wait; pieces are enqueued, then progress moves
 * them. */
dt_status dt_shared_transfer_new(struct dt_shared_root *root, int n,
                                 struct dt_shared_transfer **transfer) DT_MUST_CHECK;
void dt_shared_enqueue(struct dt_shared_root *root, struct dt_shared_transfer *transfer,
                       const struct dt_shared_frame *frame, int peer, bool out, void *at);

/* Moves all bytes that can be moved now. */
dt_status dt_shared_progress(struct dt_shared_root *root, bool *moved) DT_MUST_CHECK;

/* Waits until all its pieces have moved; it is idle then. */
dt_status dt_shared_wait(struct dt_shared_root *root,
                         struct dt_shared_transfer *transfer) DT_MUST_CHECK;

#endif
