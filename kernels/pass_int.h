/* SPDX-License-Identifier: MIT */
/* pass_int - a resident plan, shared by the files of the forward pass */
#ifndef DT_KERNELS_PASS_INT_H
#define DT_KERNELS_PASS_INT_H

#include "kernels/compute.h"
#include "kernels/forward.h"
#include "kernels/weights_int.h"
#include "model/family.h"
#include "model/layout.h"

/* A linear layer made ready, or the part of one that an exchange sends; shared by all blocks. */
struct dt_pass_layer {
    struct dt_linear_shape shape;
    struct dt_linear *linear; /* own; NULL: the plan does not need it */
    int first;                /* index of its first output in the tensor */
};

struct dt_timeline;

struct dt_pass {
    struct dt_workload workload;
    struct dt_plan plan;
    struct dt_layout layout;
    const struct dt_weights *weights;
    struct dt_device *device; /* the weights' */
    const struct dt_compute *compute;
    struct dt_pass_layer *layers;      /* own; by the family's row of the weight */
    struct dt_pass_layer v_first;      /* direct exchange: the values that go first */
    struct dt_comm *world;             /* borrowed */
    struct dt_comm *comms[DT_DEGREES]; /* own, along each degree; NULL where it is 1 */
    struct {
        /* [chunks] all-to-alls of the heads, and of their outputs */
        struct dt_request *forth, *back;
        struct dt_request values; /* direct exchange: values sent first */
        struct dt_request rotation,
            partner;           /* with the ring's neighbours; with the other half of the guidance */
        struct dt_pieces room; /* direct exchange: [3 * ulysses * N] of one, counts 0 */
    } exchanges;
    struct {
        char *arena;            /* layout.bytes, of the device */
        struct dt_comm *lender; /* owner of the arena, one of comms, or NULL */
        char *host;             /* layout.host_bytes */
        float *times;           /* host: source of DT_BUFFER_TIME */
    } memory;
    int cast;                     /* the buffer of which CAST is a copy; -1: none */
    int step;                     /* next step of the trajectory */
    int counted;                  /* steps done, up to DT_COUNTED_STEPS */
    struct dt_graph *graph;       /* own; of a step, once it was recorded */
    struct dt_timeline *timeline; /* own */
};

/* A buffer of float32, and element `at` of any buffer: an address of the device, except for
 * buffers in layout.host. */
float *dt_pass_at(const struct dt_pass *pass, int buffer);
void *dt_pass_data(const struct dt_pass *pass, int buffer, int64_t at);

/* Runs those operations of a list that are the block's. */
dt_status dt_pass_run(struct dt_pass *pass, const struct dt_op *list, int block,
                      int depth) DT_MUST_CHECK;

/* Applies a linear layer of an operation to its x, with the tensors of a block. */
void dt_pass_apply(struct dt_pass *pass, const struct dt_pass_layer *layer, const struct dt_op *op,
                   int block, void *y);

/* Times of a step's parts, by marks in the device's queue. An untraced step (phases NULL) has
 * only two marks. Work queued after begin counts for the lap that ends it; time between a lap and
 * the next begin is idle. */
dt_status dt_timeline_new(struct dt_device *device, struct dt_timeline **timeline) DT_MUST_CHECK;
void dt_timeline_free(struct dt_timeline *timeline);
void dt_pass_begin(struct dt_pass *pass);
void dt_pass_lap(struct dt_pass *pass, enum dt_phase_kind kind);

/* Begins a range on a profiler's timeline; NULL: ends the last one. */
void dt_pass_range(const struct dt_pass *pass, const char *name);

/* Notes that request is about to be posted; the next lap of DT_PHASE_EXCHANGE ends the posting. */
void dt_pass_posted(struct dt_pass *pass, struct dt_request *request);

/* Waits for request and accounts for it; the time since the previous lap is rest. */
dt_status dt_pass_wait(struct dt_pass *pass, struct dt_comm *comm,
                       struct dt_request *request) DT_MUST_CHECK;

/* Checksums of exchanges: over all ranks the sums of sent (0) and received (1) words are equal
 * unless a word was changed. One wrong element of thousands may change the output by less than
 * rounding, but always changes the sum. On the first steps only. */
void dt_pass_count(struct dt_pass *pass, int sum, const void *data, int64_t bytes);

/* Makes the attention ready for every shape the plan calls it with. */
dt_status dt_pass_attention_ready(struct dt_pass *pass) DT_MUST_CHECK;

/* QKV, or what is sent of it: DT_OP_QUERIES. */
dt_status dt_pass_queries(struct dt_pass *pass, const struct dt_op *op, int block) DT_MUST_CHECK;

/* Computes ATTENTION from it, over all tokens of the sequence on all ranks. */
dt_status dt_pass_attention(struct dt_pass *pass, int block) DT_MUST_CHECK;

/* Fills LATENT, NOISE, the labels and the times for the first step: seeded, or
 * from the input file. */
dt_status dt_pass_fill(struct dt_pass *pass) DT_MUST_CHECK;

/* Timestep of a step of the trajectory, and latent = keep * latent + move * eps
 * after it (DDIM, eta 0). */
float dt_sampler_time(int step, int steps);
void dt_sampler_update(int step, int steps, float *keep, float *move);

#endif
