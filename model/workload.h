/* SPDX-License-Identifier: MIT */
/* workload - what is asked for: a network at a resolution, guided or not, in a data type
 *
 * Also the paper-and-pencil formulas: operations of a step, bytes of a rank. They need no machine.
 */
#ifndef DT_MODEL_WORKLOAD_H
#define DT_MODEL_WORKLOAD_H

#include "model/dtype.h"
#include "model/network.h"
#include "model/plan.h"

#include <stdint.h>

/* What the CUDA back end keeps of each GPU for its libraries beside a plan's own memory: allocated by it, counted by the rules. */
#define DT_GPU_WORKSPACE_BYTES (INT64_C(64) << 20)

struct dt_workload {
    struct dt_network network;
    int height, width; /* latent pixels; multiples of network.patch */
    bool guidance;     /* classifier-free: every image runs with and without its class */
    enum dt_dtype dtype;
    uint64_t seed;     /* of weights and inputs */
    int sampler_steps; /* denoising steps of one image, for images/s; 50 */
    /* Files instead of seeded data; "" when not used. With input: guidance is off, B is the file's. */
    char weights[1024], input[1024], output[1024];
    int input_batch; /* B of the input file, 0 without one */
};

dt_status dt_workload_from_json(const json_t *root, const char *what,
                                struct dt_workload *workload) DT_MUST_CHECK;
json_t *dt_workload_to_json(
    const struct dt_workload *workload); /* new reference; NULL when out of memory */

int dt_workload_tokens(const struct dt_workload *workload); /* T of one image */
int dt_workload_passes(
    const struct dt_workload *workload); /* forward passes of one image and step: 2 with guidance */

/* Tokens of sequence rank `index` of `ranks`: balanced, the first T % ranks get one more; and where they start. */
int dt_workload_share(int tokens, int ranks, int index);
int dt_workload_offset(int tokens, int ranks, int index);

/* Floating-point operations (a multiply-add is two) of one denoising step of the whole batch, all ranks together:
 * the linear layers, and attention's 4 T^2 C for each pass and block. */
double dt_workload_flops(const struct dt_workload *workload, int batch);

/* Of these the attention's: scores and their product with the values. */
double dt_workload_attention_flops(const struct dt_workload *workload, int batch);

/* Bytes that the passes between the matrix products read and write at least, whatever the plan, all ranks together: embedding, and
 * before each product of a block gate, residual, norm and modulation in one. What exchanges pack, and guidance and sampler, which
 * are per mille, are not among them. */
double dt_workload_rest_bytes(const struct dt_workload *workload, int batch);

/* The network's parameters, the fixed table of positions among them; and bytes they are kept in. */
int64_t dt_workload_parameters(const struct dt_workload *workload);
int64_t dt_workload_weight_bytes(const struct dt_workload *workload);

/* Peak bytes of one rank of a plan: weights, activations, exchange buffers, attention scratch. The worker allocates
 * exactly what this file says (kernels/ sizes its workspace with dt_workload_activation_bytes). */
int64_t dt_workload_rank_bytes(const struct dt_workload *workload, const struct dt_plan *plan);
int64_t dt_workload_activation_bytes(const struct dt_workload *workload,
                                     const struct dt_plan *plan);

#endif
