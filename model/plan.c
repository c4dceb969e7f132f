/* SPDX-License-Identifier: MIT */
#include "model/plan.h"

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const role_texts[] = {
    [DT_ROLE_PLAIN] = "plain",
    [DT_ROLE_RANKS] = "ranks",
    [DT_ROLE_BATCH] = "batch",
    [DT_ROLE_LAYOUT] = "layout",
    [DT_ROLE_ENVIRONMENT] = "environment",
    [DT_ROLE_THREADS] = "threads",
    [DT_ROLE_LOSSY] = "lossy",
    [DT_ROLE_REPLICAS] = "replicas",
    NULL,
};

const char *dt_role_text(enum dt_role role)
{
    return role_texts[role];
}

dt_status dt_role_parse(const char *text, enum dt_role *role)
{
    int i = dt_text_index(text, role_texts);
    if (i < 0)
        return dt_fail(DT_EUSAGE,
                       "unknown role '%.100s', expected plain, ranks, batch, layout, environment, "
                       "threads, lossy or replicas",
                       text);
    *role = (enum dt_role)i;
    return DT_OK;
}

const char *const dt_attention_texts[] = {
#define DT_ATTENTION(name, text, least, most) [DT_ATTENTION_##name] = (text),
#include "model/attentions.def"
    NULL};
static const char *const labels_exchange[] = {
    [DT_PLAN_PACKED] = "packed", [DT_PLAN_DIRECT] = "direct", NULL};
static const char *const labels_neighbours[] = {
    [DT_PLAN_BY_ULYSSES] = "ulysses", [DT_PLAN_BY_RING] = "ring", NULL};
static const char *const labels_residual[] = {
    [DT_PLAN_WIDE] = "float32", [DT_PLAN_NARROW] = "bfloat16", NULL};

bool dt_attention_runs(int kind, int capability)
{
    static const int range[][2] = {
#define DT_ATTENTION(name, text, least, most) [DT_ATTENTION_##name] = {least, most},
#include "model/attentions.def"
    };
    return range[kind][0] <= capability && capability <= range[kind][1];
}

const struct dt_param dt_params[] = {
#define DT_PARAM(name, role, on, fallback, labels, doc)                                            \
    {#name, doc, role, on, fallback, (int)offsetof(struct dt_plan, name), labels},
#include "model/plan.def"
};
const int dt_param_count = DT_PARAMS;

bool dt_param_known(const char *name)
{
    for (int i = 0; i < dt_param_count; i++)
        if (strcmp(dt_params[i].name, name) == 0)
            return true;
    return false;
}
const struct dt_plan dt_plan_fallback = {
#define DT_PARAM(name, role, on, fallback, labels, doc) .name = fallback,
#include "model/plan.def"
};

const struct dt_degree dt_degrees[DT_DEGREES] = {
#define DT_DEGREE(name, inner, grows, exchange, doc) [inner] = {DT_AT_##name, exchange},
#include "model/degrees.def"
};
const int dt_degrees_grown[DT_DEGREES] = {
#define DT_DEGREE(name, inner, grows, exchange, doc) [grows] = inner,
#include "model/degrees.def"
};

const int dt_tiles_q[DT_TILES_Q] = {
#define DT_TILE_Q(rows) rows,
#include "model/tiles_cpu.def"
};
const int dt_tiles_kv[DT_TILES_KV] = {
#define DT_TILE_KV(rows) rows,
#include "model/tiles_cpu.def"
};

const struct dt_attn_tile dt_attn_tiles[DT_ATTN_TILES] = {
#define DT_ATTN_TILE(tile_q, tile_kv, stages, warps) {tile_q, tile_kv, stages, warps},
#include "model/tiles_cuda.def"
#undef DT_ATTN_TILE
};
const int dt_attn_heads[DT_ATTN_HEADS] = {
#define DT_ATTN_HEAD(channels) channels,
#include "model/tiles_cuda.def"
#undef DT_ATTN_HEAD
};

/* The layout of kernels/cuda/attention.cuh: rows padded to the 16 channels of a matrix
 * instruction and 16 bytes more; queries that a warp keeps in registers are loaded through the
 * buffers of keys and values. */
int64_t dt_attn_tile_bytes(const struct dt_attn_tile *tile, int head)
{
    int padded = (head + 15) / 16 * 16, blocks = tile->tile_q / tile->warps / 16;
    int64_t row = 2 * padded + 16;
    int64_t queries = tile->tile_q * row, keys = 2 * row * tile->stages * tile->tile_kv;
    bool held = blocks * 4 * (tile->tile_kv / 8 + head / 8 + padded / 16) <= 176;
    return !held ? keys + queries : keys > queries ? keys : queries;
}

int dt_plan_get(const struct dt_plan *plan, int param)
{
    int value;
    memcpy(&value, (const char *)plan + dt_params[param].offset, sizeof value);
    return value;
}

void dt_plan_set(struct dt_plan *plan, int param, int value)
{
    memcpy((char *)plan + dt_params[param].offset, &value, sizeof value);
}

enum dt_on dt_plan_on(const struct dt_plan *plan)
{
    enum dt_on device = plan->stages > 0 ? DT_ON_GPU : DT_ON_CPU;
    return plan->hosts > 0 ? device | DT_ON_HOSTS : device;
}

int dt_plan_degree(const struct dt_plan *plan, int degree)
{
    return dt_plan_get(plan, dt_degrees[degree].param);
}

int dt_plan_stride(const struct dt_plan *plan, int degree)
{
    int stride = 1;
    if (plan->neighbours == DT_PLAN_BY_RING && degree == DT_DEGREE_ulysses)
        return plan->ring;
    if (plan->neighbours == DT_PLAN_BY_RING && degree == DT_DEGREE_ring)
        return 1;
    for (int i = 0; i < degree; i++)
        stride *= dt_plan_degree(plan, i);
    return stride;
}

struct dt_place dt_plan_place(const struct dt_plan *plan, int rank)
{
    return (struct dt_place){
#define DT_DEGREE(name, inner, grows, exchange, doc)                                               \
    .name = rank / dt_plan_stride(plan, inner) % plan->name,
#include "model/degrees.def"
    };
}
