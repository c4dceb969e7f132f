/* SPDX-License-Identifier: MIT */
/* case - small networks and plans, run whole on fake ranks, for the tests of the forward pass */
#ifndef DT_TESTS_KERNELS_CASE_H
#define DT_TESTS_KERNELS_CASE_H

#include "kernels/forward.h"
#include "model/family.h"
#include "tests/kernels/fake_ranks/fake.h"
#include "tests/kernels/images.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The processor, which keeps nothing that ranks on several threads could not share but the marks,
 * and those are asked of one rank only. */
static inline struct dt_device *case_device(void)
{
    static struct dt_device *device;
    if (device == NULL && dt_compute_cpu.open(0, &device) != DT_OK)
        abort();
    return device;
}

static inline struct dt_workload case_workload(int heads, int head, int height, int width)
{
    struct dt_workload workload = {
        .network = {.name = "tiny",
                    .family = &dt_family_dit,
                    .hidden = heads * head,
                    .heads = heads,
                    .depth = 2,
                    .patch = 2,
                    .in_channels = 3,
                    .latent_size = height,
                    .own = {7},
                    .mlp_ratio = 4.0,
                    .learn_sigma = true},
        .height = height,
        .width = width,
        .guidance = true,
        .seed = 11,
        .sampler_steps = 50,
    };
    return workload;
}

static inline struct dt_plan case_plan(int cfg, int ulysses, int ring)
{
    struct dt_plan plan = dt_plan_fallback;
    plan.ranks = cfg * ulysses * ring;
    plan.cfg = cfg;
    plan.ulysses = ulysses;
    plan.ring = ring;
    return plan;
}

static inline int64_t case_image(const struct dt_workload *workload)
{
    return (int64_t)dt_network_out_channels(&workload->network) * workload->height *
           workload->width;
}

struct case_run {
    const struct dt_workload *workload;
    const struct dt_plan *plan;
    const struct dt_weights *weights;
    int steps;
    float *out; /* of rank 0 */
    double norm[8], projections[8 * 16];
    struct dt_phases *phases; /* of rank 0, or NULL */
    int64_t bytes[16];
};

static inline dt_status case_body(struct dt_comm *comm, void *arg)
{
    struct case_run *run = arg;
    struct dt_pass *pass = NULL;
    DT_TRY(dt_pass_new(run->workload, run->plan, run->weights, comm, &pass));
    dt_status status = DT_OK;
    run->bytes[comm->rank] = dt_pass_bytes(pass);
    for (int i = 0; status == DT_OK && i < run->steps; i++)
        status = dt_pass_step(pass, comm->rank == 0 ? run->phases : NULL);
    if (status == DT_OK)
        status = dt_pass_output(pass, comm->rank == 0 ? run->out : NULL);
    if (status == DT_OK)
        status = dt_pass_verify(pass, 7, 16, run->norm, run->projections);
    dt_pass_free(pass);
    return status;
}

/* Runs the plan; out must hold batch images. */
static inline dt_status case_run_plan(struct case_run *run, const struct dt_fake_options *options)
{
    struct dt_fake *fake = NULL;
    DT_TRY(dt_fake_new(run->plan->ranks, options, &fake));
    dt_status status = dt_fake_run(fake, case_body, run, NULL);
    dt_fake_free(fake);
    return status;
}

#endif
