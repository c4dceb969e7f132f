/* SPDX-License-Identifier: MIT */
/* network - a small network on GPUs, each rank a thread with a device of its own, and on the CPU
 *
 * The ranks' exchanges go through the host's memory (kernels/staged.h), so they need no GPU each,
 * or over NCCL between as many GPUs.
 */
#ifndef DT_TESTS_CUDA_NETWORK_H
#define DT_TESTS_CUDA_NETWORK_H

#include "kernels/forward.h"
#include "kernels/nccl.h"
#include "kernels/staged.h"
#include "model/family.h"
#include "tests/kernels/fake_ranks/fake.h"
#include "tests/kernels/images.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Heads of 64 channels, which all kinds of attention have; a grid that no
 * number of ranks divides. */
static inline struct dt_workload network_workload(enum dt_dtype dtype)
{
    struct dt_workload workload = {.network = {.name = "tiny",
                                               .family = &dt_family_dit,
                                               .hidden = 256,
                                               .heads = 4,
                                               .depth = 2,
                                               .patch = 2,
                                               .in_channels = 3,
                                               .latent_size = 6,
                                               .own = {7},
                                               .mlp_ratio = 2.0,
                                               .learn_sigma = true},
                                   .height = 6,
                                   .width = 10,
                                   .guidance = true,
                                   .dtype = dtype,
                                   .seed = 11,
                                   .sampler_steps = 50};
    return workload;
}

static inline struct dt_plan network_plan(int cfg, int ulysses, int ring)
{
    struct dt_plan plan = dt_plan_fallback;
    plan.ranks = cfg * ulysses * ring;
    plan.cfg = cfg;
    plan.ulysses = ulysses;
    plan.ring = ring;
    plan.tile_kv = 64;
    plan.stages = 1;
    plan.warps = 4;
    return plan;
}

static inline int64_t network_image(const struct dt_workload *workload)
{
    return (int64_t)dt_network_out_channels(&workload->network) * workload->height *
           workload->width;
}

struct network_run {
    const struct dt_workload *workload;
    const struct dt_plan *plan;
    const struct dt_compute *compute; /* NULL: the GPU */
    int steps;
    bool nccl;                                                 /* each rank on a GPU of its own */
    void (*range)(struct dt_device *device, const char *name); /* in place of the table's */
    float *out;                                                /* of rank 0 */
    char message[1024];
};

static inline dt_status network_steps(struct network_run *run, const struct dt_weights *weights,
                                      struct dt_comm *comm)
{
    struct dt_pass *pass = NULL;
    DT_TRY(dt_pass_new(run->workload, run->plan, weights, comm, &pass));
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < run->steps; i++)
        status = dt_pass_step(pass, NULL);
    double norm[8], projections[8 * 4];
    if (status == DT_OK)
        status = dt_pass_verify(pass, 7, 4, norm, projections);
    if (status == DT_OK)
        status = dt_pass_output(pass, comm->rank == 0 ? run->out : NULL);
    dt_pass_free(pass);
    return status;
}

/* NCCL is built in, and there is a GPU for each rank. */
static inline bool network_nccl(int ranks)
{
#ifdef DT_HAVE_NCCL
    return dt_compute_cuda.count() >= ranks;
#else
    return ranks == 0;
#endif
}

/* The comm of a rank on its device. */
static inline dt_status network_comm(struct dt_comm *world, struct dt_device *device, bool nccl,
                                     struct dt_comm **comm)
{
    struct dt_comm *own = NULL;
    DT_TRY(world->ops->split(world, 0, world->rank, NULL, &own));
    if (device->compute->host) {
        *comm = own;
        return DT_OK;
    }
#ifdef DT_HAVE_NCCL
    dt_status status = nccl ? dt_comm_nccl(own, device, comm) : dt_comm_staged(own, device, comm);
#else
    dt_status status = nccl ? DT_EUNSUP : dt_comm_staged(own, device, comm);
#endif
    if (status != DT_OK)
        dt_comm_free(own);
    return status;
}

static inline dt_status network_body(struct dt_comm *world, void *arg)
{
    struct network_run *run = arg;
    const struct dt_compute *compute = run->compute != NULL ? run->compute : &dt_compute_cuda;
    struct dt_device *device = NULL;
    struct dt_weights *weights = NULL;
    struct dt_comm *comm = NULL;
    struct dt_compute watched = *compute;
    dt_status status = compute->open(run->nccl ? world->rank : 0, &device);
    if (status == DT_OK && run->range != NULL) {
        watched.timeline.range = run->range;
        device->compute = &watched;
    }
    if (status == DT_OK)
        status = dt_weights_new(run->workload, device, &weights);
    if (status == DT_OK)
        status = network_comm(world, device, run->nccl, &comm);
    if (status == DT_OK && comm != NULL)
        status = network_steps(run, weights, comm);
    if (status != DT_OK && run->message[0] == '\0')
        snprintf(run->message, sizeof run->message, "rank %d: %s", world->rank, dt_message());
    dt_comm_free(comm);
    dt_weights_free(weights);
    compute->close(device);
    return status;
}

static inline dt_status network_run(struct network_run *run)
{
    struct dt_fake *fake = NULL;
    const struct dt_fake_options options = {0};
    DT_TRY(dt_fake_new(run->plan->ranks, &options, &fake));
    dt_status status = dt_fake_run(fake, network_body, run, NULL);
    dt_fake_free(fake);
    return status;
}

/* Steps on one rank of the CPU in float32; new. */
static inline float *network_baseline(const struct dt_workload *workload, int batch, int steps)
{
    struct dt_workload wide = *workload;
    struct dt_plan plan = network_plan(1, 1, 1);
    float *out = calloc((size_t)(batch * network_image(workload)), sizeof *out);
    struct network_run run = {
        .workload = &wide, .plan = &plan, .compute = &dt_compute_cpu, .steps = steps, .out = out};
    wide.dtype = DT_FLOAT32;
    plan.batch = batch;
    plan.stages = plan.warps = 0; /* a plan of the CPU */
    if (out == NULL || network_run(&run) != DT_OK) {
        fprintf(stderr, "%s\n", run.message);
        abort();
    }
    return out;
}

#endif
