/* SPDX-License-Identifier: MIT */
/* Ulysses without passes that reorder: the linear layer of queries, keys and values writes each chunk of each rank's
 * heads as a separate matrix, and each piece is sent directly to where attention reads it. SEND is [3, ulysses, chunks,
 * N, t, h, D]. QUERY, KV and HEADS hold all chunks, since pieces of several may be in flight.
 *
 * Outputs return in pieces, too; only they are reordered once, into the rows that the projection reads. */
#include "kernels/parallel_int.h"

enum { QUERIES, KEYS, VALUES, PARTS };

/* Elements of one piece's sequence: own tokens of a chunk's heads. */
static int64_t piece(const struct dt_pass *pass, const struct dt_chunk *chunk)
{
    return (int64_t)pass->layout.tokens * chunk->width;
}

static void add(struct dt_message *list, int *count, int peer, void *at, int64_t bytes)
{
    list[(*count)++] = (struct dt_message){peer, at, (size_t)bytes};
}

/* Destination of sequence n of a part: the block's first token. */
static int64_t arrival(const struct dt_pass *pass, const struct dt_chunk *chunk, int part, int n)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t width = chunk->width, rows = (int64_t)layout->sequences * layout->block;
    int64_t value = part == VALUES ? rows * width : 0;
    int64_t start = part == QUERIES ? chunk->index * rows * width
                                    : chunk->index * 2 * (int64_t)layout->sequences *
                                          layout->block_slots * width;
    return start + value + (int64_t)n * layout->block * width;
}

static void list_forth(struct dt_pass *pass, const struct dt_chunk *chunk, int part, int counts[2])
{
    const struct dt_layout *layout = &pass->layout;
    int to = part == QUERIES ? DT_BUFFER_QUERY : DT_BUFFER_KV;
    int ranks = pass->plan.ulysses, chunks = pass->plan.chunks;
    for (int u = 0; u < ranks; u++)
        for (int n = 0; n < layout->sequences; n++) {
            int64_t group = ((int64_t)part * ranks + u) * chunks + chunk->index;
            int64_t from = (group * layout->sequences + n) * piece(pass, chunk);
            int64_t at = arrival(pass, chunk, part, n) + dt_peer_offset(pass, u) * chunk->width;
            add(pass->exchanges.sends, &counts[0], u, dt_pass_data(pass, DT_BUFFER_SEND, from),
                dt_chunk_bytes(pass, piece(pass, chunk)));
            add(pass->exchanges.recvs, &counts[1], u, dt_pass_data(pass, to, at),
                dt_chunk_bytes(pass, (int64_t)dt_peer_tokens(pass, u) * chunk->width));
        }
}

static void count(struct dt_pass *pass, int sum, const struct dt_message *list, int n)
{
    for (int i = 0; i < n; i++)
        dt_pass_count(pass, sum, list[i].at, (int64_t)list[i].bytes);
}

static dt_status post(struct dt_pass *pass, const int counts[2], struct dt_request *request)
{
    count(pass, 0, pass->exchanges.sends, counts[0]);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, request);
    dt_status status = dt_comm_exchange(pass->comms[DT_DEGREE_ulysses], pass->exchanges.sends,
                                        counts[0], pass->exchanges.recvs, counts[1], request);
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    return status;
}

/* The values of chunk 0 have their own request when they are sent first. */
static bool apart(const struct dt_pass *pass, int index)
{
    return pass->plan.v_first != 0 && index == 0;
}

static dt_status post_values(struct dt_pass *pass, int block)
{
    struct dt_chunk chunk = dt_chunk_at(pass, block, 0);
    int counts[2] = {0};
    list_forth(pass, &chunk, VALUES, counts);
    return post(pass, counts, &pass->exchanges.values);
}

static dt_status post_forth(struct dt_pass *pass, int block, int index)
{
    struct dt_chunk chunk = dt_chunk_at(pass, block, index);
    int counts[2] = {0};
    for (int part = 0; part < (apart(pass, index) ? VALUES : PARTS); part++)
        list_forth(pass, &chunk, part, counts);
    return post(pass, counts, &pass->exchanges.forth[index]);
}

static dt_status take_forth(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    int counts[2] = {0};
    if (apart(pass, chunk->index))
        DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.values));
    DT_TRY(
        dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.forth[chunk->index]));
    for (int part = 0; part < PARTS; part++)
        list_forth(pass, chunk, part, counts);
    count(pass, 1, pass->exchanges.recvs, counts[1]);
    return DT_OK;
}

/* Offset in BACK_RECV: [ulysses, N, t, h, D] of each chunk, one after the other. */
static int64_t returned(const struct dt_pass *pass, const struct dt_chunk *chunk, int u)
{
    int64_t group = (int64_t)chunk->index * pass->plan.ulysses + u;
    return group * pass->layout.sequences * piece(pass, chunk);
}

static void list_back(struct dt_pass *pass, const struct dt_chunk *chunk, int counts[2])
{
    const struct dt_layout *layout = &pass->layout;
    for (int u = 0; u < pass->plan.ulysses; u++)
        for (int n = 0; n < layout->sequences; n++) {
            int64_t from =
                arrival(pass, chunk, QUERIES, n) + dt_peer_offset(pass, u) * chunk->width;
            int64_t to = returned(pass, chunk, u) + n * piece(pass, chunk);
            add(pass->exchanges.sends, &counts[0], u, dt_pass_data(pass, DT_BUFFER_HEADS, from),
                dt_chunk_bytes(pass, (int64_t)dt_peer_tokens(pass, u) * chunk->width));
            add(pass->exchanges.recvs, &counts[1], u, dt_pass_data(pass, DT_BUFFER_BACK_RECV, to),
                dt_chunk_bytes(pass, piece(pass, chunk)));
        }
}

static dt_status post_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    int counts[2] = {0};
    list_back(pass, chunk, counts);
    return post(pass, counts, &pass->exchanges.back[chunk->index]);
}

/* Copies own tokens with all peers' heads into ATTENTION [N, t, H, D]. */
static dt_status take_back(struct dt_pass *pass, const struct dt_chunk *chunk)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden, width = chunk->width;
    int counts[2] = {0};
    DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_ulysses], &pass->exchanges.back[chunk->index]));
    list_back(pass, chunk, counts);
    count(pass, 1, pass->exchanges.recvs, counts[1]);
    for (int u = 0; u < pass->plan.ulysses; u++) {
        int64_t head = (int64_t)u * layout->heads + chunk->first;
        int64_t column = head * dt_network_head(&pass->workload.network);
        dt_chunk_copy(pass, (struct dt_copy){.to = dt_pass_data(pass, DT_BUFFER_ATTENTION, column),
                                             .from = dt_pass_data(pass, DT_BUFFER_BACK_RECV,
                                                                  returned(pass, chunk, u)),
                                             .count = {1, layout->sequences, layout->tokens},
                                             .to_stride = {0, layout->tokens * channels, channels},
                                             .from_stride = {0, piece(pass, chunk), width},
                                             .width = width});
    }
    return DT_OK;
}

const struct dt_ulysses dt_ulysses_direct = {post_values, post_forth, take_forth, post_back,
                                             take_back};
