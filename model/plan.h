/* SPDX-License-Identifier: MIT */
/* plan - one value a parameter: how the built-in DiT runs a workload
 *
 * The fields are the rows of plan.def; code that does not care what a parameter means walks them by name.
 * Ranks are numbered with ulysses innermost: rank = ((d * cfg + g) * ring + r) * ulysses + u.
 */
#ifndef DT_MODEL_PLAN_H
#define DT_MODEL_PLAN_H

#include "base/json.h"
#include "base/status.h"

#include <stdint.h>

/* What the controller must know of a parameter; it knows no names. */
enum dt_role {
    DT_ROLE_PLAIN,
    DT_ROLE_RANKS,       /* processes to start */
    DT_ROLE_BATCH,       /* images of a step */
    DT_ROLE_ENVIRONMENT, /* set as an environment variable when the group starts */
    DT_ROLE_LOSSY        /* changes the numbers beyond rounding */
};
const char *dt_role_text(enum dt_role role); /* "plain", "ranks", "batch", "environment", "lossy" */
dt_status dt_role_parse(const char *text, enum dt_role *role) DT_MUST_CHECK;

struct dt_plan {
#define DT_PARAM(name, role, fallback, doc) int name;
#include "model/plan.def"
#undef DT_PARAM
};

struct dt_param {
    const char *name, *doc;
    enum dt_role role;
    int fallback;
    int offset; /* of the int in struct dt_plan */
};
extern const struct dt_param dt_params[];
extern const int dt_param_count;

/* The rows of tiles.def: the attention tiles the CPU back end offers. */
enum {
    DT_TILES_Q = 0
#define DT_TILE_Q(rows) +1
#include "model/tiles.def"
#undef DT_TILE_Q
    ,
    DT_TILES_KV = 0
#define DT_TILE_KV(rows) +1
#include "model/tiles.def"
#undef DT_TILE_KV
};
extern const int dt_tiles_q[DT_TILES_Q], dt_tiles_kv[DT_TILES_KV];

int dt_plan_get(const struct dt_plan *plan, int param);
void dt_plan_set(struct dt_plan *plan, int param, int value);

/* {"ranks": 2, ...}: every parameter must be there, an integer of 1 (overlap: 0) to 2^20. */
dt_status dt_plan_from_json(const json_t *root, struct dt_plan *plan) DT_MUST_CHECK;

/* A rank's place in the plan. */
struct dt_place {
    int dp, cfg, ring, ulysses; /* coordinates */
};
struct dt_place dt_plan_place(const struct dt_plan *plan, int rank);

#endif
