/* SPDX-License-Identifier: MIT */
/* Attention over a sequence that is split among ranks: Ulysses (Jacobs et al. 2023) inside, ring attention (Liu et al.
 * 2023) outside, as in USP (Fang & Zhao 2024).
 *
 * Work goes chunk by chunk: some of the heads this rank owns. With ulysses a chunk arrives by an all-to-all from the
 * ranks of the ring block and leaves by another. With a ring the keys and values of a chunk go around, and the parts
 * are merged by log-sum-exp. Exchanged data is padded to equal size; the padding is never unpacked.
 */
#include "kernels/parallel_int.h"

static const struct dt_ulysses *travel(const struct dt_pass *pass)
{
    return pass->plan.exchange == DT_PLAN_DIRECT ? &dt_ulysses_direct : &dt_ulysses_packed;
}

static void poll(void *arg)
{
    struct dt_pass *pass = arg;
    pass->world->ops->poll(pass->world);
}

static struct dt_attention operation(struct dt_pass *pass, const struct dt_chunk *chunk, int keys,
                                     bool merge)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t width = chunk->width;
    struct dt_attention op = {
        .q = chunk->q,
        .k = chunk->k,
        .v = chunk->v,
        .out = chunk->out,
        .lse = pass->plan.ring > 1 ? dt_pass_at(pass, DT_BUFFER_LSE) : NULL,
        .q_at = chunk->q_at,
        .kv_at = chunk->kv_at,
        .out_at = chunk->out_at,
        .sequences = layout->sequences,
        .heads = chunk->heads,
        .head = dt_network_head(&pass->workload.network),
        .queries = layout->block,
        .keys = keys,
        .tile = {pass->plan.tile_q, pass->plan.tile_kv, pass->plan.stages, pass->plan.warps},
        .kind = (enum dt_attention_kind)pass->plan.attention,
        .scratch = dt_pass_at(pass, DT_BUFFER_SCRATCH),
        .scratch_floats = layout->scratch,
        .poll = pass->world->ops->poll != NULL ? poll : NULL,
        .poll_arg = pass,
    };
    if (merge) {
        op.out = dt_pass_data(pass, DT_BUFFER_PART, 0);
        op.lse = dt_pass_at(pass, DT_BUFFER_LSE_PART);
        op.out_at = (struct dt_strides){layout->block * width, width};
    }
    return op;
}

/* Attention of the chunk's queries to `keys` keys: written to out, or to PART with its log-sum-exp and merged. */
static void attend(struct dt_pass *pass, const struct dt_chunk *chunk, int keys, bool merge)
{
    struct dt_attention op = operation(pass, chunk, keys, merge);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_begin(pass);
    dt_pass_range(pass, "attention");
    pass->compute->attention.run(pass->device, pass->workload.dtype, &op);
    if (pass->world->ops->note != NULL)
        pass->world->ops->note(pass->world, "attention", chunk->block);
    if (merge) {
        struct dt_merge join = {chunk->out,    dt_pass_at(pass, DT_BUFFER_LSE),
                                op.out,        op.lse,
                                chunk->out_at, op.sequences,
                                op.heads,      op.head,
                                op.queries};
        pass->compute->attention.merge(pass->device, pass->workload.dtype, &join);
    }
    dt_pass_range(pass, NULL);
    dt_pass_lap(pass, DT_PHASE_ATTENTION);
}

static int64_t rotated(const struct dt_pass *pass, const struct dt_chunk *chunk)
{
    return dt_chunk_bytes(pass, 2 * (int64_t)pass->layout.sequences * pass->layout.block_slots *
                                    chunk->width);
}

static dt_status rotate(struct dt_pass *pass, const struct dt_chunk *chunk, const char *from,
                        char *to)
{
    int64_t bytes = rotated(pass, chunk);
    dt_pass_count(pass, 0, from, bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, &pass->exchanges.rotation);
    dt_status status = dt_comm_shift(pass->comms[DT_DEGREE_ring], from, to, (size_t)bytes,
                                     &pass->exchanges.rotation);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* Start of the chunk's keys that a ring moves. */
static char *ring_start(const struct dt_pass *pass, const struct dt_chunk *chunk)
{
    int64_t keys = 2LL * pass->layout.sequences * pass->layout.block_slots * chunk->width;
    bool all = pass->plan.exchange == DT_PLAN_DIRECT;
    return dt_pass_data(pass, DT_BUFFER_KV, all ? chunk->index * keys : 0);
}

static void place_keys(const struct dt_pass *pass, struct dt_chunk *chunk, char *at, int keys)
{
    chunk->kv_at = (struct dt_strides){(int64_t)keys * chunk->width, chunk->width};
    chunk->k = at;
    chunk->v = at + dt_chunk_bytes(pass, pass->layout.sequences * chunk->kv_at.sequence);
}

/* With overlap the next block is in flight while this one is used. */
static dt_status attend_ring(struct dt_pass *pass, struct dt_chunk *chunk)
{
    int ranks = pass->plan.ring, tokens = dt_workload_tokens(&pass->workload);
    char *here = ring_start(pass, chunk);
    char *next = dt_pass_data(pass, DT_BUFFER_KV_NEXT, 0);
    for (int hop = 0; hop < ranks; hop++) {
        int owner = (pass->layout.place.ring - hop + ranks) % ranks;
        int keys = dt_layout_block(tokens, &pass->plan, owner);
        bool more = hop + 1 < ranks;
        place_keys(pass, chunk, here, keys);
        if (more && pass->plan.overlap)
            DT_TRY(rotate(pass, chunk, here, next));
        attend(pass, chunk, keys, hop > 0);
        if (more && !pass->plan.overlap)
            DT_TRY(rotate(pass, chunk, here, next));
        if (more) {
            DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ring], &pass->exchanges.rotation));
            dt_pass_count(pass, 1, next, rotated(pass, chunk));
        }
        char *last = here;
        here = next;
        next = last;
    }
    return DT_OK;
}

/* Sets the places of the chunk's tensors: with ulysses where they arrive, else in place. */
static void place_chunk(struct dt_pass *pass, struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden, width = chunk->width;
    int64_t column = (int64_t)chunk->first * dt_network_head(&pass->workload.network);
    if (pass->plan.ulysses > 1) {
        int64_t index = pass->plan.exchange == DT_PLAN_DIRECT ? chunk->index : 0;
        int64_t whole = (int64_t)layout->sequences * layout->block * width;
        int64_t keys = index * 2 * layout->sequences * layout->block_slots * width;
        chunk->q = dt_pass_data(pass, DT_BUFFER_QUERY, index * whole);
        chunk->k = dt_pass_data(pass, DT_BUFFER_KV, keys);
        chunk->v = dt_pass_data(pass, DT_BUFFER_KV, keys + whole);
        chunk->out = dt_pass_data(pass, DT_BUFFER_HEADS, index * whole);
        chunk->q_at = chunk->kv_at = chunk->out_at =
            (struct dt_strides){layout->block * width, width};
        return;
    }
    chunk->q = dt_pass_data(pass, DT_BUFFER_QKV, column);
    chunk->k = dt_pass_data(pass, DT_BUFFER_QKV, column + channels);
    chunk->v = dt_pass_data(pass, DT_BUFFER_QKV, column + 2 * channels);
    chunk->out = dt_pass_data(pass, DT_BUFFER_ATTENTION, column);
    chunk->q_at = chunk->kv_at = (struct dt_strides){layout->tokens * 3 * channels, 3 * channels};
    chunk->out_at = (struct dt_strides){layout->tokens * channels, channels};
}

/* Without ulysses queries stay in place; keys and values, too, unless a ring moves them. */
static void take_own(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    int64_t rows = (int64_t)pass->layout.sequences * pass->layout.tokens;
    int64_t channels = pass->workload.network.hidden, width = chunk->width;
    dt_chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_KV, 0),
                                         .from = chunk->k,
                                         .count = {1, 2, rows},
                                         .to_stride = {0, rows * width, width},
                                         .from_stride = {0, channels, 3 * channels},
                                         .width = width});
}

static dt_status attend_chunk(struct dt_pass *pass, struct dt_chunk *chunk)
{
    place_chunk(pass, chunk);
    if (pass->comms[DT_DEGREE_ulysses] != NULL)
        DT_TRY(travel(pass)->take_forth(pass, chunk));
    else if (pass->comms[DT_DEGREE_ring] != NULL)
        take_own(pass, chunk);
    if (pass->comms[DT_DEGREE_ring] != NULL)
        return attend_ring(pass, chunk);
    attend(pass, chunk, pass->layout.block, false);
    return DT_OK;
}

/* With overlap the next chunk is in flight while this one is used, and outputs are waited for at the end. */
static dt_status attend_ulysses(struct dt_pass *pass, int block)
{
    int chunks = pass->plan.chunks;
    bool overlap = pass->plan.overlap != 0;
    if (overlap)
        DT_TRY(travel(pass)->post_forth(pass, block, 0));
    for (int i = 0; i < chunks; i++) {
        struct dt_chunk chunk = dt_chunk_at(pass, block, i);
        int next = overlap ? i + 1 : i;
        if (next < chunks)
            DT_TRY(travel(pass)->post_forth(pass, block, next));
        DT_TRY(attend_chunk(pass, &chunk));
        DT_TRY(travel(pass)->post_back(pass, &chunk));
        if (!overlap)
            DT_TRY(travel(pass)->take_back(pass, &chunk));
    }
    for (int i = 0; overlap && i < chunks; i++) {
        struct dt_chunk chunk = dt_chunk_at(pass, block, i);
        DT_TRY(travel(pass)->take_back(pass, &chunk));
    }
    return DT_OK;
}

/* Direct exchange: the layers write the data to send. Values first, so that they are in flight while queries and keys
 * are computed. */
dt_status dt_pass_queries(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_pass_layer *layer = &pass->layers[op->tensor];
    bool direct = pass->plan.exchange == DT_PLAN_DIRECT;
    int64_t part =
        (int64_t)pass->layout.sequences * pass->layout.tokens * pass->workload.network.hidden;
    if (direct && pass->plan.v_first != 0) {
        dt_pass_apply(pass, &pass->v_first, op, block,
                      dt_pass_data(pass, DT_BUFFER_SEND, 2 * part));
        DT_TRY(travel(pass)->post_values(pass, block));
    }
    dt_pass_apply(pass, layer, op, block, dt_pass_data(pass, direct ? DT_BUFFER_SEND : op->y, 0));
    return DT_OK;
}

dt_status dt_pass_attention(struct dt_pass *pass, int block)
{
    dt_status status = DT_OK;
    if (pass->comms[DT_DEGREE_ulysses] != NULL) {
        status = attend_ulysses(pass, block);
    } else {
        for (int i = 0; status == DT_OK && i < pass->plan.chunks; i++) {
            struct dt_chunk chunk = dt_chunk_at(pass, block, i);
            status = attend_chunk(pass, &chunk);
        }
    }
    dt_pass_lap(pass, DT_PHASE_REST);
    return status;
}

/* A ring uses every block's keys, first without and then with a merge; chunks differ in heads. */
dt_status dt_pass_attention_ready(struct dt_pass *pass)
{
    int tokens = dt_workload_tokens(&pass->workload), ranks = pass->plan.ring;
    for (int i = 0; i < pass->plan.chunks; i++) {
        struct dt_chunk chunk = dt_chunk_at(pass, 0, i);
        place_chunk(pass, &chunk);
        for (int owner = 0; owner < ranks; owner++) {
            int keys = dt_layout_block(tokens, &pass->plan, owner);
            if (ranks > 1)
                place_keys(pass, &chunk, ring_start(pass, &chunk), keys);
            struct dt_attention op =
                operation(pass, &chunk, keys, owner != pass->layout.place.ring);
            DT_TRY(pass->compute->attention.ready(pass->device, pass->workload.dtype, &op));
        }
    }
    return DT_OK;
}
