/* SPDX-License-Identifier: MIT */
/* parallel_int - a chunk of an attention, shared by parallel.c, ulysses.c and direct.c */
#ifndef DT_KERNELS_PARALLEL_INT_H
#define DT_KERNELS_PARALLEL_INT_H

#include "kernels/pass_int.h"

struct dt_chunk {
    int index, block; /* block of the network */
    int first, heads; /* of the heads this rank owns */
    int width;        /* heads * D */
    const char *q, *k, *v;
    char *out;
    struct dt_strides q_at, kv_at, out_at;
};

struct dt_chunk dt_chunk_at(const struct dt_pass *pass, int block, int index);

/* Bytes of `count` activations. */
int64_t dt_chunk_bytes(const struct dt_pass *pass, int64_t count);

/* Copies with op; sets its element. */
void dt_chunk_copy(struct dt_pass *pass, struct dt_copy op);

/* Tokens of ulysses rank u in the own ring block, and their start in the block. */
int dt_peer_tokens(const struct dt_pass *pass, int u);
int dt_peer_offset(const struct dt_pass *pass, int u);

/* Ways to exchange chunks: packed (ulysses.c) or direct (direct.c). */
struct dt_ulysses {
    /* (optional) The values of chunk 0, before the queries and keys are made. */
    dt_status (*post_values)(struct dt_pass *pass, int block);
    /* Posts a chunk to its heads' owners, and takes the received data to where attention reads it; posts its outputs
     * back, and takes the received ones into ATTENTION. */
    dt_status (*post_forth)(struct dt_pass *pass, int block, int index);
    dt_status (*take_forth)(struct dt_pass *pass, const struct dt_chunk *chunk);
    dt_status (*post_back)(struct dt_pass *pass, const struct dt_chunk *chunk);
    dt_status (*take_back)(struct dt_pass *pass, const struct dt_chunk *chunk);
};
extern const struct dt_ulysses dt_ulysses_packed, dt_ulysses_direct;

#endif
