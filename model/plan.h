/* SPDX-License-Identifier: MIT */
/* plan - one value a parameter: how the built-in DiT runs a workload
 *
 * The fields are the rows of plan.def; code that is independent of a parameter's meaning walks them
 * by name. Those of degrees.def split the work: ranks are numbered with ulysses innermost, rank =
 * (g * ring + r) * ulysses + u, or with neighbours=ring the two innermost change places.
 */
#ifndef DT_MODEL_PLAN_H
#define DT_MODEL_PLAN_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Role of a parameter; the controller uses roles and no names. */
enum dt_role {
    DT_ROLE_PLAIN,
    DT_ROLE_RANKS,       /* processes to start */
    DT_ROLE_BATCH,       /* images of a step */
    DT_ROLE_LAYOUT,      /* splits the work among ranks */
    DT_ROLE_ENVIRONMENT, /* set as an environment variable when the group starts */
    DT_ROLE_THREADS,     /* threads of each rank on cores, which holds as many of them */
    DT_ROLE_LOSSY,       /* changes the results beyond rounding */
    DT_ROLE_REPLICAS     /* groups of the plan that run at the same time: the controller's own */
};
/* "plain", "ranks", "batch", "layout", "environment", "threads", "lossy", "replicas" */
const char *dt_role_text(enum dt_role role);
dt_status dt_role_parse(const char *text, enum dt_role *role) DT_MUST_CHECK;

/* Plans that have a parameter: those of a device, all of several hosts, or all of several devices
 * of one host whose rate counts. */
enum dt_on { DT_ON_CPU = 1, DT_ON_GPU = 2, DT_ON_BOTH = 3, DT_ON_HOSTS = 4, DT_ON_REPLICAS = 8 };

#define DT_REPLICAS_MOST 64

/* Values of parameters that have labels, in the labels' order. */
enum dt_attention_kind {
#define DT_ATTENTION(name, text, least, most) DT_ATTENTION_##name,
#include "model/attentions.def"
    DT_ATTENTIONS
};
extern const char *const dt_attention_texts[]; /* by kind, NULL-ended */
bool dt_attention_runs(int kind, int capability);
enum { DT_PLAN_PACKED, DT_PLAN_DIRECT };      /* exchange */
enum { DT_PLAN_WIDE, DT_PLAN_NARROW };        /* residual */
enum { DT_PLAN_BY_ULYSSES, DT_PLAN_BY_RING }; /* neighbours */

struct dt_plan {
#define DT_PARAM(name, role, on, fallback, labels, doc) int name;
#include "model/plan.def"
};

/* Indices of the parameters in dt_params. */
enum {
#define DT_PARAM(name, role, on, fallback, labels, doc) DT_AT_##name,
#include "model/plan.def"
    DT_PARAMS
};

struct dt_param {
    const char *name, *doc;
    enum dt_role role;
    enum dt_on on;
    int fallback;
    int offset;                /* the int's place in struct dt_plan */
    const char *const *labels; /* labels of the values from 0 on, NULL-ended; NULL for numbers */
};
extern const struct dt_param dt_params[];
extern const int dt_param_count;
bool dt_param_known(const char *name);
extern const struct dt_plan dt_plan_fallback; /* every parameter at its fallback: one rank */

/* Indices of the degrees in dt_degrees: innermost first. */
enum {
#define DT_DEGREE(name, inner, grows, exchange, doc) DT_DEGREE_##name = inner,
#include "model/degrees.def"
    DT_DEGREES = 0
#define DT_DEGREE(name, inner, grows, exchange, doc) +1
#include "model/degrees.def"
};

struct dt_degree {
    int param;            /* index in dt_params */
    const char *exchange; /* "alltoall" or "shift"; NULL: its ranks exchange nothing */
};
extern const struct dt_degree dt_degrees[DT_DEGREES];
extern const int dt_degrees_grown[DT_DEGREES]; /* in the order in which a default plan grows */

/* The rows of tiles_cpu.def: the attention tiles the CPU back end offers. */
enum {
    DT_TILES_Q = 0
#define DT_TILE_Q(rows) +1
#include "model/tiles_cpu.def"
    ,
    DT_TILES_KV = 0
#define DT_TILE_KV(rows) +1
#include "model/tiles_cpu.def"
};
extern const int dt_tiles_q[DT_TILES_Q], dt_tiles_kv[DT_TILES_KV];

/* The rows of tiles_cuda.def: the attention kernels of the CUDA back end in bfloat16, and the
 * channels of a head they are built for. */
struct dt_attn_tile {
    int tile_q, tile_kv, stages, warps;
};
enum {
    DT_ATTN_TILES = 0
#define DT_ATTN_TILE(tile_q, tile_kv, stages, warps) +1
#include "model/tiles_cuda.def"
#undef DT_ATTN_TILE
    ,
    DT_ATTN_HEADS = 0
#define DT_ATTN_HEAD(channels) +1
#include "model/tiles_cuda.def"
#undef DT_ATTN_HEAD
};
extern const struct dt_attn_tile dt_attn_tiles[DT_ATTN_TILES];
extern const int dt_attn_heads[DT_ATTN_HEADS];

/* Shared memory of a block of that kernel. */
int64_t dt_attn_tile_bytes(const struct dt_attn_tile *tile, int head);

int dt_plan_get(const struct dt_plan *plan, int param);
void dt_plan_set(struct dt_plan *plan, int param, int value);

/* The plan's device, with the bit of several hosts: plans of GPUs have stages, those of
 * several hosts have hosts. */
enum dt_on dt_plan_on(const struct dt_plan *plan);

int dt_plan_degree(const struct dt_plan *plan, int degree);
/* From a rank to the next along a degree: the product of the degrees inside it. */
int dt_plan_stride(const struct dt_plan *plan, int degree);

/* A rank's coordinates: its place along each degree. */
struct dt_place {
#define DT_DEGREE(name, inner, grows, exchange, doc) int name;
#include "model/degrees.def"
};
struct dt_place dt_plan_place(const struct dt_plan *plan, int rank);

#endif
