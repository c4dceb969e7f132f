/* SPDX-License-Identifier: MIT */
/* Attention over a sequence that is split among ranks: Ulysses (Jacobs et al. 2023) inside, ring
 * attention (Liu et al.
 * 2023) outside, as in USP (Fang & Zhao 2024).
 *
 * Work goes chunk by chunk: some of the heads this rank owns. With ulysses a chunk arrives by an
 * all-to-all from the ranks of the ring block and leaves by another. With a ring the keys and
 * values of a chunk go around, and the parts are merged by log-sum-exp. Exchanged data is padded to
 * equal size; the padding is never unpacked.
 */
#include "kernels/pass_int.h"

struct dt_chunk {
    int index, block; /* block of the network */
    int first, heads; /* among the heads this rank owns */
    int width;        /* heads * D */
    const char *q, *k, *v;
    char *out;
    struct dt_strides q_at, kv_at, out_at;
};

/* Ways to exchange chunks: packed or direct. */
struct dt_ulysses {
    /* (optional) The values of chunk 0, before the queries and keys are made. */
    dt_status (*post_values)(struct dt_pass *pass, int block);
    /* Posts a chunk to its heads' owners, and takes the received data to where attention reads it;
     * posts its outputs back, and takes the received ones into ATTENTION. */
    dt_status (*post_forth)(struct dt_pass *pass, int block, int index);
    dt_status (*take_forth)(struct dt_pass *pass, const struct dt_chunk *chunk);
    dt_status (*post_back)(struct dt_pass *pass, const struct dt_chunk *chunk);
    dt_status (*take_back)(struct dt_pass *pass, const struct dt_chunk *chunk);
};

/* Ulysses without passes that reorder: the linear layer of queries, keys and values writes each
 * chunk of each rank's heads as a separate matrix, and each piece is sent directly to where
 * attention reads it. SEND is [3, ulysses, chunks, N, t, h, D]. QUERY, KV and HEADS hold all
 * chunks, since pieces of several may be in flight.
 *
 * Outputs return in pieces, too; only they are reordered once, into the rows that
 * the projection reads. */

enum { QUERIES, KEYS, VALUES, PARTS };

/* Elements of one piece's sequence: own tokens of a chunk's heads. */
static int64_t piece_bytes(const struct dt_pass *pass, const struct dt_chunk *chunk)
{
    return (int64_t)pass->layout.tokens * chunk->width;
}

static void add_message(struct dt_message *list, int *count, int peer, void *at, int64_t bytes)
{
    list[(*count)++] = (struct dt_message){peer, at, (size_t)bytes};
}

/* Destination of sequence n of a part: the block's first token. */
static int64_t arrival_offset(const struct dt_pass *pass, const struct dt_chunk *chunk, int part,
                              int n)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t width = chunk->width, rows = (int64_t)layout->sequences * layout->block;
    int64_t value = part == VALUES ? rows * width : 0;
    int64_t start = part == QUERIES ? chunk->index * rows * width
                                    : chunk->index * 2 * (int64_t)layout->sequences *
                                          layout->block_slots * width;
    return start + value + (int64_t)n * layout->block * width;
}

static int peer_offset(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    int tokens = dt_workload_tokens(&pass->workload), ranks = plan->ring * plan->ulysses;
    int first = pass->layout.place.ring * plan->ulysses;
    return dt_workload_offset(tokens, ranks, first + u) - dt_workload_offset(tokens, ranks, first);
}

static int element_bytes(const struct dt_pass *pass)
{
    return pass->layout.element[DT_BUFFER_QKV];
}

/* Bytes of `count` activations. */
static int64_t chunk_bytes(const struct dt_pass *pass, int64_t count)
{
    return count * element_bytes(pass);
}

/* Tokens of ulysses rank u in the own ring block, and their start in the block. */
static int peer_tokens(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    return dt_workload_share(dt_workload_tokens(&pass->workload), plan->ring * plan->ulysses,
                             pass->layout.place.ring * plan->ulysses + u);
}

static void list_forth(struct dt_pass *pass, const struct dt_chunk *chunk, int part,
                       struct dt_pieces *pieces)
{
    const struct dt_layout *layout = &pass->layout;
    int to = part == QUERIES ? DT_BUFFER_QUERY : DT_BUFFER_KV;
    int ranks = pass->plan.ulysses, chunks = pass->plan.chunks;
    for (int u = 0; u < ranks; u++)
        for (int n = 0; n < layout->sequences; n++) {
            int64_t group = ((int64_t)part * ranks + u) * chunks + chunk->index;
            int64_t from = (group * layout->sequences + n) * piece_bytes(pass, chunk);
            int64_t at = arrival_offset(pass, chunk, part, n) + peer_offset(pass, u) * chunk->width;
            add_message(pieces->sends, &pieces->send_count, u,
                        dt_pass_data(pass, DT_BUFFER_SEND, from),
                        chunk_bytes(pass, piece_bytes(pass, chunk)));
            add_message(pieces->recvs, &pieces->recv_count, u, dt_pass_data(pass, to, at),
                        chunk_bytes(pass, (int64_t)peer_tokens(pass, u) * chunk->width));
        }
}

static void count_bytes(struct dt_pass *pass, int sum, const struct dt_message *list, int n)
{
    for (int i = 0; i < n; i++)
        dt_pass_count(pass, sum, list[i].at, (int64_t)list[i].bytes);
}

static dt_status post_exchange(struct dt_pass *pass, const struct dt_pieces *pieces,
                               struct dt_request *request)
{
    count_bytes(pass, 0, pieces->sends, pieces->send_count);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, request);
    dt_status status = dt_comm_exchange(pass->comms[DT_DEGREE_ulysses], pieces, request);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* The values of chunk 0 have their own request when they are sent first. */
static bool travels_apart(const struct dt_pass *pass, int index)
{
    return pass->plan.v_first != 0 && index == 0;
}

static struct dt_chunk chunk_at(const struct dt_pass *pass, int block, int index)
{
    int owned = pass->layout.heads, chunks = pass->plan.chunks;
    struct dt_chunk chunk = {.index = index, .block = block};
    chunk.first = dt_workload_offset(owned, chunks, index);
    chunk.heads = dt_workload_share(owned, chunks, index);
    chunk.width = chunk.heads * dt_network_head(&pass->workload.network);
    return chunk;
}

static dt_status post_values(struct dt_pass *pass, int block)
{
    struct dt_chunk chunk = chunk_at(pass, block, 0);
    struct dt_pieces pieces = pass->exchanges.room;
    list_forth(pass, &chunk, VALUES, &pieces);
    return post_exchange(pass, &pieces, &pass->exchanges.values);
}

static dt_status post_forth(struct dt_pass *pass, int block, int index)
{
    struct dt_chunk chunk = chunk_at(pass, block, index);
    struct dt_pieces pieces = pass->exchanges.room;
    for (int part = 0; part < (travels_apart(pass, index) ? VALUES : PARTS); part++)
        list_forth(pass, &chunk, part, &pieces);
    return post_exchange(pass, &pieces, &pass->exchanges.forth[index]);
}

static dt_status take_forth(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    struct dt_pieces pieces = pass->exchanges.room;
    if (travels_apart(pass, chunk->index))
        DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.values));
    DT_TRY(
        dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.forth[chunk->index]));
    for (int part = 0; part < PARTS; part++)
        list_forth(pass, chunk, part, &pieces);
    count_bytes(pass, 1, pieces.recvs, pieces.recv_count);
    return DT_OK;
}

/* Offset in BACK_RECV: [ulysses, N, t, h, D] of each chunk, one after the other. */
static int64_t return_offset(const struct dt_pass *pass, const struct dt_chunk *chunk, int u)
{
    int64_t group = (int64_t)chunk->index * pass->plan.ulysses + u;
    return group * pass->layout.sequences * piece_bytes(pass, chunk);
}

static void list_back(struct dt_pass *pass, const struct dt_chunk *chunk, struct dt_pieces *pieces)
{
    const struct dt_layout *layout = &pass->layout;
    for (int u = 0; u < pass->plan.ulysses; u++)
        for (int n = 0; n < layout->sequences; n++) {
            int64_t from =
                arrival_offset(pass, chunk, QUERIES, n) + peer_offset(pass, u) * chunk->width;
            int64_t to = return_offset(pass, chunk, u) + n * piece_bytes(pass, chunk);
            add_message(pieces->sends, &pieces->send_count, u,
                        dt_pass_data(pass, DT_BUFFER_HEADS, from),
                        chunk_bytes(pass, (int64_t)peer_tokens(pass, u) * chunk->width));
            add_message(pieces->recvs, &pieces->recv_count, u,
                        dt_pass_data(pass, DT_BUFFER_BACK_RECV, to),
                        chunk_bytes(pass, piece_bytes(pass, chunk)));
        }
}

static dt_status post_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    struct dt_pieces pieces = pass->exchanges.room;
    list_back(pass, chunk, &pieces);
    return post_exchange(pass, &pieces, &pass->exchanges.back[chunk->index]);
}

/* Copies with op; sets its element. */
static void chunk_copy(struct dt_pass *pass, struct dt_copy op)
{
    op.element = element_bytes(pass);
    dt_pass_begin(pass);
    pass->compute->rows.copy(pass->device, &op);
}

/* Copies own tokens with all peers' heads into ATTENTION [N, t, H, D]. */
static dt_status take_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden, width = chunk->width;
    struct dt_pieces pieces = pass->exchanges.room;
    DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.back[chunk->index]));
    list_back(pass, chunk, &pieces);
    count_bytes(pass, 1, pieces.recvs, pieces.recv_count);
    for (int u = 0; u < pass->plan.ulysses; u++) {
        int64_t head = (int64_t)u * layout->heads + chunk->first;
        int64_t column = head * dt_network_head(&pass->workload.network);
        chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_ATTENTION, column),
                                          .from = dt_pass_data(pass, DT_BUFFER_BACK_RECV,
                                                               return_offset(pass, chunk, u)),
                                          .count = {1, layout->sequences, layout->tokens},
                                          .to_stride = {0, layout->tokens * channels, channels},
                                          .from_stride = {0, piece_bytes(pass, chunk), width},
                                          .width = width});
    }
    return DT_OK;
}

static const struct dt_ulysses ulysses_direct = {post_values, post_forth, take_forth, post_back,
                                                 take_back};

/* Ulysses (Jacobs et al. 2023): a chunk arrives by an all-to-all from the ranks of the ring block
 * and leaves by another. Exchanged data is padded to equal size; the padding is never unpacked. */

/* Elements of one peer's block of an all-to-all with `parts` tensors, and the start
 * of a chunk's exchange. */
static int64_t wire_block(const struct dt_pass *pass, const struct dt_chunk *chunk, int parts)
{
    return (int64_t)pass->layout.sequences * pass->layout.slots * parts * chunk->width;
}

static int64_t wire_start(const struct dt_pass *pass, const struct dt_chunk *chunk, int parts)
{
    return (int64_t)pass->plan.ulysses * pass->layout.sequences * pass->layout.slots * parts *
           chunk->first * dt_network_head(&pass->workload.network);
}

/* Peers from u on with as many tokens as peer u: they lie at equal distances, so one copy serves
 * them all. There are at most two such runs, since shares of tokens differ
 * by one and never grow. */
static int run_of_peers(const struct dt_pass *pass, int u)
{
    int run = 1;
    while (u + run < pass->plan.ulysses && peer_tokens(pass, u + run) == peer_tokens(pass, u))
        run++;
    return run;
}

/* Heads of every peer's chunk, out of the own tokens' qkv: [peer, N, S, 3, h, D]. Without
 * padding the tokens of all sequences are one dimension, on either side; with it each sequence
 * is copied by itself. */
static dt_status ulysses_post_forth(struct dt_pass *pass, int block, int index)
{
    const struct dt_layout *layout = &pass->layout;
    struct dt_chunk chunk = chunk_at(pass, block, index);
    const int head = dt_network_head(&pass->workload.network);
    int64_t channels = pass->workload.network.hidden, width = chunk.width;
    int64_t start = wire_start(pass, &chunk, 3), peer_block = wire_block(pass, &chunk, 3);
    void *send = dt_pass_data(pass, DT_BUFFER_SEND, start);
    int64_t bytes = chunk_bytes(pass, peer_block);
    int together = layout->tokens == layout->slots ? layout->sequences : 1;
    for (int n = 0; n < layout->sequences; n += together) {
        int64_t from = n * (int64_t)layout->tokens * 3 * channels + (int64_t)chunk.first * head;
        struct dt_copy op = {.to = dt_pass_data(pass, DT_BUFFER_SEND,
                                                start + n * (int64_t)layout->slots * 3 * width),
                             .from = dt_pass_data(pass, DT_BUFFER_QKV, from),
                             .count = {pass->plan.ulysses, (int64_t)together * layout->tokens, 3},
                             .to_stride = {peer_block, 3 * width, width},
                             .from_stride = {(int64_t)layout->heads * head, 3 * channels, channels},
                             .width = width};
        chunk_copy(pass, op);
    }
    dt_pass_count(pass, 0, send, pass->plan.ulysses * bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, &pass->exchanges.forth[index]);
    dt_status status = dt_comm_alltoall(pass->comms[DT_DEGREE_ulysses], send,
                                        dt_pass_data(pass, DT_BUFFER_RECV, start), (size_t)bytes,
                                        &pass->exchanges.forth[index]);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* Unpacks what a run of peers sent: q to QUERY, k and v to KV. The three lie at equal distances on
 * either side where QUERY fills its place, so that one copy takes them all of a single sequence. */
static void take_run(struct dt_pass *pass, const struct dt_chunk *chunk, int u, int peers)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 3), width = chunk->width;
    int64_t whole = (int64_t)layout->sequences * layout->block * width;
    int64_t at = peer_offset(pass, u) * width;
    int64_t from = wire_start(pass, chunk, 3) + u * peer_block, tokens = peer_tokens(pass, u);
    int64_t apart = layout->offset[DT_BUFFER_KV] - layout->offset[DT_BUFFER_QUERY];
    if (layout->sequences == 1 && apart == chunk_bytes(pass, whole)) {
        chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_QUERY, at),
                                          .from = dt_pass_data(pass, DT_BUFFER_RECV, from),
                                          .count = {3, peers, tokens},
                                          .to_stride = {whole, tokens * width, width},
                                          .from_stride = {width, peer_block, 3 * width},
                                          .width = width});
        return;
    }
    for (int part = 0; part < 3; part++) {
        void *to = part == 0 ? dt_pass_data(pass, DT_BUFFER_QUERY, at)
                             : dt_pass_data(pass, DT_BUFFER_KV, at + (part - 1) * whole);
        chunk_copy(pass, (struct dt_copy){
                             .to = to,
                             .from = dt_pass_data(pass, DT_BUFFER_RECV, from + part * width),
                             .count = {peers, layout->sequences, tokens},
                             .to_stride = {tokens * width, layout->block * width, width},
                             .from_stride = {peer_block, layout->slots * 3 * width, 3 * width},
                             .width = width});
    }
}

/* Unpacks received data without padding: q [N, K, h, D], k and v [2, N, K, h, D]. */
static dt_status ulysses_take_forth(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    DT_TRY(
        dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.forth[chunk->index]));
    dt_pass_count(pass, 1, dt_pass_data(pass, DT_BUFFER_RECV, wire_start(pass, chunk, 3)),
                  chunk_bytes(pass, pass->plan.ulysses * wire_block(pass, chunk, 3)));
    for (int u = 0, peers; u < pass->plan.ulysses; u += peers) {
        peers = run_of_peers(pass, u);
        take_run(pass, chunk, u, peers);
    }
    return DT_OK;
}

/* Every peer gets its tokens' outputs back: [peer, N, S, h, D]. */
static dt_status ulysses_post_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t start = wire_start(pass, chunk, 1);
    int64_t bytes = chunk_bytes(pass, peer_block);
    void *send = dt_pass_data(pass, DT_BUFFER_BACK_SEND, start);
    for (int u = 0, peers; u < pass->plan.ulysses; u += peers) {
        int tokens = peer_tokens(pass, u);
        peers = run_of_peers(pass, u);
        chunk_copy(pass,
                   (struct dt_copy){
                       .to = dt_pass_data(pass, DT_BUFFER_BACK_SEND, start + u * peer_block),
                       .from = dt_pass_data(pass, DT_BUFFER_HEADS, peer_offset(pass, u) * width),
                       .count = {peers, layout->sequences, tokens},
                       .to_stride = {peer_block, layout->slots * width, width},
                       .from_stride = {tokens * width, layout->block * width, width},
                       .width = width});
    }
    dt_pass_count(pass, 0, send, pass->plan.ulysses * bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, &pass->exchanges.back[chunk->index]);
    dt_status status = dt_comm_alltoall(pass->comms[DT_DEGREE_ulysses], send,
                                        dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                                        (size_t)bytes, &pass->exchanges.back[chunk->index]);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* Copies own tokens with all peers' heads into ATTENTION [N, t, H, D]. */
static dt_status ulysses_take_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t channels = pass->workload.network.hidden;
    int64_t start = wire_start(pass, chunk, 1);
    DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.back[chunk->index]));
    dt_pass_count(pass, 1, dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                  chunk_bytes(pass, pass->plan.ulysses * peer_block));
    const int head = dt_network_head(&pass->workload.network);
    chunk_copy(
        pass, (struct dt_copy){
                  .to = dt_pass_data(pass, DT_BUFFER_ATTENTION, (int64_t)chunk->first * head),
                  .from = dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                  .count = {pass->plan.ulysses, layout->sequences, layout->tokens},
                  .to_stride = {(int64_t)layout->heads * head, layout->tokens * channels, channels},
                  .from_stride = {peer_block, layout->slots * width, width},
                  .width = width});
    return DT_OK;
}

static const struct dt_ulysses ulysses_packed = {NULL, ulysses_post_forth, ulysses_take_forth,
                                                 ulysses_post_back, ulysses_take_back};

static const struct dt_ulysses *travel_of(const struct dt_pass *pass)
{
    return pass->plan.exchange == DT_PLAN_DIRECT ? &ulysses_direct : &ulysses_packed;
}

static void poll_exchange(void *arg)
{
    struct dt_pass *pass = arg;
    pass->world->ops->poll(pass->world);
}

static struct dt_attention attention_operation(struct dt_pass *pass, const struct dt_chunk *chunk,
                                               int keys, bool merge)
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
        .poll = pass->world->ops->poll != NULL ? poll_exchange : NULL,
        .poll_arg = pass,
    };
    if (merge) {
        op.out = dt_pass_data(pass, DT_BUFFER_PART, 0);
        op.lse = dt_pass_at(pass, DT_BUFFER_LSE_PART);
        op.out_at = (struct dt_strides){layout->block * width, width};
    }
    return op;
}

/* Attention of the chunk's queries to `keys` keys: written to out, or to PART with its
 * log-sum-exp and merged. */
static void attend_keys(struct dt_pass *pass, const struct dt_chunk *chunk, int keys, bool merge)
{
    struct dt_attention op = attention_operation(pass, chunk, keys, merge);
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

static int64_t rotated_bytes(const struct dt_pass *pass, const struct dt_chunk *chunk)
{
    return chunk_bytes(pass, 2 * (int64_t)pass->layout.sequences * pass->layout.block_slots *
                                 chunk->width);
}

static dt_status rotate_keys(struct dt_pass *pass, const struct dt_chunk *chunk, const char *from,
                             char *to)
{
    int64_t bytes = rotated_bytes(pass, chunk);
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
    chunk->v = at + chunk_bytes(pass, pass->layout.sequences * chunk->kv_at.sequence);
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
            DT_TRY(rotate_keys(pass, chunk, here, next));
        attend_keys(pass, chunk, keys, hop > 0);
        if (more && !pass->plan.overlap)
            DT_TRY(rotate_keys(pass, chunk, here, next));
        if (more) {
            DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ring], &pass->exchanges.rotation));
            dt_pass_count(pass, 1, next, rotated_bytes(pass, chunk));
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
    chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_KV, 0),
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
        DT_TRY(travel_of(pass)->take_forth(pass, chunk));
    else if (pass->comms[DT_DEGREE_ring] != NULL)
        take_own(pass, chunk);
    if (pass->comms[DT_DEGREE_ring] != NULL)
        return attend_ring(pass, chunk);
    attend_keys(pass, chunk, pass->layout.block, false);
    return DT_OK;
}

/* With overlap the next chunk is in flight while this one is used, and outputs are
 * waited for at the end. */
static dt_status attend_ulysses(struct dt_pass *pass, int block)
{
    int chunks = pass->plan.chunks;
    bool overlap = pass->plan.overlap != 0;
    if (overlap)
        DT_TRY(travel_of(pass)->post_forth(pass, block, 0));
    for (int i = 0; i < chunks; i++) {
        struct dt_chunk chunk = chunk_at(pass, block, i);
        int next = overlap ? i + 1 : i;
        if (next < chunks)
            DT_TRY(travel_of(pass)->post_forth(pass, block, next));
        DT_TRY(attend_chunk(pass, &chunk));
        DT_TRY(travel_of(pass)->post_back(pass, &chunk));
        if (!overlap)
            DT_TRY(travel_of(pass)->take_back(pass, &chunk));
    }
    for (int i = 0; overlap && i < chunks; i++) {
        struct dt_chunk chunk = chunk_at(pass, block, i);
        DT_TRY(travel_of(pass)->take_back(pass, &chunk));
    }
    return DT_OK;
}

/* Direct exchange: the layers write the data to send. Values first, so that they are in flight
 * while queries and keys are computed. */
dt_status dt_pass_queries(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_pass_layer *layer = &pass->layers[op->tensor];
    bool direct = pass->plan.exchange == DT_PLAN_DIRECT;
    int64_t part =
        (int64_t)pass->layout.sequences * pass->layout.tokens * pass->workload.network.hidden;
    if (direct && pass->plan.v_first != 0) {
        dt_pass_apply(pass, &pass->v_first, op, block,
                      dt_pass_data(pass, DT_BUFFER_SEND, 2 * part));
        DT_TRY(travel_of(pass)->post_values(pass, block));
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
            struct dt_chunk chunk = chunk_at(pass, block, i);
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
        struct dt_chunk chunk = chunk_at(pass, 0, i);
        place_chunk(pass, &chunk);
        for (int owner = 0; owner < ranks; owner++) {
            int keys = dt_layout_block(tokens, &pass->plan, owner);
            if (ranks > 1)
                place_keys(pass, &chunk, ring_start(pass, &chunk), keys);
            struct dt_attention op =
                attention_operation(pass, &chunk, keys, owner != pass->layout.place.ring);
            DT_TRY(pass->compute->attention.ready(pass->device, pass->workload.dtype, &op));
        }
    }
    return DT_OK;
}
