/* SPDX-License-Identifier: MIT */
/* One axis a row of model/plan.def: each needs a function here that says which values are worth trying. Values no
 * rule could ever accept are left out, the rest is for the rules to decide. */
#include "space/dit_int.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 4096, CORES_MAX = 65536, BATCH_MAX = 65536 };

struct set {
    int64_t values[DEVICES_MAX];
    int count;
};

/* Keeps the values ascending and once each. */
static void add(struct set *set, int64_t value)
{
    int at = set->count;
    while (at > 0 && set->values[at - 1] > value)
        at--;
    if ((at > 0 && set->values[at - 1] == value) || set->count == DEVICES_MAX)
        return;
    memmove(&set->values[at + 1], &set->values[at],
            (size_t)(set->count - at) * sizeof set->values[0]);
    set->values[at] = value;
    set->count++;
}

static void add_upto(struct set *set, int64_t most)
{
    for (int64_t i = 1; i <= most; i++)
        add(set, i);
}

static void add_divisors(struct set *set, int64_t n, int64_t most)
{
    for (int64_t i = 1; i <= n && i <= most; i++)
        if (n % i == 0)
            add(set, i);
}

static void values_ranks(const struct dt_dit *dit, struct set *set)
{
    add_upto(set, dit->devices);
}

static void values_dp(const struct dt_dit *dit, struct set *set)
{
    add_upto(set, dit->devices);
}

static void values_cfg(const struct dt_dit *dit, struct set *set)
{
    add_upto(set, dt_workload_passes(&dit->workload));
}

static void values_ulysses(const struct dt_dit *dit, struct set *set)
{
    add_divisors(set, dit->workload.network.heads, dit->devices);
}

static void values_ring(const struct dt_dit *dit, struct set *set)
{
    add_upto(set, dit->devices);
}

static void values_threads(const struct dt_dit *dit, struct set *set)
{
    for (int ranks = 1; ranks <= dit->cores; ranks++)
        add(set, dit->cores / ranks);
    add_divisors(set, dit->cores, dit->cores);
}

static void values_batch(const struct dt_dit *dit, struct set *set)
{
    for (int i = 0; i < dit->batch_count; i++)
        add(set, dit->batches[i]);
}

static void values_tile_q(const struct dt_dit *dit, struct set *set)
{
    (void)dit;
    for (int i = 0; i < DT_TILES_Q; i++)
        add(set, dt_tiles_q[i]);
}

static void values_tile_kv(const struct dt_dit *dit, struct set *set)
{
    (void)dit;
    for (int i = 0; i < DT_TILES_KV; i++)
        add(set, dt_tiles_kv[i]);
}

static void values_overlap(const struct dt_dit *dit, struct set *set)
{
    (void)dit;
    add(set, 0);
    add(set, 1);
}

static void values_chunks(const struct dt_dit *dit, struct set *set)
{
    add_divisors(set, dit->workload.network.heads, DEVICES_MAX);
}

static void values_none(const struct dt_dit *dit, struct set *set)
{
    (void)dit;
    (void)set;
}
#define values_stages             values_none
#define values_warps              values_none
#define values_attention          values_none
#define values_graph              values_none
#define values_gemm               values_none
#define values_exchange           values_none
#define values_v_first            values_none
#define values_comm_ctas          values_none
#define values_windows            values_none
#define values_nccl_p2p_channels  values_none
#define values_nccl_p2p_chunk_kib values_none

static void (*const value_sets[])(const struct dt_dit *dit, struct set *set) = {
#define DT_PARAM(name, role, on, fallback, labels, doc) values_##name,
#include "model/plan.def"
#undef DT_PARAM
};

static const struct {
    const char *expr, *sentence;
} rules[] = {
#define DT_RULE(expr, sentence) {expr, sentence},
#define DT_PRUNE(expr)          {expr, NULL},
#include "space/dit_rules.def"
#undef DT_RULE
#undef DT_PRUNE
};

static int tile_limit(const int tiles[], int n, int tokens)
{
    for (int i = 0; i < n; i++)
        if (tiles[i] >= tokens)
            return tiles[i];
    return tiles[n - 1];
}

static struct dt_plan plan_of(const int64_t values[])
{
    struct dt_plan plan;
    for (int i = 0; i < dt_param_count; i++)
        dt_plan_set(&plan, i,
                    (dt_params[i].on & DT_ON_CPU) != 0 ? (int)values[i] : dt_params[i].fallback);
    return plan;
}

/* Only a plan that keeps the structural rules has a layout. */
static bool has_layout(const struct dt_dit *dit, const int64_t values[])
{
    for (int i = 0; i < dt_param_count; i++)
        if ((dt_params[i].on & DT_ON_CPU) != 0 &&
            (values[i] < (dt_params[i].fallback == 0 ? 0 : 1) || values[i] > BATCH_MAX))
            return false;
    struct dt_plan plan = plan_of(values);
    const struct dt_workload *workload = &dit->workload;
    int64_t sequence = (int64_t)plan.ulysses * plan.ring;
    if (plan.cfg > dt_workload_passes(workload) || sequence > dt_workload_tokens(workload))
        return false;
    return plan.dp * plan.cfg * sequence == plan.ranks && plan.batch % plan.dp == 0 &&
           workload->network.heads % plan.ulysses == 0 &&
           workload->network.heads / plan.ulysses % plan.chunks == 0;
}

/* 0 for a plan without a layout, as other rules speak of it then. */
static int64_t rank_bytes(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    if (!has_layout(dit, values))
        return 0;
    struct dt_plan plan = plan_of(values);
    return dt_workload_rank_bytes(&dit->workload, &plan);
}

static void free_dit(void *context)
{
    struct dt_dit *dit = context;
    free(dit->batches);
    free(dit);
}

static dt_status check_limits(const struct dt_workload *workload, const struct dt_limits *limits)
{
    if (limits->devices < 1 || limits->devices > DEVICES_MAX)
        return dt_fail(DT_EUSAGE, "%d devices, expected 1 to %d", limits->devices, DEVICES_MAX);
    if (limits->cores < 1 || limits->cores > CORES_MAX)
        return dt_fail(DT_EUSAGE, "%d cores, expected 1 to %d", limits->cores, CORES_MAX);
    if (workload->input_batch > BATCH_MAX)
        return dt_fail(DT_EUSAGE, "the input's batch is %d, at most %d is allowed",
                       workload->input_batch, BATCH_MAX);
    if (workload->input_batch == 0 && (limits->batch_count < 1 || limits->batch_count > 1024))
        return dt_fail(DT_EUSAGE, "%d batch sizes, expected 1 to 1024", limits->batch_count);
    for (int i = 0; workload->input_batch == 0 && i < limits->batch_count; i++)
        if (limits->batches[i] < 1 || limits->batches[i] > BATCH_MAX)
            return dt_fail(DT_EUSAGE, "batch=%d, expected 1 to %d", limits->batches[i], BATCH_MAX);
    return DT_OK;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* An input file has the batch it has. */
static dt_status new_dit(const struct dt_workload *workload, const struct dt_limits *limits,
                         struct dt_dit **out)
{
    DT_TRY(check_limits(workload, limits));
    int n = workload->input_batch > 0 ? 1 : limits->batch_count;
    struct dt_dit *dit = calloc(1, sizeof *dit);
    int64_t *batches = calloc((size_t)n, sizeof *batches);
    if (dit == NULL || batches == NULL) {
        free(dit);
        free(batches);
        return dt_fail(DT_ENOMEM, "out of memory while building a space of plans");
    }
    for (int i = 0; i < n; i++)
        batches[i] = workload->input_batch > 0 ? workload->input_batch : limits->batches[i];
    qsort(batches, (size_t)n, sizeof *batches, ascending);
    int tokens = dt_workload_tokens(workload);
    *dit = (struct dt_dit){.workload = *workload,
                           .cores = limits->cores,
                           .devices = limits->devices,
                           .batches = batches,
                           .batch_count = n,
                           .tile_q_limit = tile_limit(dt_tiles_q, DT_TILES_Q, tokens),
                           .tile_kv_limit = tile_limit(dt_tiles_kv, DT_TILES_KV, tokens)};
    *out = dit;
    return DT_OK;
}

/* The default: the row's, or the largest value below it that is worth having. */
static int fallback_index(const struct dt_dit *dit, int param, const struct set *set)
{
    const char *name = dt_params[param].name;
    int64_t wanted = dt_params[param].fallback;
    if (strcmp(name, "tile_q") == 0 && wanted > dit->tile_q_limit)
        wanted = dit->tile_q_limit;
    if (strcmp(name, "tile_kv") == 0 && wanted > dit->tile_kv_limit)
        wanted = dit->tile_kv_limit;
    int at = 0;
    while (at + 1 < set->count && set->values[at + 1] <= wanted)
        at++;
    return at;
}

static dt_status add_axes(struct dt_space *space, const struct dt_dit *dit)
{
    struct set *set = calloc(1, sizeof *set);
    dt_status status = DT_OK;
    if (set == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while building a space of plans");
    for (int i = 0; status == DT_OK && i < dt_param_count; i++) {
        if ((dt_params[i].on & DT_ON_CPU) == 0)
            continue;
        set->count = 0;
        value_sets[i](dit, set);
        struct dt_axis axis = {.name = dt_params[i].name,
                               .doc = dt_params[i].doc,
                               .role = dt_params[i].role,
                               .count = set->count,
                               .values = set->values,
                               .fallback = fallback_index(dit, i, set)};
        status = dt_space_add_axis(space, &axis);
    }
    free(set);
    return status;
}

static dt_status add_names(struct dt_space *space, const struct dt_dit *dit,
                           const struct dt_limits *limits)
{
    static const char *const uses[] = {"ranks", "dp",     "cfg",     "ulysses", "ring", "threads",
                                       "batch", "tile_q", "tile_kv", "chunks",  NULL};
    const struct {
        const char *name;
        int64_t value;
    } constants[] = {
        {"heads", dit->workload.network.heads},   {"tokens", dt_workload_tokens(&dit->workload)},
        {"guidance", dit->workload.guidance},     {"cores", dit->cores},
        {"oversubscribe", limits->oversubscribe}, {"memory_bytes", limits->memory_bytes},
        {"max_bytes", limits->max_bytes},         {"tile_q_limit", dit->tile_q_limit},
        {"tile_kv_limit", dit->tile_kv_limit},    {"no_dtype", limits->no_dtype},
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        DT_TRY(dt_space_add_constant(space, constants[i].name, constants[i].value));
    return dt_space_add_derived(space, "rank_bytes", uses, rank_bytes, dit);
}

static dt_status fill(struct dt_space *space, const struct dt_dit *dit,
                      const struct dt_limits *limits, dt_status (*finish)(struct dt_space *space))
{
    DT_TRY(add_axes(space, dit));
    DT_TRY(add_names(space, dit, limits));
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].sentence != NULL)
            DT_TRY(dt_space_add_rule(space, rules[i].expr, rules[i].sentence));
        else
            DT_TRY(dt_space_add_prune(space, rules[i].expr));
    }
    dt_space_set_complete(space, dt_dit_complete, dit);
    return finish(space);
}

static dt_status make(const struct dt_workload *workload, const struct dt_limits *limits,
                      dt_status (*finish)(struct dt_space *space), struct dt_space **space)
{
    struct dt_dit *dit = NULL;
    struct dt_space *made = NULL;
    DT_TRY(new_dit(workload, limits, &dit));
    dt_status status = dt_space_new(&made);
    if (status != DT_OK) {
        free_dit(dit);
        return status;
    }
    dt_space_own(made, dit, free_dit);
    status = fill(made, dit, limits, finish);
    if (status != DT_OK) {
        dt_space_free(made);
        return status;
    }
    *space = made;
    return DT_OK;
}

dt_status dt_dit_space(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space)
{
    return make(workload, limits, dt_space_seal, space);
}

dt_status dt_dit_rules(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space)
{
    return make(workload, limits, dt_space_compile, space);
}

struct dt_plan dt_dit_plan(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX] = {0};
    for (int i = 0; i < dt_space_axes(space); i++)
        values[i] = dt_point_value(space, point, i);
    return plan_of(values);
}
