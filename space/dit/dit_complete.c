/* SPDX-License-Identifier: MIT */
/* Completes unnamed parameters as a careful user would, and makes the two plans that every session measures. */
#include "space/dit/dit_int.h"

#include <stdio.h>
#include <string.h>

struct dt_dit_usual dt_dit_usual(const struct dt_gpus *gpus)
{
    int64_t beside = DT_GPU_CONTEXT_BYTES + DT_GPU_WORKSPACE_BYTES + DT_GPU_NCCL_BYTES;
    if (gpus != NULL && gpus->memory_bytes - beside >= INT64_C(4) << 30)
        return (struct dt_dit_usual){"dit-xl/2", 512};
    return (struct dt_dit_usual){"dit-s/2", 0};
}

bool dt_dit_own_head(int head)
{
    for (int i = 0; i < DT_ATTN_HEADS; i++)
        if (dt_attn_heads[i] == head)
            return true;
    return false;
}

enum dt_dtype dt_dit_usual_dtype(const struct dt_network *network, const struct dt_gpus *gpus)
{
    bool has = gpus != NULL && gpus->bfloat16 &&
               (gpus->attention[DT_ATTENTION_CUDNN] || dt_dit_own_head(dt_network_head(network)));
    return has ? DT_BFLOAT16 : DT_FLOAT32;
}

/* Product of the named degrees, at least 1 and small enough to multiply on; 0 when it is not. */
static int64_t named_product(const bool named[], const int64_t values[])
{
    int64_t product = 1;
    for (int i = 0; i < DT_DEGREES; i++) {
        int param = dt_degrees[i].param;
        if (named[param] &&
            (values[param] < 1 || __builtin_mul_overflow(product, values[param], &product)))
            return 0;
    }
    return product;
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

/* The most that a rank can have on so many hosts, or, when no number is named (0), when as many as can be have equal parts of the
 * ranks. */
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
    int64_t product = named_product(named, values);
    int64_t most = dit->devices < dit->cores ? dit->devices : dit->cores;
    if (!named[DT_AT_ranks])
        values[DT_AT_ranks] = any && product > 0 ? product : most;
    int64_t ranks = values[DT_AT_ranks];
    int64_t remaining = product > 0 && ranks >= 1 && ranks % product == 0 ? ranks / product : 1;
    complete_degrees(dit, named, remaining, values);
    if (!named[DT_AT_threads])
        values[DT_AT_threads] = ranks >= 1 && ranks <= dit->cores ? dit->cores / ranks : 1;
    if (!named[DT_AT_threads] && (dit->on & DT_ON_HOSTS) != 0)
        values[DT_AT_threads] =
            threads_on_hosts(dit, ranks, named[DT_AT_hosts] ? values[DT_AT_hosts] : 0);
    if (!named[DT_AT_batch])
        values[DT_AT_batch] = dt_dit_smallest_batch(dit, values);
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

/* Whoever names a tile wants own attention, which alone has tiles. Exchanges may not be part of a graph. */
static void complete_gpu(const struct dt_dit *dit, const bool named[], int64_t values[])
{
    if (!named[DT_AT_attention] &&
        (named[DT_AT_tile_q] || named[DT_AT_tile_kv] || named[DT_AT_stages] || named[DT_AT_warps]))
        values[DT_AT_attention] = DT_ATTENTION_OWN;
    if (!named[DT_AT_graph] && values[DT_AT_ranks] > 1 && !dit->gpus.capture)
        values[DT_AT_graph] = 0;
    complete_tile(dit, named, values);
}

/* As few hosts as hold the ranks with their threads. */
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

void dt_dit_complete(const void *context, const struct dt_space *space, const bool named[],
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

/* Where memory is so short that the plan by rule does not fit, the first one that does: that of the fewest ranks. */
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
        (void)dt_space_constant(space, "slots", &cores); /* of one of several hosts */
        snprintf(text, sizeof text, "ranks=1 threads=%lld", (long long)cores);
    } else {
        snprintf(text, sizeof text, "ranks=1");
    }
    struct dt_point found;
    dt_status status = first_plan(space, locate_text(space, text, &found), &found);
    if (status == DT_OK && dt_point_value(space, &found, DT_AT_ranks) != 1)
        return dt_fail(DT_EINFEASIBLE, "no plan of one rank is feasible");
    if (status == DT_OK)
        *point = found;
    return status;
}
