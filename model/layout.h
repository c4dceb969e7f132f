/* SPDX-License-Identifier: MIT */
/* layout - every buffer of one rank of a plan, sized and placed before anything is allocated
 *
 * The forward pass allocates dt_layout.bytes of the device once, and dt_layout.host_bytes of the
 * host, and uses these offsets, so the predicted memory is the allocated memory. Buffers of the
 * network are rows of its family (model/family.h). To add another: a name in enum dt_buffer and, in
 * layout.c, its size, and whether it has the workload's data type or lies in host memory.
 *
 * Letters: b images of this rank, N sequences (b times the passes run here), t tokens of this rank,
 * S slots (the most tokens of any rank: exchanged buffers are padded to equal size), h heads of a
 * chunk, K tokens of a ring block. Activations between layers have the workload's data type, the
 * rest float32 (layout.c lists them).
 */
#ifndef DT_MODEL_LAYOUT_H
#define DT_MODEL_LAYOUT_H

#include "model/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* Channels of the sinusoidal embedding of the timestep. */
#define DT_TIME_CHANNELS 256

/* The most buffers of its own that a family may have. */
#define DT_FAMILY_BUFFERS 16

enum dt_buffer {
    /* [b, t, in_channels*p*p] own tokens of the latent; the state that steps chain */
    DT_BUFFER_LATENT,
    DT_BUFFER_NOISE,     /* the latent that a trajectory starts from; none with an input file */
    DT_BUFFER_TIME,      /* [N] timestep; then the two factors of the sampler's update */
    DT_BUFFER_CAST,      /* a float32 input of a linear layer in the workload's data type */
    DT_BUFFER_QKV,       /* [N, t, 3, H, D] */
    DT_BUFFER_ATTENTION, /* [N, t, H, D] */
    DT_BUFFER_OUT,       /* [N, t, p*p*out_channels] the network's output */
    DT_BUFFER_EPS_SEND,  /* cfg: [b, t, p*p*in_channels] for the partner */
    DT_BUFFER_EPS_RECV,  /* cfg: the partner's */
    DT_BUFFER_RESULT,    /* [most images of a rank, S, p*p*out_channels] output after guidance */
    DT_BUFFER_SUMS,      /* [2] of 64 bits: words sent, words received */
    DT_BUFFER_COPY,      /* host: of the result */
    DT_BUFFER_GATHER,    /* host, rank 0: [ranks] copies of all ranks */
    DT_BUFFER_IMAGE,     /* host, rank 0: [batch, out_channels, height, width] */
    /* For a direct exchange (kernels/parallel.c) SEND is otherwise laid out, and QUERY, KV and
     * HEADS hold all chunks. */
    DT_BUFFER_SEND,      /* ulysses: [ulysses, N, S, 3, h, D] of each chunk, one after the other */
    DT_BUFFER_RECV,      /* ulysses: the same */
    DT_BUFFER_BACK_SEND, /* ulysses: [ulysses, N, S, h, D] of each chunk */
    DT_BUFFER_BACK_RECV, /* ulysses: the same */
    DT_BUFFER_QUERY,     /* ulysses: [N, K, h, D] */
    DT_BUFFER_KV, /* ulysses or ring: [2, N, most K, h, D] keys and values of the current block */
    DT_BUFFER_KV_NEXT,  /* ring: of the next block */
    DT_BUFFER_HEADS,    /* ulysses: [N, K, h, D] attention of the own heads */
    DT_BUFFER_PART,     /* ring: [N, K, h, D] attention to one block */
    DT_BUFFER_LSE,      /* ring: [N, h, K] log-sum-exp so far */
    DT_BUFFER_LSE_PART, /* ring: [N, h, K] of one block */
    DT_BUFFER_SCRATCH,  /* [threads] of attention's scratch */
    DT_BUFFER_OWN,      /* the first of the family's own */
    DT_BUFFER_COUNT = DT_BUFFER_OWN + DT_FAMILY_BUFFERS
};

struct dt_layout {
    struct dt_place place;
    int images;              /* b, those of the batch */
    int sequences;           /* N; conditional ones first when both kinds run here */
    int tokens, first_token; /* t, and where they start */
    int slots;               /* S */
    int block, block_slots;  /* K of the own ring block, and the most of any */
    int heads, chunk_heads;  /* heads owned after the all-to-all; of the largest chunk */
    int64_t scratch;         /* floats of one thread's attention scratch */
    /* bytes from the start of the device's, or of the host's, memory; multiples of 256 */
    int64_t offset[DT_BUFFER_COUNT];
    int64_t count[DT_BUFFER_COUNT]; /* elements; 0: the plan does not need it */
    int element[DT_BUFFER_COUNT];   /* bytes of one */
    bool host[DT_BUFFER_COUNT];     /* always in host memory: results that leave the device */
    int64_t bytes, host_bytes;
};

/* The plan must be feasible for the workload. Rank 0's layout is the largest. */
void dt_layout_init(struct dt_layout *layout, const struct dt_workload *workload,
                    const struct dt_plan *plan, int rank);

/* Activation bytes of the largest rank where device and host memory are one. */
int64_t dt_layout_bytes(const struct dt_workload *workload, const struct dt_plan *plan);

/* Tokens of ring block `ring`, held by its ulysses ranks together, and where they start. */
int dt_layout_block(int tokens, const struct dt_plan *plan, int ring);

#endif
