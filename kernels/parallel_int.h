/* SPDX-License-Identifier: MIT */
/* parallel_int - the part of an attention that is worked on at a time, as ulysses.c and parallel.c share it */
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

/* Bytes of `count` elements of what flows between layers. */
int64_t dt_chunk_bytes(const struct dt_pass *pass, int64_t count);

/* op without its element. */
void dt_chunk_copy(struct dt_pass *pass, struct dt_copy op);

/* A chunk's way to its heads' owners, and what it brought to where attention reads it; its outputs' way back, and
 * what came of those in ATTENTION. */
dt_status dt_chunk_post_forth(struct dt_pass *pass, int block, int index) DT_MUST_CHECK;
dt_status dt_chunk_take_forth(struct dt_pass *pass, const struct dt_chunk *chunk) DT_MUST_CHECK;
dt_status dt_chunk_post_back(struct dt_pass *pass, const struct dt_chunk *chunk) DT_MUST_CHECK;
dt_status dt_chunk_take_back(struct dt_pass *pass, const struct dt_chunk *chunk) DT_MUST_CHECK;

#endif
