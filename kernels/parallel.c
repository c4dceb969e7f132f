/* SPDX-License-Identifier: MIT */
/* Attention over a sequence that is split among ranks: Ulysses (Jacobs et al. 2023) inside, ring attention (Liu et al.
 * 2023) outside, as in USP (Fang & Zhao 2024).
 *
 * Work goes chunk by chunk: some of the heads this rank owns. With ulysses a chunk arrives by an all-to-all from the
 * ranks of the ring block and leaves by another. With a ring the keys and values of a chunk go around, and the parts are
 * merged by log-sum-exp. What travels is padded to equal size; the padding is never unpacked.
 */
#include "kernels/pass_int.h"

struct chunk {
    int index, block; /* block of the network */
    int first, heads; /* of the heads this rank owns */
    int width;        /* heads * D */
    const char *q, *k, *v;
    char *out;
    struct dt_strides q_at, kv_at, out_at;
};

static int head_size(const struct dt_pass *pass)
{
    return dt_network_head(&pass->workload.network);
}

static struct chunk chunk_at(const struct dt_pass *pass, int block, int index)
{
    int owned = pass->layout.heads, chunks = pass->plan.chunks;
    struct chunk chunk = {.index = index, .block = block};
    chunk.first = dt_workload_offset(owned, chunks, index);
    chunk.heads = dt_workload_share(owned, chunks, index);
    chunk.width = chunk.heads * head_size(pass);
    return chunk;
}

/* Bytes of an element of what flows between layers, and of `count` of them. */
static int element(const struct dt_pass *pass)
{
    return pass->layout.element[DT_BUFFER_QKV];
}

static int64_t bytes_of(const struct dt_pass *pass, int64_t count)
{
    return count * element(pass);
}

static void copy(struct dt_pass *pass, void *to, int64_t to_stride, const void *from,
                 int64_t from_stride, const int64_t size[2])
{
    struct dt_copy op = {to, from, to_stride, from_stride, size[0], size[1], element(pass)};
    pass->compute->copy(&op);
}

/* Tokens that ulysses rank u of the own ring block holds, and where they start in the block. */
static int peer_tokens(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    return dt_workload_share(dt_workload_tokens(&pass->workload), plan->ring * plan->ulysses,
                             pass->layout.place.ring * plan->ulysses + u);
}

static int peer_offset(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    int tokens = dt_workload_tokens(&pass->workload), ranks = plan->ring * plan->ulysses;
    int first = pass->layout.place.ring * plan->ulysses;
    return dt_workload_offset(tokens, ranks, first + u) - dt_workload_offset(tokens, ranks, first);
}

/* Elements of one peer's block of an all-to-all, `parts` tensors wide, and where a chunk's exchange starts. */
static int64_t wire_block(const struct dt_pass *pass, const struct chunk *chunk, int parts)
{
    return (int64_t)pass->layout.sequences * pass->layout.slots * parts * chunk->width;
}

static int64_t wire_start(const struct dt_pass *pass, const struct chunk *chunk, int parts)
{
    return (int64_t)pass->plan.ulysses * pass->layout.sequences * pass->layout.slots * parts *
           chunk->first * head_size(pass);
}

/* Heads of every peer's chunk, out of the own tokens' qkv: [peer, N, S, 3, h, D]. */
static dt_status post_forth(struct dt_pass *pass, int block, int index)
{
    const struct dt_layout *layout = &pass->layout;
    struct chunk chunk = chunk_at(pass, block, index);
    int64_t channels = pass->workload.network.hidden, start = wire_start(pass, &chunk, 3);
    int64_t peer_block = wire_block(pass, &chunk, 3);
    int64_t size[2] = {layout->tokens, chunk.width};
    void *send = dt_pass_data(pass, DT_BUFFER_SEND, start);
    int64_t bytes = bytes_of(pass, peer_block);
    for (int row = 0; row < pass->plan.ulysses * layout->sequences * 3; row++) {
        int part = row % 3, n = row / 3 % layout->sequences, u = row / 3 / layout->sequences;
        int64_t head = (int64_t)u * layout->heads + chunk.first;
        int64_t to = start + u * peer_block + (int64_t)n * layout->slots * 3 * chunk.width +
                     part * chunk.width;
        int64_t from =
            (int64_t)n * layout->tokens * 3 * channels + part * channels + head * head_size(pass);
        copy(pass, dt_pass_data(pass, DT_BUFFER_SEND, to), 3 * chunk.width,
             dt_pass_data(pass, DT_BUFFER_QKV, from), 3 * channels, size);
    }
    dt_pass_count(pass, &pass->sent, send, pass->plan.ulysses * bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_status status =
        dt_comm_alltoall(pass->ulysses, send, dt_pass_data(pass, DT_BUFFER_RECV, start),
                         (size_t)bytes, &pass->forth[index]);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* What arrived, without padding: q [N, K, h, D], k and v [2, N, K, h, D]. */
static dt_status take_forth(struct dt_pass *pass, struct chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 3), width = chunk->width;
    int64_t start = wire_start(pass, chunk, 3);
    int64_t whole = (int64_t)layout->sequences * layout->block * width;
    const enum dt_buffer to[3] = {DT_BUFFER_QUERY, DT_BUFFER_KV, DT_BUFFER_KV};
    DT_TRY(dt_pass_wait(pass, pass->ulysses, &pass->forth[chunk->index]));
    dt_pass_count(pass, &pass->received, dt_pass_data(pass, DT_BUFFER_RECV, start),
                  bytes_of(pass, pass->plan.ulysses * peer_block));
    for (int row = 0; row < pass->plan.ulysses * layout->sequences * 3; row++) {
        int part = row % 3, n = row / 3 % layout->sequences, u = row / 3 / layout->sequences;
        int64_t size[2] = {peer_tokens(pass, u), width};
        int64_t at = ((int64_t)n * layout->block + peer_offset(pass, u)) * width;
        int64_t from =
            start + u * peer_block + (int64_t)n * layout->slots * 3 * width + part * width;
        copy(pass, dt_pass_data(pass, to[part], part == 2 ? whole + at : at), width,
             dt_pass_data(pass, DT_BUFFER_RECV, from), 3 * width, size);
    }
    chunk->q = dt_pass_data(pass, DT_BUFFER_QUERY, 0);
    chunk->k = dt_pass_data(pass, DT_BUFFER_KV, 0);
    chunk->v = dt_pass_data(pass, DT_BUFFER_KV, whole);
    chunk->q_at = chunk->kv_at = (struct dt_strides){layout->block * width, width};
    return DT_OK;
}

/* Every peer gets its tokens' outputs back: [peer, N, S, h, D]. */
static dt_status post_back(struct dt_pass *pass, const struct chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t start = wire_start(pass, chunk, 1);
    int64_t bytes = bytes_of(pass, peer_block);
    void *send = dt_pass_data(pass, DT_BUFFER_BACK_SEND, start);
    for (int row = 0; row < pass->plan.ulysses * layout->sequences; row++) {
        int n = row % layout->sequences, u = row / layout->sequences;
        int64_t size[2] = {peer_tokens(pass, u), width};
        int64_t to = start + u * peer_block + (int64_t)n * layout->slots * width;
        int64_t from = ((int64_t)n * layout->block + peer_offset(pass, u)) * width;
        copy(pass, dt_pass_data(pass, DT_BUFFER_BACK_SEND, to), width,
             dt_pass_data(pass, DT_BUFFER_HEADS, from), width, size);
    }
    dt_pass_count(pass, &pass->sent, send, pass->plan.ulysses * bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_status status =
        dt_comm_alltoall(pass->ulysses, send, dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                         (size_t)bytes, &pass->back[chunk->index]);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* Own tokens, heads of every peer, into ATTENTION [N, t, H, D]. */
static dt_status take_back(struct dt_pass *pass, const struct chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t channels = pass->workload.network.hidden;
    int64_t size[2] = {layout->tokens, width};
    int64_t start = wire_start(pass, chunk, 1);
    DT_TRY(dt_pass_wait(pass, pass->ulysses, &pass->back[chunk->index]));
    dt_pass_count(pass, &pass->received, dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                  bytes_of(pass, pass->plan.ulysses * peer_block));
    for (int row = 0; row < pass->plan.ulysses * layout->sequences; row++) {
        int n = row % layout->sequences, u = row / layout->sequences;
        int64_t head = (int64_t)u * layout->heads + chunk->first;
        int64_t to = (int64_t)n * layout->tokens * channels + head * head_size(pass);
        int64_t from = start + u * peer_block + (int64_t)n * layout->slots * width;
        copy(pass, dt_pass_data(pass, DT_BUFFER_ATTENTION, to), channels,
             dt_pass_data(pass, DT_BUFFER_BACK_RECV, from), width, size);
    }
    return DT_OK;
}

static void poll(void *arg)
{
    struct dt_pass *pass = arg;
    pass->world->ops->poll(pass->world);
}

/* The chunk's queries against `keys` keys: into out, or into PART and its log-sum-exp and merged. */
static void attend(struct dt_pass *pass, const struct chunk *chunk, int keys, bool merge)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t width = chunk->width;
    struct dt_attention op = {
        .q = chunk->q,
        .k = chunk->k,
        .v = chunk->v,
        .out = chunk->out,
        .lse = pass->ring != NULL ? dt_pass_at(pass, DT_BUFFER_LSE) : NULL,
        .q_at = chunk->q_at,
        .kv_at = chunk->kv_at,
        .out_at = chunk->out_at,
        .sequences = layout->sequences,
        .heads = chunk->heads,
        .head = head_size(pass),
        .queries = layout->block,
        .keys = keys,
        .tile_q = pass->plan.tile_q,
        .tile_kv = pass->plan.tile_kv,
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
    dt_pass_lap(pass, DT_PHASE_REST);
    pass->compute->attention(pass->workload.dtype, &op);
    if (pass->world->ops->note != NULL)
        pass->world->ops->note(pass->world, "attention", chunk->block);
    if (merge) {
        struct dt_merge join = {chunk->out,    dt_pass_at(pass, DT_BUFFER_LSE),
                                op.out,        op.lse,
                                chunk->out_at, op.sequences,
                                op.heads,      op.head,
                                op.queries};
        pass->compute->merge(pass->workload.dtype, &join);
    }
    dt_pass_lap(pass, DT_PHASE_ATTENTION);
}

static int64_t rotated(const struct dt_pass *pass, const struct chunk *chunk)
{
    return bytes_of(pass,
                    2 * (int64_t)pass->layout.sequences * pass->layout.block_slots * chunk->width);
}

static dt_status rotate(struct dt_pass *pass, const struct chunk *chunk, const char *from, char *to)
{
    int64_t bytes = rotated(pass, chunk);
    dt_pass_count(pass, &pass->sent, from, bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_status status = dt_comm_shift(pass->ring, from, to, (size_t)bytes, &pass->rotation);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* With overlap the next block is under way while this one is computed on. */
static dt_status attend_ring(struct dt_pass *pass, struct chunk *chunk)
{
    int ranks = pass->plan.ring, tokens = dt_workload_tokens(&pass->workload);
    char *here = dt_pass_data(pass, DT_BUFFER_KV, 0);
    char *next = dt_pass_data(pass, DT_BUFFER_KV_NEXT, 0);
    for (int hop = 0; hop < ranks; hop++) {
        int owner = (pass->layout.place.ring - hop + ranks) % ranks;
        int keys = dt_layout_block(tokens, &pass->plan, owner);
        bool more = hop + 1 < ranks;
        chunk->kv_at = (struct dt_strides){(int64_t)keys * chunk->width, chunk->width};
        chunk->k = here;
        chunk->v = here + bytes_of(pass, pass->layout.sequences * chunk->kv_at.sequence);
        if (more && pass->plan.overlap)
            DT_TRY(rotate(pass, chunk, here, next));
        attend(pass, chunk, keys, hop > 0);
        if (more && !pass->plan.overlap)
            DT_TRY(rotate(pass, chunk, here, next));
        if (more) {
            DT_TRY(dt_pass_wait(pass, pass->ring, &pass->rotation));
            dt_pass_count(pass, &pass->received, next, rotated(pass, chunk));
        }
        char *last = here;
        here = next;
        next = last;
    }
    return DT_OK;
}

/* Without ulysses queries stay where they are; keys and values too, unless they must travel. */
static void take_own(struct dt_pass *pass, struct chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden;
    int64_t column = (int64_t)chunk->first * head_size(pass);
    int64_t rows = (int64_t)layout->sequences * layout->tokens;
    int64_t size[2] = {rows, chunk->width};
    chunk->q = dt_pass_data(pass, DT_BUFFER_QKV, column);
    chunk->k = dt_pass_data(pass, DT_BUFFER_QKV, column + channels);
    chunk->v = dt_pass_data(pass, DT_BUFFER_QKV, column + 2 * channels);
    chunk->q_at = chunk->kv_at = (struct dt_strides){layout->tokens * 3 * channels, 3 * channels};
    if (pass->ring == NULL)
        return;
    copy(pass, dt_pass_data(pass, DT_BUFFER_KV, 0), chunk->width, chunk->k, 3 * channels, size);
    copy(pass, dt_pass_data(pass, DT_BUFFER_KV, rows * chunk->width), chunk->width, chunk->v,
         3 * channels, size);
}

static dt_status attend_chunk(struct dt_pass *pass, struct chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden;
    if (pass->ulysses != NULL) {
        DT_TRY(take_forth(pass, chunk));
        chunk->out = dt_pass_data(pass, DT_BUFFER_HEADS, 0);
        chunk->out_at = chunk->q_at;
    } else {
        take_own(pass, chunk);
        chunk->out =
            dt_pass_data(pass, DT_BUFFER_ATTENTION, (int64_t)chunk->first * head_size(pass));
        chunk->out_at = (struct dt_strides){layout->tokens * channels, channels};
    }
    if (pass->ring != NULL)
        return attend_ring(pass, chunk);
    attend(pass, chunk, layout->block, false);
    return DT_OK;
}

/* With overlap the next chunk is under way while this one is computed on, and outputs are waited for at the end. */
static dt_status attend_ulysses(struct dt_pass *pass, int block)
{
    int chunks = pass->plan.chunks;
    bool overlap = pass->plan.overlap != 0;
    if (overlap)
        DT_TRY(post_forth(pass, block, 0));
    for (int i = 0; i < chunks; i++) {
        struct chunk chunk = chunk_at(pass, block, i);
        int next = overlap ? i + 1 : i;
        if (next < chunks)
            DT_TRY(post_forth(pass, block, next));
        DT_TRY(attend_chunk(pass, &chunk));
        DT_TRY(post_back(pass, &chunk));
        if (!overlap)
            DT_TRY(take_back(pass, &chunk));
    }
    for (int i = 0; overlap && i < chunks; i++) {
        struct chunk chunk = chunk_at(pass, block, i);
        DT_TRY(take_back(pass, &chunk));
    }
    return DT_OK;
}

dt_status dt_pass_attention(struct dt_pass *pass, int block)
{
    dt_status status = DT_OK;
    if (pass->ulysses != NULL) {
        status = attend_ulysses(pass, block);
    } else {
        for (int i = 0; status == DT_OK && i < pass->plan.chunks; i++) {
            struct chunk chunk = chunk_at(pass, block, i);
            status = attend_chunk(pass, &chunk);
        }
    }
    dt_pass_lap(pass, DT_PHASE_REST);
    return status;
}
