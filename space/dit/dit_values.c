/* SPDX-License-Identifier: MIT */
/* One axis a row of model/plan.def: each needs a function values_<name> that says which values are
 * worth trying. Values no rule could ever accept are left out, the rest is for the rules to decide.
 * A row of model/degrees.def also needs grow_<name>: how far a default plan goes along it. */
#include "space/dit/dit_int.h"

#include <stddef.h>
#include <string.h>

/* Keeps the values ascending and once each. */
static void add_value(struct dt_dit_set *set, int64_t value)
{
    int at = set->count;
    while (at > 0 && set->values[at - 1] > value)
        at--;
    if ((at > 0 && set->values[at - 1] == value) || set->count == DT_DIT_VALUES)
        return;
    memmove(&set->values[at + 1], &set->values[at],
            (size_t)(set->count - at) * sizeof set->values[0]);
    set->values[at] = value;
    set->count++;
}

static void add_upto(struct dt_dit_set *set, int64_t most)
{
    for (int64_t i = 1; i <= most; i++)
        add_value(set, i);
}

static void add_divisors(struct dt_dit_set *set, int64_t n, int64_t most)
{
    for (int64_t i = 1; i <= n && i <= most; i++)
        if (n % i == 0)
            add_value(set, i);
}

/* A member of the rows of tiles_cuda.def. */
static void add_tiles(struct dt_dit_set *set, size_t offset)
{
    for (int i = 0; i < DT_ATTN_TILES; i++) {
        int value;
        memcpy(&value, (const char *)&dt_attn_tiles[i] + offset, sizeof value);
        add_value(set, value);
    }
}

static void add_list(struct dt_dit_set *set, const int list[], int n)
{
    for (int i = 0; i < n; i++)
        add_value(set, list[i]);
}

static void values_ranks(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_upto(set, dit->devices);
}

static void values_replicas(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_upto(set, dit->replicas);
}

static void values_hosts(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_upto(set, dit->hosts);
}

static void values_neighbours(const struct dt_dit *dit, struct dt_dit_set *set)
{
    (void)dit;
    add_value(set, DT_PLAN_BY_ULYSSES);
    add_value(set, DT_PLAN_BY_RING);
}

static void values_cfg(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_upto(set, dt_workload_passes(&dit->workload));
}

static void values_ulysses(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_divisors(set, dit->workload.network.heads, dit->devices);
}

static void values_ring(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_upto(set, dit->devices);
}

static void values_threads(const struct dt_dit *dit, struct dt_dit_set *set)
{
    for (int ranks = 1; ranks <= dit->cores; ranks++)
        add_value(set, dit->cores / ranks);
    add_divisors(set, dit->cores, dit->cores);
}

static void values_batch(const struct dt_dit *dit, struct dt_dit_set *set)
{
    for (int i = 0; i < dit->batch_count; i++)
        add_value(set, dit->batches[i]);
}

static void values_tile_q(const struct dt_dit *dit, struct dt_dit_set *set)
{
    if ((dit->on & DT_ON_GPU) != 0)
        add_tiles(set, offsetof(struct dt_attn_tile, tile_q));
    else
        add_list(set, dt_tiles_q, DT_TILES_Q);
}

static void values_tile_kv(const struct dt_dit *dit, struct dt_dit_set *set)
{
    if ((dit->on & DT_ON_GPU) != 0)
        add_tiles(set, offsetof(struct dt_attn_tile, tile_kv));
    else
        add_list(set, dt_tiles_kv, DT_TILES_KV);
}

static void values_chunks(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_divisors(set, dit->workload.network.heads, DT_DIT_VALUES);
}

static void values_stages(const struct dt_dit *dit, struct dt_dit_set *set)
{
    (void)dit;
    add_tiles(set, offsetof(struct dt_attn_tile, stages));
}

static void values_warps(const struct dt_dit *dit, struct dt_dit_set *set)
{
    (void)dit;
    add_tiles(set, offsetof(struct dt_attn_tile, warps));
}

static void values_switch(const struct dt_dit *dit, struct dt_dit_set *set)
{
    (void)dit;
    add_value(set, 0);
    add_value(set, 1);
}

/* NCCL makes the next power of two of other counts. */
static void values_comm_ctas(const struct dt_dit *dit, struct dt_dit_set *set)
{
    static const int counts[] = {0, 1, 2, 4, 8, 16, 32};
    (void)dit;
    add_list(set, counts, sizeof counts / sizeof counts[0]);
}

static void values_nccl_launch_order(const struct dt_dit *dit, struct dt_dit_set *set)
{
    add_value(set, 0);
    if (dit->tune_nccl)
        add_value(set, 1);
}

static void values_nccl_p2p_channels(const struct dt_dit *dit, struct dt_dit_set *set)
{
    static const int counts[] = {0, 2, 4, 8, 16, 32};
    add_list(set, counts, dit->tune_nccl ? sizeof counts / sizeof counts[0] : 1);
}

/* Around its default, 512 KiB (src/init.cc of NCCL 2.28.9). */
static void values_nccl_p2p_chunk_kib(const struct dt_dit *dit, struct dt_dit_set *set)
{
    static const int sizes[] = {0, 128, 256, 1024, 2048};
    add_list(set, sizes, dit->tune_nccl ? sizeof sizes / sizeof sizes[0] : 1);
}

#define values_overlap  values_switch
#define values_graph    values_switch
#define values_residual values_switch
#define values_exchange values_switch
#define values_v_first  values_switch
#define values_windows  values_switch

static void values_attention(const struct dt_dit *dit, struct dt_dit_set *set)
{
    (void)dit;
    for (int i = 0; i < DT_ATTENTIONS; i++)
        add_value(set, i);
}

void dt_dit_values(const struct dt_dit *dit, int param, struct dt_dit_set *set)
{
    static void (*const sets[])(const struct dt_dit *dit, struct dt_dit_set *set) = {
#define DT_PARAM(name, role, on, fallback, labels, doc) values_##name,
#include "model/plan.def"
    };
    set->count = 0;
    if (dit->only != NULL && dt_params[param].labels == NULL)
        add_value(set, dt_plan_get(dit->only, param));
    else
        sets[param](dit, set);
}

/* The largest divisor of n that also divides `of` (0: any) and is at most `most`. */
static int64_t nearest_divisor(int64_t n, int64_t of, int64_t most)
{
    for (int64_t d = n < most ? n : most; d > 1; d--)
        if (n % d == 0 && of % d == 0)
            return d;
    return 1;
}

/* How far a default plan grows along a degree: a divisor of the devices that remain. */
static int64_t grow_cfg(const struct dt_dit *dit, int64_t remaining, const int64_t values[])
{
    (void)values;
    return nearest_divisor(remaining, 0, dt_workload_passes(&dit->workload));
}

static int64_t grow_ulysses(const struct dt_dit *dit, int64_t remaining, const int64_t values[])
{
    (void)values;
    return nearest_divisor(remaining, dit->workload.network.heads,
                           dt_workload_tokens(&dit->workload));
}

static int64_t grow_ring(const struct dt_dit *dit, int64_t remaining, const int64_t values[])
{
    int64_t ulysses = values[DT_AT_ulysses];
    return ulysses < 1
               ? 1
               : nearest_divisor(remaining, 0, dt_workload_tokens(&dit->workload) / ulysses);
}

int64_t dt_dit_grow(const struct dt_dit *dit, int degree, int64_t remaining, const int64_t values[])
{
    static int64_t (*const grow[])(const struct dt_dit *dit, int64_t remaining,
                                   const int64_t values[]) = {
#define DT_DEGREE(name, inner, grows, exchange, doc) [inner] = grow_##name,
#include "model/degrees.def"
    };
    return grow[degree](dit, remaining, values);
}
