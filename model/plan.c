/* SPDX-License-Identifier: MIT */
#include "model/plan.h"

#include <stddef.h>
#include <string.h>

static const char *const role_texts[] = {
    [DT_ROLE_PLAIN] = "plain", [DT_ROLE_RANKS] = "ranks",
    [DT_ROLE_BATCH] = "batch", [DT_ROLE_ENVIRONMENT] = "environment",
    [DT_ROLE_LOSSY] = "lossy",
};
enum { ROLES = sizeof role_texts / sizeof role_texts[0] };

const char *dt_role_text(enum dt_role role)
{
    return role_texts[role];
}

dt_status dt_role_parse(const char *text, enum dt_role *role)
{
    for (int i = 0; i < ROLES; i++) {
        if (strcmp(text, role_texts[i]) == 0) {
            *role = (enum dt_role)i;
            return DT_OK;
        }
    }
    return dt_fail(DT_EUSAGE,
                   "unknown role '%.100s', expected plain, ranks, batch, environment or lossy",
                   text);
}

const struct dt_param dt_params[] = {
#define DT_PARAM(name, role, fallback, doc)                                                        \
    {#name, doc, role, fallback, (int)offsetof(struct dt_plan, name)},
#include "model/plan.def"
#undef DT_PARAM
};
enum { PARAMS = sizeof dt_params / sizeof dt_params[0] };
const int dt_param_count = PARAMS;

const int dt_tiles_q[DT_TILES_Q] = {
#define DT_TILE_Q(rows) rows,
#include "model/tiles.def"
#undef DT_TILE_Q
};
const int dt_tiles_kv[DT_TILES_KV] = {
#define DT_TILE_KV(rows) rows,
#include "model/tiles.def"
#undef DT_TILE_KV
};

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

/* A parameter that is off by default (its fallback is 0) may be 0; every other one is a count. */
dt_status dt_plan_from_json(const json_t *root, struct dt_plan *plan)
{
    const char *known[PARAMS + 1] = {NULL};
    struct dt_plan read = {0};
    for (int i = 0; i < PARAMS; i++)
        known[i] = dt_params[i].name;
    DT_TRY(dt_json_only(root, "the plan", known));
    for (int i = 0; i < PARAMS; i++) {
        int64_t value;
        int low = dt_params[i].fallback == 0 ? 0 : 1;
        DT_TRY(dt_json_int(root, "the plan", dt_params[i].name, low, 1 << 20, &value));
        dt_plan_set(&read, i, (int)value);
    }
    *plan = read;
    return DT_OK;
}

struct dt_place dt_plan_place(const struct dt_plan *plan, int rank)
{
    struct dt_place place;
    place.ulysses = rank % plan->ulysses;
    rank /= plan->ulysses;
    place.ring = rank % plan->ring;
    rank /= plan->ring;
    place.cfg = rank % plan->cfg;
    place.dp = rank / plan->cfg;
    return place;
}
