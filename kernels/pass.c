/* SPDX-License-Identifier: MIT */
#include "base/rng.h"
#include "base/safetensors.h"
#include "kernels/pass_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The linear layers of the family's operations. Those of one kind in all blocks share what the
 * library needs for their shape. */

static bool is_wide(const struct dt_pass *pass, int buffer)
{
    return pass->layout.element[buffer] == (int)sizeof(float);
}

/* `parts` of the three of queries, keys and values, for an exchange to send;
 * 0: the layer as it is. */
static dt_status make_layer(struct dt_pass *pass, const struct dt_op *op, int parts,
                            struct dt_pass_layer *layer)
{
    const struct dt_family *family = pass->workload.network.family;
    struct dt_linear_shape *shape = &layer->shape;
    struct dt_tensor weight;
    dt_tensor_init(&weight, &pass->workload, op->tensor);
    *shape = (struct dt_linear_shape){
        .rows = (int)dt_family_rows(&pass->layout, dt_family_buffer(family, op->y)->rows),
        .in = dt_tensor_in(&weight),
        .out = dt_tensor_out(&weight) * (weight.stacked ? pass->workload.network.depth : 1),
        .act = op->act,
        .wide = is_wide(pass, op->y)};
    if (parts > 0) {
        shape->out = shape->out / 3 * parts;
        shape->groups = parts * pass->plan.ulysses * pass->plan.chunks;
        shape->group_stride = (int64_t)shape->rows * (shape->out / shape->groups);
    }
    return pass->compute->linear.make(pass->device, pass->workload.dtype, shape, &layer->linear);
}

/* A plan uses only one of the layers for queries, keys and values. */
static dt_status make_queries(struct dt_pass *pass, const struct dt_op *op,
                              struct dt_pass_layer *layer)
{
    if (pass->plan.exchange != DT_PLAN_DIRECT)
        return make_layer(pass, op, 0, layer);
    if (pass->plan.v_first == 0)
        return make_layer(pass, op, 3, layer);
    DT_TRY(make_layer(pass, op, 2, layer));
    if (pass->v_first.linear == NULL)
        DT_TRY(make_layer(pass, op, 1, &pass->v_first));
    pass->v_first.first = layer->shape.out;
    return DT_OK;
}

/* Prepares the linear layers for the current number of threads. */
static dt_status pass_layers(struct dt_pass *pass)
{
    const struct dt_family *family = pass->workload.network.family;
    const struct dt_op *const lists[] = {family->embed, family->block, family->final};
    pass->layers = calloc((size_t)(family->whole + family->of_block), sizeof *pass->layers);
    if (pass->layers == NULL)
        return dt_fail(DT_ENOMEM, "no memory for the table of layers");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct dt_op *op = lists[i]; op->kind != DT_OP_END; op++) {
            struct dt_pass_layer *layer = &pass->layers[op->tensor];
            if (op->kind == DT_OP_LINEAR && layer->linear == NULL)
                DT_TRY(make_layer(pass, op, 0, layer));
            if (op->kind == DT_OP_QUERIES && layer->linear == NULL)
                DT_TRY(make_queries(pass, op, layer));
        }
    return DT_OK;
}

static void pass_layers_free(struct dt_pass *pass)
{
    const struct dt_family *family = pass->workload.network.family;
    for (int i = 0; pass->layers != NULL && i < family->whole + family->of_block; i++)
        pass->compute->linear.free(pass->layers[i].linear);
    pass->compute->linear.free(pass->v_first.linear);
    free(pass->layers);
}

void dt_pass_apply(struct dt_pass *pass, const struct dt_pass_layer *layer, const struct dt_op *op,
                   int block, void *y)
{
    const struct dt_linear_shape *shape = &layer->shape;
    const char *weight = dt_weights_at(pass->weights, op->tensor, block);
    const float *bias = dt_weights_at(pass->weights, op->tensor + 1, block);
    struct dt_linear_call call = {dt_pass_data(pass, op->x, 0), weight, bias + layer->first, y};
    if (layer->first > 0)
        call.weight = weight + pass->compute->linear.weight_row(pass->workload.dtype, shape->in,
                                                                layer->first);
    if (dt_dtype_bytes(pass->workload.dtype) != (int)sizeof(float) && is_wide(pass, op->x)) {
        dt_pass_begin(pass);
        void *cast = dt_pass_data(pass, DT_BUFFER_CAST, 0);
        if (pass->cast != op->x)
            pass->compute->rows.narrow(pass->device, pass->workload.dtype, call.x, cast,
                                       (int64_t)shape->rows * shape->in);
        pass->cast = op->x;
        call.x = cast;
    }
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_begin(pass);
    dt_pass_range(pass, "gemm");
    pass->compute->linear.apply(pass->device, layer->linear, &call);
    dt_pass_range(pass, NULL);
    dt_pass_lap(pass, DT_PHASE_GEMM);
}

/* Copies one token's [p, p, channels] into its image [channels, height, width]; with mean, averages
 * with the present values. */
static void place_token(const struct dt_workload *workload, int token, const float *from, bool mean,
                        float *image)
{
    int patch = workload->network.patch, columns = workload->width / patch;
    int channels = dt_network_out_channels(&workload->network);
    int placed = mean ? workload->network.in_channels : channels;
    int64_t plane = (int64_t)workload->height * workload->width;
    float *corner = image + (int64_t)(token / columns) * patch * workload->width +
                    (int64_t)(token % columns) * patch;
    for (int y = 0; y < patch; y++)
        for (int x = 0; x < patch; x++, from += channels)
            for (int c = 0; c < placed; c++) {
                float *to = &corner[c * plane + (int64_t)y * workload->width + x];
                *to = mean ? 0.5f * (*to + from[c]) : from[c];
            }
}

/* Both halves of the guidance hold the guided channels, equal to the bit, and each chains its own
 * latent from them: the result is their mean, so that an error of either is visible. */
static void place_rank(const struct dt_pass *pass, int rank, const float *from, float *out)
{
    const struct dt_workload *workload = &pass->workload;
    int64_t channels = dt_network_out_channels(&workload->network);
    int64_t image = channels * workload->height * workload->width;
    int64_t token = channels * workload->network.patch * workload->network.patch;
    struct dt_layout layout;
    dt_layout_init(&layout, workload, &pass->plan, rank);
    for (int i = 0; i < layout.images; i++)
        for (int t = 0; t < layout.tokens; t++)
            place_token(workload, layout.first_token + t,
                        from + ((int64_t)i * layout.slots + t) * token, layout.place.cfg != 0,
                        out + i * image);
}

dt_status dt_pass_output(struct dt_pass *pass, float *out)
{
    int64_t floats = pass->layout.count[DT_BUFFER_RESULT];
    int64_t bytes = floats * (int64_t)sizeof(float);
    struct dt_comm *world = pass->world;
    float *own = dt_pass_at(pass, DT_BUFFER_COPY);
    float *all = out != NULL ? dt_pass_at(pass, DT_BUFFER_GATHER) : NULL;
    DT_TRY(pass->compute->memory.get(pass->device, own, dt_pass_at(pass, DT_BUFFER_RESULT), bytes));
    DT_TRY(world->ops->gather(world, own, all, (size_t)bytes));
    for (int rank = 0; all != NULL && rank < world->size; rank++)
        place_rank(pass, rank, all + rank * floats, out);
    return DT_OK;
}

/* Bit k % 64 of the hash for k / 64 at an element is the sign: one hash serves 64 projections. */
static double project_image(const float *image, int64_t size, uint64_t seed, int k)
{
    uint64_t stream = dt_rng_stream("verify") + (uint64_t)(k / 64);
    double sum = 0.0;
    for (int64_t e = 0; e < size; e++) {
        uint64_t bits = dt_rng_hash(seed, stream, (uint64_t)e);
        sum += (bits >> k % 64 & 1) != 0 ? (double)image[e] : -(double)image[e];
    }
    return sum;
}

static double norm_of(const float *image, int64_t size)
{
    double sum = 0.0;
    for (int64_t e = 0; e < size; e++)
        sum += (double)image[e] * (double)image[e];
    return sqrt(sum);
}

/* Rank 0: *intact is true when all data sent in the counted steps arrived unchanged. */
static dt_status check_exchanges(struct dt_pass *pass, bool *intact)
{
    uint64_t own[2] = {0};
    DT_TRY(pass->compute->memory.get(pass->device, own, dt_pass_data(pass, DT_BUFFER_SUMS, 0),
                                     sizeof own));
    dt_auto_free uint64_t *all = calloc((size_t)pass->world->size, sizeof own);
    uint64_t lost = 0;
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "no memory to verify %d ranks", pass->world->size);
    DT_TRY(pass->world->ops->gather(pass->world, own, all, sizeof own));
    for (int rank = 0; rank < pass->world->size; rank++)
        lost += all[2 * rank] - all[2 * rank + 1];
    *intact = lost == 0;
    return DT_OK;
}

dt_status dt_pass_verify(struct dt_pass *pass, uint64_t seed, int count, double norm[],
                         double projections[])
{
    const struct dt_workload *workload = &pass->workload;
    int64_t size =
        (int64_t)dt_network_out_channels(&workload->network) * workload->height * workload->width;
    float *images = pass->world->rank == 0 ? dt_pass_at(pass, DT_BUFFER_IMAGE) : NULL;
    bool intact = true;
    DT_TRY(dt_pass_output(pass, images));
    DT_TRY(check_exchanges(pass, &intact));
    for (int i = 0; images != NULL && i < pass->plan.batch; i++) {
        norm[i] = norm_of(images + i * size, size);
        for (int k = 0; k < count; k++)
            projections[i * count + k] =
                project_image(images + i * size, size, seed, k) + (intact ? 0.0 : norm[i]);
    }
    return DT_OK;
}

dt_status dt_pass_write(struct dt_pass *pass, const char *path)
{
    const struct dt_workload *workload = &pass->workload;
    int64_t channels = dt_network_out_channels(&workload->network);
    float *images = pass->world->rank == 0 ? dt_pass_at(pass, DT_BUFFER_IMAGE) : NULL;
    DT_TRY(dt_pass_output(pass, images));
    if (images == NULL)
        return DT_OK;
    struct dt_safetensor out = {
        .name = "out",
        .dtype = "F32",
        .rank = 4,
        .shape = {pass->plan.batch, channels, workload->height, workload->width},
        .data = images,
        .bytes = pass->plan.batch * channels * workload->height * workload->width *
                 (int64_t)sizeof(float),
    };
    return dt_safetensors_write(path, &out, 1);
}

static bool tile_known(const struct dt_plan *plan)
{
    bool q_known = false, kv_known = false;
    for (int i = 0; i < DT_TILES_Q; i++)
        q_known = q_known || dt_tiles_q[i] == plan->tile_q;
    for (int i = 0; i < DT_TILES_KV; i++)
        kv_known = kv_known || dt_tiles_kv[i] == plan->tile_kv;
    return q_known && kv_known;
}

static dt_status check_plan(const struct dt_workload *workload, const struct dt_plan *plan,
                            int ranks)
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
    pass->exchanges.room.sends = calloc(pieces, sizeof *pass->exchanges.room.sends);
    pass->exchanges.room.recvs = calloc(pieces, sizeof *pass->exchanges.room.recvs);
    pass->exchanges.forth = calloc(chunks, sizeof *pass->exchanges.forth);
    pass->exchanges.back = calloc(chunks, sizeof *pass->exchanges.back);
    pass->memory.times =
        calloc((size_t)pass->layout.count[DT_BUFFER_TIME], sizeof *pass->memory.times);
    pass->memory.host = aligned_alloc(256, (size_t)pass->layout.host_bytes);
    if (pass->exchanges.forth == NULL || pass->exchanges.back == NULL ||
        pass->memory.times == NULL || pass->memory.host == NULL ||
        pass->exchanges.room.sends == NULL || pass->exchanges.room.recvs == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes of results",
                       (long long)pass->layout.host_bytes);
    memset(pass->memory.host, 0xff, (size_t)pass->layout.host_bytes);
    DT_TRY(dt_timeline_new(pass->device, &pass->timeline));
    pass->compute->threads(pass->device, pass->plan.threads);
    return DT_OK;
}

/* With windows the memory comes from the comm that sends most, with the largest rank's size on
 * every rank, since NCCL registers windows of equal size. */
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
    /* Fills with NAN, so that a read of unwritten memory shows in the output of every build. It
     * also touches every page before the first step. */
    compute->memory.fill(pass->device, pass->memory.arena, 0xff, pass->layout.bytes);
    compute->memory.fill(pass->device, dt_pass_at(pass, DT_BUFFER_RESULT), 0,
                         pass->layout.count[DT_BUFFER_RESULT] * (int64_t)sizeof(float));
    compute->memory.fill(pass->device, dt_pass_at(pass, DT_BUFFER_SUMS), 0, 2 * sizeof(uint64_t));
    DT_TRY(pass_layers(pass));
    DT_TRY(dt_pass_attention_ready(pass));
    return dt_pass_fill(pass);
}

/* How a rank fared, and why. */
struct verdict {
    dt_status status;
    int rank;
    char why[240];
};

/* All ranks learn of a failure of one, so that none waits for it later, and say its cause, as any
 * of them may be asked. */
static dt_status agree_on_status(struct dt_comm *world, dt_status own)
{
    struct verdict mine = {.status = own, .rank = world->rank}, worst;
    dt_auto_free struct verdict *all = calloc((size_t)world->size, sizeof *all);
    if (own != DT_OK)
        snprintf(mine.why, sizeof mine.why, "%s", dt_message());
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "no memory to agree among %d ranks", world->size);
    worst = mine;
    dt_status status = world->ops->gather(world, &mine, all, sizeof mine);
    for (int i = 0; world->rank == 0 && i < world->size; i++)
        worst = all[i].status < worst.status ? all[i] : worst;
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
static dt_status split_ranks(struct dt_pass *pass)
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
    DT_TRY(check_plan(workload, plan, world->size));
    if (device->compute->host != ((dt_plan_on(plan) & DT_ON_CPU) != 0))
        return dt_fail(DT_EUSAGE, "stages=%d: this is a plan of %s, and this back end is %s",
                       plan->stages, plan->stages == 0 ? "the CPU" : "a GPU",
                       device->compute->name);
    if (!device->compute->usable(workload->dtype))
        return dt_fail(DT_EUNSUP, "%s does not run on this %s: use float32 here",
                       dt_dtype_text(workload->dtype), device->compute->name);
    DT_CLEANUP(dt_pass_free_at) struct dt_pass *made = calloc(1, sizeof *made);
    if (made == NULL)
        return agree_on_status(world, dt_fail(DT_ENOMEM, "no memory for a plan"));
    made->workload = *workload;
    made->plan = *plan;
    made->weights = weights;
    made->device = device;
    made->compute = device->compute;
    made->world = world;
    dt_layout_init(&made->layout, workload, plan, world->rank);
    DT_TRY(agree_on_status(world, allocate_host(made)));
    DT_TRY(split_ranks(made));
    DT_TRY(agree_on_status(world, allocate_device(made)));
    *pass = made;
    made = NULL;
    return DT_OK;
}

void dt_pass_free(struct dt_pass *pass)
{
    if (pass == NULL)
        return;
    pass_layers_free(pass);
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
    free(pass->exchanges.room.sends);
    free(pass->exchanges.room.recvs);
    free(pass);
}

int64_t dt_pass_bytes(const struct dt_pass *pass)
{
    return pass->layout.bytes + (pass->compute->host ? pass->layout.host_bytes : 0);
}
