/* SPDX-License-Identifier: MIT */
/* Buffers never share memory: the saving (a few per cent of the weights) does not justify a
 * rule about lifetimes. */
#include "model/layout.h"
#include "model/family.h"

/* Attention of the CPU back end: queries are padded to 32 rows, keys and channels to 8
 * (kernels/cpu/simd_body.h). */
#define QUERY_PAD 32
#define ROW_PAD   8
#define ALIGN     256

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Buffers in the workload's data type: those of exchanges and of attention, and the copy that a
 * linear layer reads. The network's are rows of its family, the rest is float32. */
static const bool activation[DT_BUFFER_COUNT] = {
    [DT_BUFFER_CAST] = true,      [DT_BUFFER_SEND] = true,      [DT_BUFFER_RECV] = true,
    [DT_BUFFER_BACK_SEND] = true, [DT_BUFFER_BACK_RECV] = true, [DT_BUFFER_QUERY] = true,
    [DT_BUFFER_KV] = true,        [DT_BUFFER_KV_NEXT] = true,   [DT_BUFFER_HEADS] = true,
    [DT_BUFFER_PART] = true,
};

/* One thread's floats: transposed queries and outputs, their maxima and sums, scores, a key and a
 * value tile; and for bfloat16, whose tiles take half of that, weights in pairs. */
static int64_t scratch_bytes(enum dt_dtype dtype, int head, int tile_q, int tile_kv)
{
    int64_t channels = round_up(head, ROW_PAD);
    int64_t queries = round_up(tile_q, QUERY_PAD);
    int64_t keys = round_up(tile_kv, ROW_PAD);
    int64_t floats = 2 * queries * channels + 2 * queries + keys * QUERY_PAD + 2 * keys * channels;
    if (dtype == DT_BFLOAT16)
        floats += keys * QUERY_PAD / 2;
    return round_up(floats, ALIGN / (int64_t)sizeof(float));
}

/* Tokens of ring block `ring`, held by its ulysses ranks together, and where they start. */
static int layout_block_offset(int tokens, const struct dt_plan *plan, int ring)
{
    int ranks = plan->ring * plan->ulysses;
    int first = ring * plan->ulysses;
    return first == ranks ? tokens : dt_workload_offset(tokens, ranks, first);
}

int dt_layout_block(int tokens, const struct dt_plan *plan, int ring)
{
    return layout_block_offset(tokens, plan, ring + 1) - layout_block_offset(tokens, plan, ring);
}

static void place_buffers(struct dt_layout *layout, const struct dt_workload *workload,
                          const struct dt_plan *plan, int rank)
{
    int tokens = dt_workload_tokens(workload);
    int ranks = plan->ring * plan->ulysses;
    layout->place = dt_plan_place(plan, rank);
    int index = layout->place.ring * plan->ulysses + layout->place.ulysses;
    layout->images = plan->batch;
    layout->sequences = layout->images * dt_workload_passes(workload) / plan->cfg;
    layout->tokens = dt_workload_share(tokens, ranks, index);
    layout->first_token = dt_workload_offset(tokens, ranks, index);
    layout->slots = dt_workload_share(tokens, ranks, 0);
    layout->block = dt_layout_block(tokens, plan, layout->place.ring);
    layout->block_slots = dt_layout_block(tokens, plan, 0);
    layout->heads = workload->network.heads / plan->ulysses;
    layout->chunk_heads = dt_workload_share(layout->heads, plan->chunks, 0);
    layout->scratch = scratch_bytes(workload->dtype, dt_network_head(&workload->network),
                                    plan->tile_q, plan->tile_kv);
}

/* The largest float32 input of a linear layer; float32 layers read it in place. */
static int64_t cast_elements(const struct dt_layout *layout, const struct dt_family *family)
{
    const struct dt_op *const lists[] = {family->embed, family->block, family->final};
    int64_t most = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct dt_op *op = lists[i]; op->kind != DT_OP_END; op++)
            if ((op->kind == DT_OP_LINEAR || op->kind == DT_OP_QUERIES) &&
                !dt_family_buffer(family, op->x)->activation && layout->count[op->x] > most)
                most = layout->count[op->x];
    return most;
}

static void size_network(struct dt_layout *layout, const struct dt_workload *workload)
{
    const struct dt_family *family = workload->network.family;
    int64_t *count = layout->count;
    for (int i = 0; i < DT_BUFFER_COUNT; i++) {
        const struct dt_buffer_row *row = dt_family_buffer(family, i);
        if (row != NULL)
            count[i] = dt_family_rows(layout, row->rows) * dt_family_product(workload, row->width) *
                       (row->blocks ? workload->network.depth : 1);
        layout->element[i] = activation[i] || (row != NULL && row->activation)
                                 ? dt_dtype_bytes(workload->dtype)
                                 : (int)sizeof(float);
    }
    count[DT_BUFFER_NOISE] = workload->input[0] == '\0' ? count[DT_BUFFER_LATENT] : 0;
    count[DT_BUFFER_TIME] = layout->sequences + 2;
    if (dt_dtype_bytes(workload->dtype) != (int)sizeof(float))
        count[DT_BUFFER_CAST] = cast_elements(layout, family);
}

/* The residual stream is what MODULATE adds to. */
static void narrow_stream(struct dt_layout *layout, const struct dt_workload *workload)
{
    for (const struct dt_op *op = workload->network.family->block; op->kind != DT_OP_END; op++)
        if (op->kind == DT_OP_MODULATE)
            layout->element[op->x] = dt_dtype_bytes(workload->dtype);
}

static void size_result(struct dt_layout *layout, const struct dt_workload *workload,
                        const struct dt_plan *plan, int rank)
{
    const struct dt_network *network = &workload->network;
    int64_t *count = layout->count;
    int64_t pixels = (int64_t)network->patch * network->patch;
    int64_t out = dt_network_out_channels(network);
    int64_t eps = (int64_t)layout->images * layout->tokens * pixels * network->in_channels;
    count[DT_BUFFER_EPS_SEND] = plan->cfg > 1 ? eps : 0;
    count[DT_BUFFER_EPS_RECV] = plan->cfg > 1 ? eps : 0;
    count[DT_BUFFER_RESULT] = (int64_t)layout->images * layout->slots * pixels * out;
    count[DT_BUFFER_SUMS] = 2 * sizeof(uint64_t) / sizeof(float);
    count[DT_BUFFER_COPY] = count[DT_BUFFER_RESULT];
    count[DT_BUFFER_GATHER] = rank == 0 ? plan->ranks * count[DT_BUFFER_RESULT] : 0;
    count[DT_BUFFER_IMAGE] =
        rank == 0 ? (int64_t)plan->batch * out * workload->height * workload->width : 0;
}

static void size_parallel(struct dt_layout *layout, const struct dt_workload *workload,
                          const struct dt_plan *plan)
{
    int64_t *count = layout->count;
    int64_t channels = workload->network.hidden;
    int64_t width = (int64_t)layout->chunk_heads * dt_network_head(&workload->network);
    int64_t rows = layout->sequences;
    bool direct = plan->exchange == DT_PLAN_DIRECT;
    if (direct) { /* each chunk has its own place, and data arrives where it is read */
        width *= plan->chunks;
        count[DT_BUFFER_QKV] = 0;
    }
    if (plan->ulysses > 1) {
        count[DT_BUFFER_SEND] = rows * layout->slots * 3 * channels;
        count[DT_BUFFER_RECV] = direct ? 0 : count[DT_BUFFER_SEND];
        count[DT_BUFFER_BACK_RECV] = rows * layout->slots * channels;
        count[DT_BUFFER_BACK_SEND] = direct ? 0 : count[DT_BUFFER_BACK_RECV];
        count[DT_BUFFER_QUERY] = rows * layout->block * width;
        count[DT_BUFFER_HEADS] = count[DT_BUFFER_QUERY];
    }
    if (plan->ulysses > 1 || plan->ring > 1)
        count[DT_BUFFER_KV] = 2 * rows * layout->block_slots * width;
    if (plan->ring > 1) {
        width = (int64_t)layout->chunk_heads * dt_network_head(&workload->network);
        count[DT_BUFFER_KV_NEXT] = 2 * rows * layout->block_slots * width;
        count[DT_BUFFER_PART] = rows * layout->block * width;
        count[DT_BUFFER_LSE] = rows * layout->block * layout->chunk_heads;
        count[DT_BUFFER_LSE_PART] = count[DT_BUFFER_LSE];
    }
    count[DT_BUFFER_SCRATCH] =
        (dt_plan_on(plan) & DT_ON_CPU) != 0 ? plan->threads * layout->scratch : 0;
}

void dt_layout_init(struct dt_layout *layout, const struct dt_workload *workload,
                    const struct dt_plan *plan, int rank)
{
    *layout = (struct dt_layout){0};
    place_buffers(layout, workload, plan, rank);
    size_network(layout, workload);
    if (plan->residual == DT_PLAN_NARROW)
        narrow_stream(layout, workload);
    size_result(layout, workload, plan, rank);
    size_parallel(layout, workload, plan);
    layout->host[DT_BUFFER_COPY] = layout->host[DT_BUFFER_GATHER] = true;
    layout->host[DT_BUFFER_IMAGE] = true;
    for (int i = 0; i < DT_BUFFER_COUNT; i++) {
        int64_t *bytes = layout->host[i] ? &layout->host_bytes : &layout->bytes;
        layout->offset[i] = *bytes;
        *bytes += round_up(layout->count[i] * layout->element[i], ALIGN);
    }
}

int64_t dt_layout_bytes(const struct dt_workload *workload, const struct dt_plan *plan)
{
    struct dt_layout layout;
    dt_layout_init(&layout, workload, plan, 0);
    return layout.bytes + layout.host_bytes;
}
