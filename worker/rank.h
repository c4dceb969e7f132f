/* SPDX-License-Identifier: MIT */
/* rank - state of one rank of dittune-worker: its place, its device, its resident plans */
#ifndef DT_WORKER_RANK_H
#define DT_WORKER_RANK_H

#include "kernels/forward.h"
#include "worker/links.h"
#include "worker/seat.h"

#define DT_RANK_RESIDENTS 16
#define DT_RANK_TOKEN     8

/* A plan made resident. */
struct dt_loaded {
    int handle; /* 0: a free slot */
    struct dt_plan plan;
    struct dt_pass *pass;
};

struct dt_rank {
    struct dt_seat seat;
    struct dt_wire wire; /* to the controller; rank 0 only */
    struct dt_links links;
    const struct dt_compute *compute;
    struct dt_device *device;
    int64_t free_bytes;    /* free memory of the device before the weights */
    int64_t before_bytes;  /* free memory when the last plan was requested */
    struct dt_comm *host;  /* for host memory; owned until world exists */
    struct dt_comm *world; /* owned; for the memory that ranks compute on */
    void *tokens; /* device memory, [2, ranks] of 8 bytes: exchanged to start steps together */
    struct dt_workload workload;
    struct dt_weights *weights; /* from the first prepare on */
    struct dt_loaded residents[DT_RANK_RESIDENTS];
    int handles; /* number of handles so far */
    bool over;   /* the controller sent quit */
    bool broken; /* a rank is lost in an exchange: no more requests */
    struct dt_phases phases;
};

/* Starts the group: answers hello on rank 0, connects the ranks, sends ready. DT_DONE: quit or the
 * end of the input came first. */
dt_status dt_rank_start(struct dt_rank *self, int *argc, char ***argv) DT_MUST_CHECK;
void dt_rank_fini(struct dt_rank *self);

/* Sends {"op":"failed",...} with the sentence of the last dt_fail. */
dt_status dt_rank_refuse(struct dt_rank *self, dt_status why) DT_MUST_CHECK;

/* Call it between steps: sends a heartbeat when nothing was sent for a second. DT_EDEAD when the
 * controller has ended. */
dt_status dt_rank_beat(struct dt_rank *self) DT_MUST_CHECK;

/* Aligns the ranks before a step: two barriers, since ranks may leave the first as far apart as
 * they came. Work queued on devices is aligned, too, by two small exchanges queued before it. */
dt_status dt_rank_align(struct dt_rank *self) DT_MUST_CHECK;

#endif
