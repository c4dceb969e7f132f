/* SPDX-License-Identifier: MIT */
/* forward - running a plan of the built-in DiT on this rank
 *
 * Weights are loaded once a process and shared by the plans resident in it; a pass is one plan
 * made resident. The pass is written once against two tables: compute (kernels/compute.h) and
 * comm (kernels/comm.h).
 *
 *     compute->open(0, &device);
 *     dt_weights_new(&workload, device, &weights);
 *     dt_pass_new(&workload, &plan, weights, world, &pass);    -- allocates everything; collective
 *     dt_pass_step(pass, &phases);                             -- one denoising step, steps chain; allocates nothing
 */
#ifndef DT_KERNELS_FORWARD_H
#define DT_KERNELS_FORWARD_H

#include "kernels/comm.h"
#include "kernels/compute.h"
#include "model/workload.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_weights;
struct dt_pass;

/* On device (borrowed until the last pass is freed): seeded, or read from workload->weights
 * (safetensors, float32, the authors' PyTorch names; every tensor is checked for presence, dtype
 * and shape; an unknown name is refused). DT_EUSAGE with a sentence, DT_EIO, DT_ENOMEM. */
dt_status dt_weights_new(const struct dt_workload *workload, struct dt_device *device,
                         struct dt_weights **weights) DT_MUST_CHECK;
void dt_weights_free(struct dt_weights *weights);
DT_FREE_AT(dt_weights_free, struct dt_weights)

/* Time of steps by kind on this rank; sums over steps until the caller clears them. */
enum dt_phase_kind {
    DT_PHASE_ATTENTION,
    DT_PHASE_GEMM,
    DT_PHASE_EXCHANGE,
    DT_PHASE_REST,
    DT_PHASE_IDLE, /* gaps between the device's operations, by its own clock; 0 on the host */
    DT_PHASE_KINDS
};
enum dt_block_kind {
    DT_BLOCK_EMBED,
    DT_BLOCK_BLOCK,
    DT_BLOCK_FINAL,
    DT_BLOCK_SAMPLER,
    DT_BLOCK_KINDS
};
/* Ulysses forth and back, the ring, and the other half of the guidance. */
enum dt_exchange_kind {
    DT_EXCHANGE_FORTH,
    DT_EXCHANGE_BACK,
    DT_EXCHANGE_RING,
    DT_EXCHANGE_CFG,
    DT_EXCHANGE_KINDS
};
struct dt_exchanged {
    int64_t count, ns, bytes, in_flight_ns; /* ns: exposed */
};
/* A part of a step on this rank; within the step. Blocks hold the others. */
struct dt_step_part {
    int64_t begin_ns, ns;
    signed char kind;     /* enum dt_phase_kind, or of a block enum dt_block_kind */
    signed char exchange; /* enum dt_exchange_kind, of kind exchange */
    bool block;
    bool waits; /* for an exchange to end; otherwise what is of kind exchange posts it */
};
struct dt_step_parts {
    struct dt_step_part *at; /* [room] */
    int count, room;         /* those beyond the room are lost */
};
#define DT_PHASE_SAMPLES 4096
struct dt_phases {
    int64_t kind_ns[DT_PHASE_KINDS];
    int64_t exchange_bytes, exchange_in_flight_ns;    /* sent by this rank; posted to completed */
    struct dt_exchanged exchanges[DT_EXCHANGE_KINDS]; /* parts of the kind exchange */
    int64_t block_count[DT_BLOCK_KINDS];
    int64_t block_ns[DT_BLOCK_KINDS][DT_PHASE_SAMPLES]; /* first samples of each kind */
    int64_t step_ns;                                    /* whole steps */
    struct dt_step_parts *spans;                        /* NULL: not kept; borrowed */
};
const char *dt_phase_text(enum dt_phase_kind kind);
const char *dt_block_text(enum dt_block_kind kind);
const char *dt_exchange_text(enum dt_exchange_kind kind);
int dt_exchange_degree(
    enum dt_exchange_kind kind); /* the row of model/degrees.def along which it goes */

/* The plan must have a layout (dt_dit_check in space/dit/dit.h). Collective over `world`
 * (plan->ranks ranks; borrowed; for the weights' device unless that is the host). Allocates
 * dt_layout.bytes of the device in one piece, dt_layout.host_bytes, and splits the communicators.
 * DT_ENOMEM, DT_EUNSUP, DT_EUSAGE. */
dt_status dt_pass_new(const struct dt_workload *workload, const struct dt_plan *plan,
                      const struct dt_weights *weights, struct dt_comm *world,
                      struct dt_pass **pass) DT_MUST_CHECK;
void dt_pass_free(struct dt_pass *pass);
DT_FREE_AT(dt_pass_free, struct dt_pass)
/* Bytes allocated for it on this rank, without weights: device memory, and host memory
 * where they are the same. */
int64_t dt_pass_bytes(const struct dt_pass *pass);

/* One denoising step (with an input file: one forward pass of it), done on return. phases may be
 * NULL; filling it takes time between a GPU's kernels, and such a step is never replayed from a
 * graph. DT_ETIMEOUT, DT_ELIB: the device or a comm is lost, and with it every pass on it. */
dt_status dt_pass_step(struct dt_pass *pass, struct dt_phases *phases) DT_MUST_CHECK;
/* Time of the last step by the device's clock, from its first call to its last; 0 on the host. */
int64_t dt_pass_device_ns(const struct dt_pass *pass);
void dt_pass_reset(struct dt_pass *pass); /* back to the first step of the trajectory */

/* The last step's network output (after guidance), [B, out_channels, h, w], gathered to rank 0 (out
 * is NULL elsewhere). Collective. */
dt_status dt_pass_output(struct dt_pass *pass, float *out) DT_MUST_CHECK;
/* Rank 0: norm[B] and projections[B * count] of that output as docs/protocol.md says. When an
 * exchange of the first steps delivered wrong data, the projections are off by the norm, an error
 * of 100 %. Collective. */
dt_status dt_pass_verify(struct dt_pass *pass, uint64_t seed, int count, double norm[],
                         double projections[]) DT_MUST_CHECK;
/* Rank 0 writes `out` to a safetensors file (temp + rename). Collective. */
dt_status dt_pass_write(struct dt_pass *pass, const char *path) DT_MUST_CHECK;

#endif
