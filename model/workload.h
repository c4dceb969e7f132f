/* SPDX-License-Identifier: MIT */
/* workload - the computation: a network at a resolution, guided or not, in a data type
 *
 * Also has the formulas for operations of a step and bytes of a rank.
 */
#ifndef DT_MODEL_WORKLOAD_H
#define DT_MODEL_WORKLOAD_H

#include "model/dtype.h"
#include "model/network.h"
#include "model/plan.h"

#include <stdint.h>

/* Memory that the CUDA back end reserves on each GPU for its libraries, in addition to a plan's
 * own; the rules count it. */
#define DT_GPU_WORKSPACE_BYTES (INT64_C(64) << 20)

struct dt_workload {
    struct dt_network network;
    int height, width; /* latent pixels; multiples of network.patch */
    bool guidance;     /* classifier-free: every image runs with and without its class */
    enum dt_dtype dtype;
    uint64_t seed;     /* for weights and inputs */
    int sampler_steps; /* denoising steps of one image, for images/s; 50 */
    /* Files that replace seeded data; "" when not used. With an input file guidance is off
     * and B is the file's. */
    char weights[1024], input[1024], output[1024];
    int input_batch; /* B of the input file, 0 without one */
};

int dt_workload_tokens(const struct dt_workload *workload); /* T of one image */
int dt_workload_passes(
    const struct dt_workload *workload); /* forward passes of one image and step: 2 with guidance */

/* Tokens of sequence rank `index` of `ranks`: balanced, the first T % ranks get one more;
 * and where they start. */
int dt_workload_share(int tokens, int ranks, int index);
int dt_workload_offset(int tokens, int ranks, int index);

/* Floating-point operations (a multiply-add is two) of one denoising step of the whole batch, all
 * ranks together: the linear layers, and attention's 4 T^2 C for each pass and block. */
double dt_workload_flops(const struct dt_workload *workload, int batch);

/* The part of attention: scores and their product with the values. */
double dt_workload_attention_flops(const struct dt_workload *workload, int batch);

/* Lower bound of the bytes that the passes between the matrix products read and write, for any
 * plan, all ranks together: embedding, and before each product of a block gate, residual, norm and
 * modulation in one pass. Packing for exchanges is not included, nor are guidance and sampler,
 * which are a few per mille. */
double dt_workload_rest_bytes(const struct dt_workload *workload, int batch);

/* Number of the network's parameters, including the fixed table of positions; and
 * their bytes in memory. */
int64_t dt_workload_parameters(const struct dt_workload *workload);
int64_t dt_workload_weight_bytes(const struct dt_workload *workload);

/* Peak bytes of one rank of a plan: weights, activations, exchange buffers, attention scratch. The
 * worker allocates exactly this (kernels/ sizes its workspace with
 * dt_workload_activation_bytes). */
int64_t dt_workload_rank_bytes(const struct dt_workload *workload, const struct dt_plan *plan);
int64_t dt_workload_activation_bytes(const struct dt_workload *workload,
                                     const struct dt_plan *plan);

#endif
