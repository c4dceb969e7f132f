/* SPDX-License-Identifier: MIT */
/* Ulysses (Jacobs et al. 2023): a chunk arrives by an all-to-all from the ranks of the ring block and leaves by
 * another. Exchanged data is padded to equal size; the padding is never unpacked. */
#include "kernels/parallel_int.h"

struct dt_chunk dt_chunk_at(const struct dt_pass *pass, int block, int index)
{
    int owned = pass->layout.heads, chunks = pass->plan.chunks;
    struct dt_chunk chunk = {.index = index, .block = block};
    chunk.first = dt_workload_offset(owned, chunks, index);
    chunk.heads = dt_workload_share(owned, chunks, index);
    chunk.width = chunk.heads * dt_network_head(&pass->workload.network);
    return chunk;
}

static int element(const struct dt_pass *pass)
{
    return pass->layout.element[DT_BUFFER_QKV];
}

int64_t dt_chunk_bytes(const struct dt_pass *pass, int64_t count)
{
    return count * element(pass);
}

void dt_chunk_copy(struct dt_pass *pass, struct dt_copy op)
{
    op.element = element(pass);
    dt_pass_begin(pass);
    pass->compute->rows.copy(pass->device, &op);
}

int dt_peer_tokens(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    return dt_workload_share(dt_workload_tokens(&pass->workload), plan->ring * plan->ulysses,
                             pass->layout.place.ring * plan->ulysses + u);
}

int dt_peer_offset(const struct dt_pass *pass, int u)
{
    const struct dt_plan *plan = &pass->plan;
    int tokens = dt_workload_tokens(&pass->workload), ranks = plan->ring * plan->ulysses;
    int first = pass->layout.place.ring * plan->ulysses;
    return dt_workload_offset(tokens, ranks, first + u) - dt_workload_offset(tokens, ranks, first);
}

/* Elements of one peer's block of an all-to-all with `parts` tensors, and the start of a chunk's exchange. */
static int64_t wire_block(const struct dt_pass *pass, const struct dt_chunk *chunk, int parts)
{
    return (int64_t)pass->layout.sequences * pass->layout.slots * parts * chunk->width;
}

static int64_t wire_start(const struct dt_pass *pass, const struct dt_chunk *chunk, int parts)
{
    return (int64_t)pass->plan.ulysses * pass->layout.sequences * pass->layout.slots * parts *
           chunk->first * dt_network_head(&pass->workload.network);
}

/* Peers from u on with as many tokens as peer u: they lie at equal distances, so one copy serves them all. There are at most
 * two such runs, since shares of tokens differ by one and never grow. */
static int run_of_peers(const struct dt_pass *pass, int u)
{
    int run = 1;
    while (u + run < pass->plan.ulysses && dt_peer_tokens(pass, u + run) == dt_peer_tokens(pass, u))
        run++;
    return run;
}

/* Heads of every peer's chunk, out of the own tokens' qkv: [peer, N, S, 3, h, D]. Without padding the tokens of all sequences are
 * one dimension, on either side; with it each sequence is copied by itself. */
static dt_status post_forth(struct dt_pass *pass, int block, int index)
{
    const struct dt_layout *layout = &pass->layout;
    struct dt_chunk chunk = dt_chunk_at(pass, block, index);
    const int head = dt_network_head(&pass->workload.network);
    int64_t channels = pass->workload.network.hidden, width = chunk.width;
    int64_t start = wire_start(pass, &chunk, 3), peer_block = wire_block(pass, &chunk, 3);
    void *send = dt_pass_data(pass, DT_BUFFER_SEND, start);
    int64_t bytes = dt_chunk_bytes(pass, peer_block);
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
        dt_chunk_copy(pass, op);
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

/* Unpacks what a run of peers sent: q to QUERY, k and v to KV. The three lie at equal distances on either side where QUERY
 * fills its place, so that one copy takes them all of a single sequence. */
static void take_run(struct dt_pass *pass, const struct dt_chunk *chunk, int u, int peers)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 3), width = chunk->width;
    int64_t whole = (int64_t)layout->sequences * layout->block * width;
    int64_t at = dt_peer_offset(pass, u) * width;
    int64_t from = wire_start(pass, chunk, 3) + u * peer_block, tokens = dt_peer_tokens(pass, u);
    int64_t apart = layout->offset[DT_BUFFER_KV] - layout->offset[DT_BUFFER_QUERY];
    if (layout->sequences == 1 && apart == dt_chunk_bytes(pass, whole)) {
        dt_chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_QUERY, at),
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
        dt_chunk_copy(pass, (struct dt_copy){
                                .to = to,
                                .from = dt_pass_data(pass, DT_BUFFER_RECV, from + part * width),
                                .count = {peers, layout->sequences, tokens},
                                .to_stride = {tokens * width, layout->block * width, width},
                                .from_stride = {peer_block, layout->slots * 3 * width, 3 * width},
                                .width = width});
    }
}

/* Unpacks received data without padding: q [N, K, h, D], k and v [2, N, K, h, D]. */
static dt_status take_forth(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    DT_TRY(
        dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.forth[chunk->index]));
    dt_pass_count(pass, 1, dt_pass_data(pass, DT_BUFFER_RECV, wire_start(pass, chunk, 3)),
                  dt_chunk_bytes(pass, pass->plan.ulysses * wire_block(pass, chunk, 3)));
    for (int u = 0, peers; u < pass->plan.ulysses; u += peers) {
        peers = run_of_peers(pass, u);
        take_run(pass, chunk, u, peers);
    }
    return DT_OK;
}

/* Every peer gets its tokens' outputs back: [peer, N, S, h, D]. */
static dt_status post_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t start = wire_start(pass, chunk, 1);
    int64_t bytes = dt_chunk_bytes(pass, peer_block);
    void *send = dt_pass_data(pass, DT_BUFFER_BACK_SEND, start);
    for (int u = 0, peers; u < pass->plan.ulysses; u += peers) {
        int tokens = dt_peer_tokens(pass, u);
        peers = run_of_peers(pass, u);
        dt_chunk_copy(
            pass, (struct dt_copy){
                      .to = dt_pass_data(pass, DT_BUFFER_BACK_SEND, start + u * peer_block),
                      .from = dt_pass_data(pass, DT_BUFFER_HEADS, dt_peer_offset(pass, u) * width),
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
static dt_status take_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t peer_block = wire_block(pass, chunk, 1), width = chunk->width;
    int64_t channels = pass->workload.network.hidden;
    int64_t start = wire_start(pass, chunk, 1);
    DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.back[chunk->index]));
    dt_pass_count(pass, 1, dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                  dt_chunk_bytes(pass, pass->plan.ulysses * peer_block));
    const int head = dt_network_head(&pass->workload.network);
    dt_chunk_copy(
        pass, (struct dt_copy){
                  .to = dt_pass_data(pass, DT_BUFFER_ATTENTION, (int64_t)chunk->first * head),
                  .from = dt_pass_data(pass, DT_BUFFER_BACK_RECV, start),
                  .count = {pass->plan.ulysses, layout->sequences, layout->tokens},
                  .to_stride = {(int64_t)layout->heads * head, layout->tokens * channels, channels},
                  .from_stride = {peer_block, layout->slots * width, width},
                  .width = width});
    return DT_OK;
}

const struct dt_ulysses dt_ulysses_packed = {NULL, post_forth, take_forth, post_back, take_back};
