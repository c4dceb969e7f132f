/* SPDX-License-Identifier: MIT */
/* Axes are the rows of model/plan.def that the device has; rules the rows of dit_rules.def, with
 * the constants and derived names they speak of. */
#include "base/array.h"
#include "space/dit/dit_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOPPER 90 /* capability 9.0 */

/* ---- rules: the rows of dit_rules.def. Those of the layout are compiled a second time over all
 * parameters: they also decide whether a plan's memory can be computed. */

enum {
    VALUE_MAX = 65536,
    FACTS = 3
}; /* larger values overflow the sizes of a layout; constants that its rules name */

/* The degrees multiply to the ranks. The texts begin with a separator, BEFORE characters long,
 * which their users skip. */
enum { BEFORE = sizeof " * " - 1 };
static const char product[] =
#define DT_DEGREE(name, inner, grows, exchange, doc) " * " #name
#include "model/degrees.def"
    " == ranks";
static const char product_sentence[] =
#define DT_DEGREE(name, inner, grows, exchange, doc) " x " #name
#include "model/degrees.def"
    " must be the number of ranks";

static const struct rule {
    enum kind { LAYOUT, PLAN, SESSION } kind;
    enum dt_on on;
    const char *expr, *sentence;
} rules[] = {
#define DT_LAYOUT(expr, sentence)      {LAYOUT, DT_ON_BOTH, expr, sentence},
#define DT_RULE(on, expr, sentence)    {PLAN, on, expr, sentence},
#define DT_SESSION(on, expr, sentence) {SESSION, on, expr, sentence},
#include "space/dit/dit_rules.def"
};
enum { RULES = sizeof rules / sizeof rules[0] };

#define DT_LAYOUT(expr, sentence) +1
#define DT_RULE(on, expr, sentence)
#define DT_SESSION(on, expr, sentence)
_Static_assert(0
#include "space/dit/dit_rules.def"
                   <= DT_DIT_LAYOUTS,
               "struct dt_dit has no room for so many rows DT_LAYOUT");

/* The ranks are a multiple of the product of the degrees up to any of them. */
static dt_status add_prunes(struct dt_space *space)
{
    const char *first = product + BEFORE;
    for (const char *end = strstr(first, " * "); end != NULL; end = strstr(end + 1, " * ")) {
        char multiple[256];
        snprintf(multiple, sizeof multiple, "ranks %% (%.*s) == 0", (int)(end - first), first);
        DT_TRY(dt_space_add_prune(space, multiple));
    }
    return DT_OK;
}

/* The rules of the device; with `only` the rows DT_SESSION are left out. */
static dt_status rules_add(struct dt_space *space, const struct dt_dit *dit)
{
    for (int i = 0; i < RULES; i++)
        if ((rules[i].on & dit->on) != 0 && (rules[i].kind != SESSION || dit->only == NULL))
            DT_TRY(dt_space_add_rule(space, rules[i].expr, rules[i].sentence));
    return add_prunes(space);
}

/* Names that the rules about the layout may use beside the parameters, with their values. */
struct dit_fact {
    const char *name;
    int64_t value;
};

static void dit_facts(const struct dt_dit *dit, struct dit_fact facts[FACTS])
{
    facts[0] = (struct dit_fact){"heads", dit->workload.network.heads};
    facts[1] = (struct dit_fact){"tokens", dt_workload_tokens(&dit->workload)};
    facts[2] = (struct dit_fact){"guidance", dit->workload.guidance};
}

static dt_status layout_compile(struct dt_dit *dit)
{
    const char *names[DT_PARAMS + FACTS];
    struct dit_fact facts[FACTS];
    dit_facts(dit, facts);
    for (int i = 0; i < DT_PARAMS; i++)
        names[i] = dt_params[i].name;
    for (int i = 0; i < FACTS; i++)
        names[DT_PARAMS + i] = facts[i].name;
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == LAYOUT)
            DT_TRY(dt_expr_new(rules[i].expr, names, DT_PARAMS + FACTS,
                               &dit->layout[dit->layout_count++]));
    return DT_OK;
}

static bool layout_holds(const struct dt_dit *dit, const int64_t values[])
{
    int64_t all[DT_PARAMS + FACTS], holds = 1;
    struct dit_fact facts[FACTS];
    for (int i = 0; i < DT_PARAMS; i++) {
        int least = dt_params[i].fallback == 0 ? 0 : 1;
        all[i] = dit->axis[i] >= 0 ? values[dit->axis[i]] : dt_params[i].fallback;
        if (all[i] < least || all[i] > VALUE_MAX)
            return false;
    }
    dit_facts(dit, facts);
    for (int i = 0; i < FACTS; i++)
        all[DT_PARAMS + i] = facts[i].value;
    for (int i = 0; i < dit->layout_count && holds != 0; i++)
        if (dt_expr_eval(dit->layout[i], all, &holds) != DT_OK)
            return false;
    return holds != 0;
}

/* Completes unnamed parameters as a careful user would, and makes the two plans that
 * every session measures. */

struct dt_dit_usual dt_dit_usual(const struct dt_gpus *gpus)
{
    int64_t beside = DT_GPU_CONTEXT_BYTES + DT_GPU_WORKSPACE_BYTES + DT_GPU_NCCL_BYTES;
    if (gpus != NULL && gpus->memory_bytes - beside >= INT64_C(4) << 30)
        return (struct dt_dit_usual){"dit-xl/2", 512};
    return (struct dt_dit_usual){"dit-s/2", 0};
}

/* Own attention in bfloat16 is built for heads of so many channels. */
static bool own_head(int head)
{
    for (int i = 0; i < DT_ATTN_HEADS; i++)
        if (dt_attn_heads[i] == head)
            return true;
    return false;
}

enum dt_dtype dt_dit_usual_dtype(const struct dt_network *network, const struct dt_gpus *gpus)
{
    bool has = gpus != NULL && gpus->bfloat16 &&
               (gpus->attention[DT_ATTENTION_CUDNN] || own_head(dt_network_head(network)));
    return has ? DT_BFLOAT16 : DT_FLOAT32;
}

/* Product of the named degrees, at least 1 and small enough to multiply on; 0 when it is not. */
static int64_t named_degrees(const bool named[], const int64_t values[])
{
    int64_t degrees = 1;
    for (int i = 0; i < DT_DEGREES; i++) {
        int param = dt_degrees[i].param;
        if (named[param] &&
            (values[param] < 1 || __builtin_mul_overflow(degrees, values[param], &degrees)))
            return 0;
    }
    return degrees;
}

static void complete_degrees(const struct dt_dit *dit, const bool named[], int64_t remaining,
                             int64_t values[])
{
    for (int i = 0; i < DT_DEGREES; i++) {
        int degree = dt_degrees_grown[i], param = dt_degrees[degree].param;
        if (named[param])
            continue;
        values[param] = dt_dit_grow(dit, degree, remaining, values);
        remaining /= values[param];
    }
}

/* The most that a rank can have on so many hosts, or, when no number is named (0), when as many as
 * can be have equal parts of the ranks. */
static int64_t threads_on_hosts(const struct dt_dit *dit, int64_t ranks, int64_t named)
{
    for (int64_t hosts = named > 0 ? named : dit->hosts; hosts > 1; hosts--)
        if (ranks >= 1 && ranks % hosts == 0 && ranks / hosts <= dit->slots)
            return dit->slots / (ranks / hosts);
    return ranks >= 1 && ranks <= dit->slots ? dit->slots / ranks : 1;
}

static void complete_ranks(const struct dt_dit *dit, const bool named[], int64_t values[])
{
    bool any = false;
    for (int i = 0; i < DT_DEGREES; i++)
        any = any || named[dt_degrees[i].param];
    int64_t degrees = named_degrees(named, values);
    int64_t replicas =
        dit->axis[DT_AT_replicas] >= 0 && values[DT_AT_replicas] > 1 ? values[DT_AT_replicas] : 1;
    int64_t cores = dit->cores / replicas, most = dit->devices / replicas;
    cores = cores > 1 ? cores : 1;
    most = most > cores ? cores : most > 1 ? most : 1;
    if (!named[DT_AT_ranks])
        values[DT_AT_ranks] = any && degrees > 0 ? degrees : most;
    int64_t ranks = values[DT_AT_ranks];
    int64_t remaining = degrees > 0 && ranks >= 1 && ranks % degrees == 0 ? ranks / degrees : 1;
    complete_degrees(dit, named, remaining, values);
    if (!named[DT_AT_threads])
        values[DT_AT_threads] = ranks >= 1 && ranks <= cores ? cores / ranks : 1;
    if (!named[DT_AT_threads] && (dit->on & DT_ON_HOSTS) != 0)
        values[DT_AT_threads] =
            threads_on_hosts(dit, ranks, named[DT_AT_hosts] ? values[DT_AT_hosts] : 0);
    if (!named[DT_AT_batch])
        values[DT_AT_batch] = dit->batches[0];
}

/* Among the rows with the named values, the one with most of the default values. */
static void complete_tile(const struct dt_dit *dit, const bool named[], int64_t values[])
{
    static const int params[] = {DT_AT_tile_q, DT_AT_tile_kv, DT_AT_stages, DT_AT_warps};
    const int wanted[] = {dit->tile.tile_q, dit->tile.tile_kv, dit->tile.stages, dit->tile.warps};
    int best[4], score = -1;
    memcpy(best, wanted, sizeof best);
    for (int i = 0; i < DT_ATTN_TILES; i++) {
        const struct dt_attn_tile *tile = &dt_attn_tiles[i];
        const int row[] = {tile->tile_q, tile->tile_kv, tile->stages, tile->warps};
        int same = 0;
        for (int k = 0; k < 4; k++)
            same += named[params[k]] ? (values[params[k]] == row[k] ? 0 : -4) : row[k] == wanted[k];
        if (same > score) {
            score = same;
            memcpy(best, row, sizeof best);
        }
    }
    for (int k = 0; k < 4; k++)
        if (!named[params[k]])
            values[params[k]] = best[k];
}

/* Whoever names a tile wants own attention, which alone has tiles. Exchanges may
 * not be part of a graph. */
static void complete_gpu(const struct dt_dit *dit, const bool named[], int64_t values[])
{
    if (!named[DT_AT_attention] &&
        (named[DT_AT_tile_q] || named[DT_AT_tile_kv] || named[DT_AT_stages] || named[DT_AT_warps]))
        values[DT_AT_attention] = DT_ATTENTION_OWN;
    if (!named[DT_AT_graph] && values[DT_AT_ranks] > 1 && !dit->gpus.capture)
        values[DT_AT_graph] = 0;
    complete_tile(dit, named, values);
}

/* Takes as few hosts as hold the ranks with their threads. */
static void complete_hosts(const struct dt_dit *dit, int64_t values[])
{
    int64_t ranks = values[DT_AT_ranks],
            threads = (dit->on & DT_ON_GPU) != 0 ? 1 : values[DT_AT_threads];
    values[DT_AT_hosts] = 1;
    for (int64_t hosts = 1; hosts <= dit->hosts; hosts++)
        if (ranks % hosts == 0 && ranks / hosts * threads <= dit->slots) {
            values[DT_AT_hosts] = hosts;
            return;
        }
}

/* dt_complete of the built-in space; context is a struct dt_dit. */
static void dit_complete(const void *context, const struct dt_space *space, const bool named[],
                         int64_t values[])
{
    const struct dt_dit *dit = context;
    bool given[DT_PARAMS] = {false};
    int64_t full[DT_PARAMS] = {0};
    (void)space;
    for (int i = 0; i < DT_PARAMS; i++)
        if (dit->axis[i] >= 0) {
            given[i] = named[dit->axis[i]];
            full[i] = values[dit->axis[i]];
        }
    complete_ranks(dit, given, full);
    if (!given[DT_AT_overlap] && given[DT_AT_chunks] && full[DT_AT_chunks] > 1)
        full[DT_AT_overlap] = 1;
    if (!given[DT_AT_exchange] && given[DT_AT_v_first] && full[DT_AT_v_first] == 1)
        full[DT_AT_exchange] = DT_PLAN_DIRECT;
    if ((dit->on & DT_ON_GPU) != 0)
        complete_gpu(dit, given, full);
    if ((dit->on & DT_ON_HOSTS) != 0 && !given[DT_AT_hosts])
        complete_hosts(dit, full);
    for (int i = 0; i < DT_PARAMS; i++)
        if (dit->axis[i] >= 0)
            values[dit->axis[i]] = full[i];
}

static dt_status locate_text(const struct dt_space *space, const char *text, struct dt_point *point)
{
    int64_t values[DT_AXES_MAX];
    DT_TRY(dt_space_parse(space, text, values));
    return dt_space_locate(space, values, point);
}

/* Where memory is so short that the plan by rule does not fit, the first one that does: that
 * of the fewest ranks. */
static dt_status first_plan(const struct dt_space *space, dt_status status, struct dt_point *point)
{
    if (status != DT_EINFEASIBLE || dt_space_count(space) <= 0)
        return status;
    dt_space_at(space, 0, point);
    return DT_OK;
}

/* Cores, or GPUs. */
static int64_t devices_of(const struct dt_space *space)
{
    int64_t count = 1;
    if (!dt_space_constant(space, "gpus", &count))
        (void)dt_space_constant(space, "cores", &count);
    return count;
}

dt_status dt_dit_default(const struct dt_space *space, struct dt_point *point)
{
    const struct dt_axis *ranks = dt_space_axis(space, DT_AT_ranks);
    int64_t cores = devices_of(space);
    dt_status status = DT_OK;
    for (int i = ranks->count - 1; i >= 0; i--) {
        char text[32];
        if (ranks->values[i] > cores)
            continue;
        snprintf(text, sizeof text, "ranks=%lld", (long long)ranks->values[i]);
        status = locate_text(space, text, point);
        if (status != DT_EINFEASIBLE)
            return status;
    }
    return first_plan(space, status, point);
}

dt_status dt_dit_baseline(const struct dt_space *space, struct dt_point *point)
{
    char text[64];
    int64_t cores;
    if (dt_space_constant(space, "cores", &cores)) {
        (void)dt_space_constant(space, "slots", &cores); /* cores of one of several hosts */
        snprintf(text, sizeof text, "ranks=1 threads=%lld", (long long)cores);
    } else {
        snprintf(text, sizeof text, "ranks=1");
    }
    struct dt_point found;
    DT_TRY(first_plan(space, locate_text(space, text, &found), &found));
    if (dt_point_value(space, &found, DT_AT_ranks) != 1)
        return dt_fail(DT_EINFEASIBLE, "no plan of one rank is feasible");
    *point = found;
    return DT_OK;
}

enum { DEVICES_MAX = DT_DIT_VALUES, CORES_MAX = 65536, BATCH_MAX = 65536 };

static int tile_limit(const int tiles[], int n, int tokens)
{
    for (int i = 0; i < n; i++)
        if (tiles[i] >= tokens)
            return tiles[i];
    return tiles[n - 1];
}

static struct dt_plan plan_of(const struct dt_dit *dit, const int64_t values[])
{
    struct dt_plan plan = dt_plan_fallback;
    for (int i = 0; i < dt_param_count; i++)
        if (dit->axis[i] >= 0)
            dt_plan_set(&plan, i, (int)values[dit->axis[i]]);
    return plan;
}

/* 0 for a plan without a layout, as other rules speak of it then. */
static int64_t rank_bytes(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    if (!layout_holds(dit, values))
        return 0;
    struct dt_plan plan = plan_of(dit, values);
    if ((dit->on & DT_ON_GPU) != 0)
        plan.stages = dit->tile.stages;
    return dt_workload_rank_bytes(&dit->workload, &plan);
}

static struct dt_attn_tile tile_of(const struct dt_dit *dit, const int64_t values[])
{
    struct dt_plan plan = plan_of(dit, values);
    return (struct dt_attn_tile){plan.tile_q, plan.tile_kv, plan.stages, plan.warps};
}

static int64_t tile_built(const void *context, const int64_t values[])
{
    struct dt_attn_tile tile = tile_of(context, values);
    for (int i = 0; i < DT_ATTN_TILES; i++)
        if (memcmp(&dt_attn_tiles[i], &tile, sizeof tile) == 0)
            return 1;
    return 0;
}

static int64_t tile_default(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    struct dt_attn_tile tile = tile_of(dit, values);
    return memcmp(&dit->tile, &tile, sizeof tile) == 0;
}

static int64_t tile_bytes(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    struct dt_attn_tile tile = tile_of(dit, values);
    return dt_attn_tile_bytes(&tile, dt_network_head(&dit->workload.network));
}

/* This worker has the kernels, and the GPU runs them. */
static int64_t attention_runs(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    int kind = (int)values[dit->axis[DT_AT_attention]];
    return kind == DT_ATTENTION_OWN ||
           (dit->gpus.attention[kind] && dt_attention_runs(kind, dit->gpus.capability));
}

/* Cores or GPUs that the ranks of a host take. */
static int64_t on_a_host(const void *context, const int64_t values[])
{
    struct dt_plan plan = plan_of(context, values);
    int64_t hosts = plan.hosts > 0 ? plan.hosts : 1;
    return (plan.ranks + hosts - 1) / hosts * plan.threads;
}

/* Cores or GPUs that all replicas take. */
static int64_t held_value(const void *context, const int64_t values[])
{
    struct dt_plan plan = plan_of(context, values);
    return (int64_t)plan.replicas * plan.ranks * plan.threads;
}

/* Their memory, of cores: each GPU has a rank of one replica alone. */
static int64_t held_bytes(const void *context, const int64_t values[])
{
    const struct dt_dit *dit = context;
    struct dt_plan plan = plan_of(dit, values);
    return (dit->on & DT_ON_GPU) != 0 ? 0
                                      : plan.replicas * plan.ranks * rank_bytes(context, values);
}

static void free_dit(void *context)
{
    struct dt_dit *dit = context;
    for (int i = 0; i < dit->layout_count; i++)
        dt_expr_free(dit->layout[i]);
    free(dit->batches);
    free(dit);
}

static dt_status check_limits(const struct dt_workload *workload, const struct dt_limits *limits)
{
    if (limits->devices < 1 || limits->devices > DEVICES_MAX)
        return dt_fail(DT_EUSAGE, "%d devices, expected 1 to %d", limits->devices, DEVICES_MAX);
    if (limits->gpus != NULL && (limits->gpus->count < 1 || limits->gpus->count > DEVICES_MAX))
        return dt_fail(DT_EUSAGE, "%d GPUs, expected 1 to %d", limits->gpus->count, DEVICES_MAX);
    if (limits->gpus == NULL && workload->dtype == DT_TF32)
        return dt_fail(DT_EUSAGE,
                       "tf32 is computed by GPUs only: use --dtype float32 or --dtype bfloat16");
    if (limits->gpus == NULL && (limits->cores < 1 || limits->cores > CORES_MAX))
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

/* FlashAttention-2's choice on an A100 for heads of more than 64 channels, 128 x 64 with 4
 * warps (flash_fwd_launch_template.h), for all heads: its 128 x 128 for heads of 64 has 4
 * warps of 32 query rows, ours 8 of 16, which load keys and values from shared memory twice as
 * often, and would be bound by that. Of the rows there are, the one with these query rows and
 * keys and the fewest warps. */
static struct dt_attn_tile default_tile(void)
{
    enum { KEYS = 64 };
    struct dt_attn_tile best = dt_attn_tiles[0];
    for (int i = 0; i < DT_ATTN_TILES; i++) {
        const struct dt_attn_tile *tile = &dt_attn_tiles[i];
        bool better = best.tile_q != 128 || best.tile_kv != KEYS;
        if (tile->tile_q == 128 && tile->tile_kv == KEYS && (better || tile->warps < best.warps))
            best = *tile;
    }
    return best;
}

/* On Hopper and later cuDNN's attention in bfloat16 is faster than mma.sync kernels as ours, with
 * heads of 64 to 128 channels and more than 256 tokens (docs/hardware.md; Shah et al. 2024,
 * FlashAttention-3, figure 5), and every engine takes it or FlashAttention-3. */
static int default_attention(const struct dt_workload *workload, const struct dt_gpus *gpus)
{
    int head = dt_network_head(&workload->network);
    bool faster = gpus->attention[DT_ATTENTION_CUDNN] && gpus->capability >= HOPPER && head >= 64 &&
                  head <= 128 && head % 8 == 0;
    return faster && workload->dtype == DT_BFLOAT16 ? DT_ATTENTION_CUDNN : DT_ATTENTION_OWN;
}

/* Which parameters are axes, in order. */
static void set_axes(struct dt_dit *dit)
{
    int n = 0;
    for (int i = 0; i < dt_param_count; i++)
        dit->axis[i] = (dt_params[i].on & dit->on) != 0 ? n++ : -1;
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
    qsort(batches, (size_t)n, sizeof *batches, dt_ascending_int64);
    int tokens = dt_workload_tokens(workload);
    *dit = (struct dt_dit){
        .workload = *workload,
        .on = (limits->gpus != NULL ? DT_ON_GPU : DT_ON_CPU) |
              (limits->hosts > 1 ? DT_ON_HOSTS : 0) | (limits->replicas ? DT_ON_REPLICAS : 0),
        .hosts = limits->hosts,
        .slots = limits->slots,
        .replicas = limits->devices < DT_REPLICAS_MOST ? limits->devices : DT_REPLICAS_MOST,
        .cores = limits->gpus != NULL ? limits->gpus->count : limits->cores,
        .devices = limits->devices,
        .tune_nccl = limits->tune_nccl,
        .batches = batches,
        .batch_count = n,
        .tile_q_limit = tile_limit(dt_tiles_q, DT_TILES_Q, tokens),
        .tile_kv_limit = tile_limit(dt_tiles_kv, DT_TILES_KV, tokens),
        .tile = default_tile()};
    if (limits->gpus != NULL) {
        dit->gpus = *limits->gpus;
        dit->attention = default_attention(workload, limits->gpus);
        dit->graph = 1;
    }
    set_axes(dit);
    *out = dit;
    return DT_OK;
}

/* The default: the row's, or the largest value below it that is worth having. */
static int fallback_index(const struct dt_dit *dit, int param, const struct dt_dit_set *set)
{
    bool gpu = (dit->on & DT_ON_GPU) != 0;
    int64_t wanted = dt_params[param].fallback;
    if (param == DT_AT_tile_q)
        wanted = gpu ? dit->tile.tile_q : wanted > dit->tile_q_limit ? dit->tile_q_limit : wanted;
    if (param == DT_AT_tile_kv)
        wanted = gpu                           ? dit->tile.tile_kv
                 : wanted > dit->tile_kv_limit ? dit->tile_kv_limit
                                               : wanted;
    if (param == DT_AT_stages)
        wanted = dit->tile.stages;
    if (param == DT_AT_warps)
        wanted = dit->tile.warps;
    if (param == DT_AT_attention)
        wanted = dit->attention;
    if (param == DT_AT_graph)
        wanted = dit->graph;
    int at = 0;
    while (at + 1 < set->count && set->values[at + 1] <= wanted)
        at++;
    return at;
}

/* NCCL reads these when a process starts, and tuner/measure/rig.c the number of hosts;
 * 0 leaves them alone. */
static const struct variable {
    int param, unit;
    const char *names; /* with commas between them */
} variables[] = {
    {DT_AT_hosts, 1, "DITTUNE_HOSTS"},
    {DT_AT_nccl_launch_order, 1, "NCCL_LAUNCH_ORDER_IMPLICIT"},
    {DT_AT_nccl_p2p_channels, 1, "NCCL_MIN_P2P_NCHANNELS,NCCL_MAX_P2P_NCHANNELS"},
    {DT_AT_nccl_p2p_chunk_kib, 1024, "NCCL_P2P_NVL_CHUNKSIZE"},
};

static dt_status add_axis(struct dt_space *space, const struct dt_dit *dit, int param,
                          struct dt_dit_set *set)
{
    dt_dit_values(dit, param, set);
    struct dt_axis axis = {.name = dt_params[param].name,
                           .doc = dt_params[param].doc,
                           .role = dt_params[param].role,
                           .count = set->count,
                           .values = set->values,
                           .labels = dt_params[param].labels,
                           .fallback = fallback_index(dit, param, set)};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (variables[i].param == param) {
            axis.variable = variables[i].names;
            axis.unit = variables[i].unit;
        }
    return dt_space_add_axis(space, &axis);
}

static dt_status add_axes(struct dt_space *space, const struct dt_dit *dit)
{
    dt_auto_free struct dt_dit_set *set = calloc(1, sizeof *set);
    if (set == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while building a space of plans");
    for (int i = 0; i < dt_param_count; i++)
        if (dit->axis[i] >= 0)
            DT_TRY(add_axis(space, dit, i, set));
    return DT_OK;
}

static dt_status add_constants(struct dt_space *space, const struct dit_fact list[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        DT_TRY(dt_space_add_constant(space, list[i].name, list[i].value));
    return DT_OK;
}

static dt_status add_cpu_names(struct dt_space *space, const struct dt_dit *dit,
                               const struct dt_limits *limits)
{
    static const char *const uses[] = {
#define DT_DEGREE(name, inner, grows, exchange, doc) #name,
#include "model/degrees.def"
        "ranks", "threads", "batch", "tile_q", "tile_kv", "chunks", NULL};
    const struct dit_fact constants[] = {
        {"cores", dit->cores},
        {"oversubscribe", limits->oversubscribe},
        {"memory_bytes", limits->memory_bytes},
        {"max_bytes", limits->max_bytes},
        {"tile_q_limit", dit->tile_q_limit},
        {"tile_kv_limit", dit->tile_kv_limit},
        {"no_dtype", limits->no_dtype},
    };
    DT_TRY(add_constants(space, constants, sizeof constants / sizeof constants[0]));
    return dt_space_add_derived(space, "rank_bytes", uses, rank_bytes, dit);
}

static dt_status add_gpu_names(struct dt_space *space, const struct dt_dit *dit,
                               const struct dt_limits *limits)
{
    static const char *const uses[] = {
#define DT_DEGREE(name, inner, grows, exchange, doc) #name,
#include "model/degrees.def"
        "ranks", "batch", "chunks", "residual", "exchange", NULL};
    static const char *const attention[] = {"attention", NULL};
    static const char *const tile[] = {"tile_q", "tile_kv", "stages", "warps", NULL};
    const struct dt_gpus *gpus = &dit->gpus;
    int head = dt_network_head(&dit->workload.network);
    const struct dit_fact constants[] = {
        {"gpus", gpus->count},
        {"oversubscribe", limits->oversubscribe},
        {"tune_nccl", limits->tune_nccl},
        {"lossy", limits->lossy},
        {"memory_bytes", gpus->memory_bytes},
        {"context_bytes", DT_GPU_CONTEXT_BYTES + DT_GPU_WORKSPACE_BYTES},
        {"nccl_bytes", DT_GPU_NCCL_BYTES},
        {"max_bytes", limits->max_bytes},
        {"shared_bytes", gpus->shared_bytes},
        {"nccl", gpus->nccl},
        {"capture", gpus->capture},
        {"no_dtype", limits->no_dtype},
        {"narrow", dit->workload.dtype == DT_BFLOAT16},
        {"own_head", own_head(head)},
        {"library_head", head % 8 == 0 && head <= 128},
    };
    DT_TRY(add_constants(space, constants, sizeof constants / sizeof constants[0]));
    DT_TRY(dt_space_add_derived(space, "attention_runs", attention, attention_runs, dit));
    DT_TRY(dt_space_add_derived(space, "tile_built", tile, tile_built, dit));
    DT_TRY(dt_space_add_derived(space, "tile_default", tile, tile_default, dit));
    DT_TRY(dt_space_add_derived(space, "tile_bytes", tile, tile_bytes, dit));
    return dt_space_add_derived(space, "rank_bytes", uses, rank_bytes, dit);
}

static dt_status add_host_names(struct dt_space *space, const struct dt_dit *dit)
{
    static const char *const cores[] = {"ranks", "hosts", "threads", NULL};
    static const char *const gpus[] = {"ranks", "hosts", NULL};
    DT_TRY(dt_space_add_constant(space, "slots", dit->slots));
    return dt_space_add_derived(space, "on_a_host", (dit->on & DT_ON_GPU) != 0 ? gpus : cores,
                                on_a_host, dit);
}

static dt_status add_replica_names(struct dt_space *space, const struct dt_dit *dit)
{
    static const char *const all[] = {
#define DT_DEGREE(name, inner, grows, exchange, doc) #name,
#include "model/degrees.def"
        "ranks", "replicas", "threads", "batch", "tile_q", "tile_kv", "chunks", NULL};
    static const char *const cores[] = {"ranks", "replicas", "threads", NULL};
    static const char *const gpus[] = {"ranks", "replicas", NULL};
    bool gpu = (dit->on & DT_ON_GPU) != 0;
    DT_TRY(dt_space_add_constant(space, "devices", dit->devices));
    DT_TRY(dt_space_add_constant(space, "places", dit->cores));
    DT_TRY(dt_space_add_derived(space, "held", gpu ? gpus : cores, held_value, dit));
    return dt_space_add_derived(space, "held_bytes", gpu ? gpus : all, held_bytes, dit);
}

static dt_status add_names(struct dt_space *space, const struct dt_dit *dit,
                           const struct dt_limits *limits)
{
    struct dit_fact facts[FACTS];
    dit_facts(dit, facts);
    DT_TRY(add_constants(space, facts, FACTS));
    if ((dit->on & DT_ON_HOSTS) != 0)
        DT_TRY(add_host_names(space, dit));
    if ((dit->on & DT_ON_REPLICAS) != 0)
        DT_TRY(add_replica_names(space, dit));
    return (dit->on & DT_ON_GPU) != 0 ? add_gpu_names(space, dit, limits)
                                      : add_cpu_names(space, dit, limits);
}

static dt_status fill_space(struct dt_space *space, const struct dt_dit *dit,
                            const struct dt_limits *limits,
                            dt_status (*finish)(struct dt_space *space))
{
    DT_TRY(add_axes(space, dit));
    DT_TRY(add_names(space, dit, limits));
    DT_TRY(rules_add(space, dit));
    dt_space_set_complete(space, dit_complete, dit);
    return finish(space);
}

static dt_status make_space(const struct dt_workload *workload, const struct dt_limits *limits,
                            const struct dt_plan *only, dt_status (*finish)(struct dt_space *space),
                            struct dt_space **space)
{
    struct dt_dit *dit = NULL;
    DT_CLEANUP(dt_space_free_at) struct dt_space *made = NULL;
    DT_TRY(dt_space_new(&made));
    DT_TRY(new_dit(workload, limits, &dit));
    dit->only = only;
    dt_space_own(made, dit, free_dit);
    DT_TRY(layout_compile(dit));
    DT_TRY(fill_space(made, dit, limits, finish));
    *space = made;
    made = NULL;
    return DT_OK;
}

dt_status dt_dit_space(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space)
{
    return make_space(workload, limits, NULL, dt_space_seal, space);
}

dt_status dt_dit_rules(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space)
{
    return make_space(workload, limits, NULL, dt_space_compile, space);
}

/* In the space of this one plan a rule that does not hold is all that can be wrong. */
dt_status dt_dit_check(const struct dt_workload *workload, const struct dt_plan *plan)
{
    const struct dt_gpus gpus = {.count = 1};
    const struct dt_limits limits = {.gpus = (dt_plan_on(plan) & DT_ON_GPU) != 0 ? &gpus : NULL,
                                     .cores = 1,
                                     .devices = 1,
                                     .hosts = plan->hosts > 0 ? 2 : 0,
                                     .slots = 1,
                                     .batches = &plan->batch,
                                     .batch_count = 1};
    DT_CLEANUP(dt_space_free_at) struct dt_space *space = NULL;
    struct dt_point point;
    int64_t values[DT_AXES_MAX];
    int axis = 0;
    DT_TRY(make_space(workload, &limits, plan, dt_space_compile, &space));
    for (int i = 0; i < DT_PARAMS; i++)
        if ((dt_params[i].on & dt_plan_on(plan)) != 0)
            values[axis++] = dt_plan_get(plan, i);
    return dt_space_locate(space, values, &point);
}

dt_status dt_dit_lossy(const struct dt_workload *workload, const struct dt_gpus *gpus)
{
    if (gpus != NULL && workload->dtype == DT_BFLOAT16)
        return DT_OK;
    return dt_fail(DT_EUSAGE, "--lossy has no effect here: the built-in network has settings that "
                              "change the output beyond "
                              "rounding on GPUs in bfloat16 only");
}

struct dt_plan dt_dit_plan(const struct dt_space *space, const struct dt_point *point)
{
    struct dt_plan plan = dt_plan_fallback;
    int axis = 0;
    enum dt_on on = (dt_space_find(space, "threads") >= 0 ? DT_ON_CPU : DT_ON_GPU) |
                    (dt_space_find(space, "hosts") >= 0 ? DT_ON_HOSTS : 0) |
                    (dt_space_find(space, "replicas") >= 0 ? DT_ON_REPLICAS : 0);
    for (int i = 0; i < dt_param_count; i++)
        if ((dt_params[i].on & on) != 0)
            dt_plan_set(&plan, i, (int)dt_point_value(space, point, axis++));
    return plan;
}
