/* SPDX-License-Identifier: MIT */
#include "kernels/pass_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool tile_known(const struct dt_plan *plan)
{
    bool q_known = false, kv_known = false;
    for (int i = 0; i < DT_TILES_Q; i++)
        q_known = q_known || dt_tiles_q[i] == plan->tile_q;
    for (int i = 0; i < DT_TILES_KV; i++)
        kv_known = kv_known || dt_tiles_kv[i] == plan->tile_kv;
    return q_known && kv_known;
}

static dt_status check(const struct dt_workload *workload, const struct dt_plan *plan, int ranks)
{
    if (plan->ranks != ranks)
        return dt_fail(DT_EUSAGE, "ranks=%d, but the group has %d", plan->ranks, ranks);
    if ((dt_plan_on(plan) & DT_ON_CPU) != 0 && !tile_known(plan))
        return dt_fail(DT_EUNSUP, "tile_q=%d x tile_kv=%d is not one of the tiles built in",
                       plan->tile_q, plan->tile_kv);
    if (workload->input[0] != '\0' && plan->batch != workload->input_batch)
        return dt_fail(DT_EUSAGE, "batch=%d, but the input file holds %d images", plan->batch,
                       workload->input_batch);
    if (workload->input[0] != '\0' && workload->guidance)
        return dt_fail(DT_EUSAGE, "guidance must be off with an input file");
    if (workload->sampler_steps < 1)
        return dt_fail(DT_EUSAGE, "sampler_steps is %d, expected 1 or more",
                       workload->sampler_steps);
    return DT_OK;
}

/* Allocates the buffers in host memory. */
static dt_status allocate_host(struct dt_pass *pass)
{
    size_t chunks = (size_t)pass->plan.chunks;
    size_t pieces = 3 * (size_t)pass->plan.ulysses * (size_t)pass->layout.sequences;
    pass->exchanges.sends = calloc(pieces, sizeof *pass->exchanges.sends);
    pass->exchanges.recvs = calloc(pieces, sizeof *pass->exchanges.recvs);
    pass->exchanges.forth = calloc(chunks, sizeof *pass->exchanges.forth);
    pass->exchanges.back = calloc(chunks, sizeof *pass->exchanges.back);
    pass->memory.times =
        calloc((size_t)pass->layout.count[DT_BUFFER_TIME], sizeof *pass->memory.times);
    pass->memory.host = aligned_alloc(256, (size_t)pass->layout.host_bytes);
    if (pass->exchanges.forth == NULL || pass->exchanges.back == NULL ||
        pass->memory.times == NULL || pass->memory.host == NULL || pass->exchanges.sends == NULL ||
        pass->exchanges.recvs == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes of results",
                       (long long)pass->layout.host_bytes);
    memset(pass->memory.host, 0xff, (size_t)pass->layout.host_bytes);
    DT_TRY(dt_timeline_new(pass->device, &pass->timeline));
    pass->compute->threads(pass->device, pass->plan.threads);
    return DT_OK;
}

/* With windows the memory comes from the comm that sends most, with the largest rank's size on every rank, since NCCL
 * registers windows of equal size. */
static dt_status allocate_arena(struct dt_pass *pass)
{
    struct dt_comm *comm = pass->comms[DT_DEGREE_ulysses] != NULL ? pass->comms[DT_DEGREE_ulysses]
                                                                  : pass->comms[DT_DEGREE_ring];
    struct dt_layout largest;
    void *arena = NULL;
    if (pass->plan.windows == 0 || comm == NULL || comm->ops->alloc == NULL) {
        DT_TRY(pass->compute->memory.alloc(pass->device, pass->layout.bytes, &arena));
    } else {
        dt_layout_init(&largest, &pass->workload, &pass->plan, 0);
        DT_TRY(comm->ops->alloc(comm, largest.bytes, &arena));
        pass->memory.lender = comm;
    }
    pass->memory.arena = arena;
    return DT_OK;
}

/* The plan's own memory comes first: a GPU tries the layers' products in what is left. */
static dt_status allocate_device(struct dt_pass *pass)
{
    const struct dt_compute *compute = pass->compute;
    DT_TRY(allocate_arena(pass));
    /* Fills with NAN, so that a read of unwritten memory shows in the output of every build. It also touches every page
     * before the first step. */
    compute->memory.fill(pass->device, pass->memory.arena, 0xff, pass->layout.bytes);
    compute->memory.fill(pass->device, dt_pass_at(pass, DT_BUFFER_RESULT), 0,
                         pass->layout.count[DT_BUFFER_RESULT] * (int64_t)sizeof(float));
    compute->memory.fill(pass->device, dt_pass_at(pass, DT_BUFFER_SUMS), 0, 2 * sizeof(uint64_t));
    DT_TRY(dt_pass_layers(pass));
    DT_TRY(dt_pass_attention_ready(pass));
    return dt_pass_fill(pass);
}

/* How a rank fared, and why. */
struct verdict {
    dt_status status;
    int rank;
    char why[240];
};

/* All ranks learn of a failure of one, so that none waits for it later, and say its cause, as any of them may be asked. */
static dt_status agree(struct dt_comm *world, dt_status own)
{
    struct verdict mine = {.status = own, .rank = world->rank}, worst;
    struct verdict *all = calloc((size_t)world->size, sizeof *all);
    if (own != DT_OK)
        snprintf(mine.why, sizeof mine.why, "%s", dt_message());
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "no memory to agree among %d ranks", world->size);
    worst = mine;
    dt_status status = world->ops->gather(world, &mine, all, sizeof mine);
    for (int i = 0; world->rank == 0 && i < world->size; i++)
        worst = all[i].status < worst.status ? all[i] : worst;
    free(all);
    if (status == DT_OK)
        status = world->ops->broadcast(world, &worst, sizeof worst);
    if (status != DT_OK || own != DT_OK)
        return own != DT_OK ? dt_fail(own, "%s", mine.why) : status;
    if (worst.status != DT_OK)
        return dt_fail(worst.status, "rank %d could not make the plan resident: %s", worst.rank,
                       worst.why);
    return DT_OK;
}

/* Along each degree, the ranks that differ in nothing else. */
static dt_status split(struct dt_pass *pass)
{
    const struct dt_plan *plan = &pass->plan;
    struct dt_comm *world = pass->world;
    const struct dt_comm_config config = {plan->comm_ctas, plan->windows != 0};
    for (int i = 0; i < DT_DEGREES; i++) {
        int ranks = dt_plan_degree(plan, i), stride = dt_plan_stride(plan, i);
        int others = world->rank / (stride * ranks) * stride + world->rank % stride;
        if (ranks > 1 && dt_degrees[i].exchange != NULL)
            DT_TRY(world->ops->split(world, others, world->rank / stride % ranks, &config,
                                     &pass->comms[i]));
    }
    return DT_OK;
}

dt_status dt_pass_new(const struct dt_workload *workload, const struct dt_plan *plan,
                      const struct dt_weights *weights, struct dt_comm *world,
                      struct dt_pass **pass)
{
    struct dt_device *device = dt_weights_device(weights);
    DT_TRY(check(workload, plan, world->size));
    if (device->compute->host != ((dt_plan_on(plan) & DT_ON_CPU) != 0))
        return dt_fail(DT_EUSAGE, "stages=%d: this is a plan of %s, and this back end is %s",
                       plan->stages, plan->stages == 0 ? "the CPU" : "a GPU",
                       device->compute->name);
    if (!device->compute->usable(workload->dtype))
        return dt_fail(DT_EUNSUP, "%s does not run on this %s: use float32 here",
                       dt_dtype_text(workload->dtype), device->compute->name);
    struct dt_pass *made = calloc(1, sizeof *made);
    if (made == NULL)
        return agree(world, dt_fail(DT_ENOMEM, "no memory for a plan"));
    made->workload = *workload;
    made->plan = *plan;
    made->weights = weights;
    made->device = device;
    made->compute = device->compute;
    made->world = world;
    dt_layout_init(&made->layout, workload, plan, world->rank);
    dt_status status = agree(world, allocate_host(made));
    if (status == DT_OK)
        status = split(made);
    if (status == DT_OK)
        status = agree(world, allocate_device(made));
    if (status != DT_OK) {
        dt_pass_free(made);
        return status;
    }
    *pass = made;
    return DT_OK;
}

void dt_pass_free(struct dt_pass *pass)
{
    if (pass == NULL)
        return;
    dt_pass_layers_free(pass);
    if (pass->compute->graph.free != NULL)
        pass->compute->graph.free(pass->device, pass->graph);
    dt_timeline_free(pass->timeline);
    if (pass->memory.lender != NULL)
        pass->memory.lender->ops->release(pass->memory.lender, pass->memory.arena);
    else
        pass->compute->memory.release(pass->device, pass->memory.arena);
    for (int i = DT_DEGREES - 1; i >= 0; i--)
        dt_comm_free(pass->comms[i]);
    free(pass->memory.host);
    free(pass->memory.times);
    free(pass->exchanges.forth);
    free(pass->exchanges.back);
    free(pass->exchanges.sends);
    free(pass->exchanges.recvs);
    free(pass);
}

int64_t dt_pass_bytes(const struct dt_pass *pass)
{
    return pass->layout.bytes + (pass->compute->host ? pass->layout.host_bytes : 0);
}
