/* SPDX-License-Identifier: MIT */
/* pass_int - a resident plan, as the files of the forward pass share it */
#ifndef DT_KERNELS_PASS_INT_H
#define DT_KERNELS_PASS_INT_H

#include "kernels/compute.h"
#include "kernels/forward.h"
#include "kernels/weights_int.h"
#include "model/layout.h"

enum dt_layer {
    DT_LAYER_TIME0,
    DT_LAYER_TIME2,
    DT_LAYER_PATCH,
    DT_LAYER_MODULATION,
    DT_LAYER_QKV,
    DT_LAYER_QKV_SENT, /* the same into what a direct exchange sends */
    DT_LAYER_QK_SENT,  /* of it */
    DT_LAYER_V_SENT,
    DT_LAYER_PROJECTION,
    DT_LAYER_FC1,
    DT_LAYER_FC2,
    DT_LAYER_FINAL_MODULATION,
    DT_LAYER_OUT,
    DT_LAYERS
};

struct dt_timeline;

struct dt_pass {
    struct dt_workload workload;
    struct dt_plan plan;
    struct dt_layout layout;
    const struct dt_weights *weights;
    struct dt_device *device; /* the weights' */
    const struct dt_compute *compute;
    struct dt_linear_shape shapes[DT_LAYERS];
    struct dt_linear *linears[DT_LAYERS]; /* own */
    struct dt_comm *world;                /* borrowed */
    struct dt_comm *comms[DT_DEGREES];    /* own, along each degree; NULL where it is 1 */
    struct dt_request *forth, *back; /* [chunks] all-to-alls of the heads, and of their outputs */
    struct dt_request values;        /* direct exchange: values that go first */
    struct dt_request rotation, partner; /* of the ring; of the other half of the guidance */
    struct dt_message *sends, *recvs;    /* direct exchange: [3 * ulysses * N] of one */
    char *arena;                         /* layout.bytes, of the device */
    struct dt_comm *lender;              /* one of the above, when the arena is of its alloc */
    char *host;                          /* layout.host_bytes */
    float *times;                        /* host: what is put into DT_BUFFER_TIME */
    int step;                            /* of the trajectory, next */
    int counted;                         /* steps done, up to DT_COUNTED_STEPS */
    struct dt_graph *graph;              /* own; of a step, once it was recorded */
    struct dt_timeline *timeline;        /* own */
};

#define DT_COUNTED_STEPS 2 /* those that the output is verified after */

/* A buffer of float32, and element `at` of any buffer: an address of the device, but for those that layout.host names. */
float *dt_pass_at(const struct dt_pass *pass, enum dt_buffer buffer);
void *dt_pass_data(const struct dt_pass *pass, enum dt_buffer buffer, int64_t at);

/* Makes the linear layers ready, for the threads that are set. */
dt_status dt_pass_layers(struct dt_pass *pass) DT_MUST_CHECK;

/* Applies a layer of a block (ignored for those of the network); it writes from element y_at of its buffer on. */
void dt_pass_apply(struct dt_pass *pass, enum dt_layer layer, int block, int64_t y_at);

/* timeline.c: where a step's time goes, by marks in the device's queue. A step that is not looked at (phases NULL) costs
 * nothing but two marks. What is queued from begin on counts for the lap that ends it, what passes between a lap and the next begin is
 * idle. */
dt_status dt_timeline_new(struct dt_device *device, struct dt_timeline **timeline) DT_MUST_CHECK;
void dt_timeline_free(struct dt_timeline *timeline);
void dt_timeline_start(struct dt_timeline *timeline, struct dt_phases *phases);
void dt_timeline_end(struct dt_timeline *timeline); /* all of the step is queued */
dt_status dt_timeline_stop(struct dt_timeline *timeline) DT_MUST_CHECK; /* after finish */
void dt_pass_begin(struct dt_pass *pass);
void dt_pass_lap(struct dt_pass *pass, enum dt_phase_kind kind);
void dt_pass_block(struct dt_pass *pass, enum dt_block_kind kind); /* one ends here */

/* A range of a profiler's timeline begins; NULL: the last one ends. */
void dt_pass_range(const struct dt_pass *pass, const char *name);

/* Notes that request is about to be posted; the next lap of DT_PHASE_EXCHANGE ends the posting. */
void dt_pass_posted(struct dt_pass *pass, struct dt_request *request);

/* Waits for request and accounts for it; the time since the last lap before is rest. */
dt_status dt_pass_wait(struct dt_pass *pass, struct dt_comm *comm,
                       struct dt_request *request) DT_MUST_CHECK;

/* Over all ranks what was sent is what was received, so the two sums (0 sent, 1 received) are equal unless a word was
 * changed on its way: one element of thousands may move the output by less than rounding, but not the sum. On the first
 * steps only. */
void dt_pass_count(struct dt_pass *pass, int sum, const void *data, int64_t bytes);

/* Makes the attention ready for every shape the plan calls it with. */
dt_status dt_pass_attention_ready(struct dt_pass *pass) DT_MUST_CHECK;

/* NORM to QKV, or to what is sent of it. */
dt_status dt_pass_queries(struct dt_pass *pass, int block) DT_MUST_CHECK;

/* That to ATTENTION, over all tokens of the sequence, wherever they are. */
dt_status dt_pass_attention(struct dt_pass *pass, int block) DT_MUST_CHECK;

/* DT_EUSAGE, DT_EUNSUP when the plan is not feasible for the workload. */
dt_status dt_pass_check(const struct dt_workload *workload, const struct dt_plan *plan,
                        int ranks) DT_MUST_CHECK;

/* Fills LATENT, NOISE, LABEL and pass->times for the first step: seeded, or from the input file. */
dt_status dt_pass_fill(struct dt_pass *pass) DT_MUST_CHECK;

/* Timestep of a step of the trajectory, and latent = keep * latent + move * eps after it (DDIM, eta 0). */
float dt_sampler_time(int step, int steps);
void dt_sampler_update(int step, int steps, float *keep, float *move);

#endif
