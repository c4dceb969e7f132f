/* SPDX-License-Identifier: MIT */
/* The space of GPUs against nested loops over plain numbers, with the rules written again in C; and
 * the plans a careful user picks there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"
#include "model/layout.h"
#include "space/dit/dit.h"

#include <stdio.h>
#include <string.h>

static const int one_batch[] = {1};

struct machine {
    struct dt_workload workload;
    struct dt_gpus gpus;
    struct dt_limits limits;
};

static void set_up(struct machine *machine, int heads, int head, enum dt_dtype dtype)
{
    *machine = (struct machine){
        .workload = {.network = {.family = &dt_family_dit,
                                 .hidden = head * heads,
                                 .heads = heads,
                                 .depth = 2,
                                 .patch = 2,
                                 .in_channels = 4,
                                 .latent_size = 16,
                                 .own = {10},
                                 .mlp_ratio = 4},
                     .height = 16,
                     .width = 16,
                     .guidance = true,
                     .dtype = dtype,
                     .sampler_steps = 50},
        .gpus = {.count = 2,
                 .capability = 90,
                 .memory_bytes = INT64_C(16) << 30,
                 .shared_bytes = 232448,
                 .nccl = 22809,
                 .attention = {[DT_ATTENTION_CUDNN] = true},
                 .capture = true},
        .limits = {.devices = 2, .tune_nccl = true, .batches = one_batch, .batch_count = 1}};
    machine->limits.gpus = &machine->gpus;
}

static struct dt_space *make(const struct machine *machine)
{
    struct dt_limits limits = machine->limits;
    struct dt_space *space = NULL;
    limits.gpus = &machine->gpus;
    if (dt_dit_space(&machine->workload, &limits, &space) != DT_OK)
        fail_msg("%s", dt_message());
    return space;
}

static bool degrees_legal(const struct machine *m, const struct dt_plan *p)
{
    return p->cfg * p->ulysses * p->ring == p->ranks &&
           m->workload.network.heads % p->ulysses == 0 &&
           (m->limits.oversubscribe || p->ranks <= m->gpus.count) &&
           (p->ranks == 1 || m->gpus.nccl != 0);
}

static bool exchanges_legal(const struct machine *m, const struct dt_plan *p)
{
    bool hides = p->ring > 1 || p->chunks > 1;
    if (m->workload.network.heads / p->ulysses % p->chunks != 0 || (p->overlap && !hides))
        return false;
    if (p->chunks > 1 && (!p->overlap || p->ulysses == 1))
        return false;
    if (p->exchange == DT_PLAN_DIRECT && p->ulysses == 1)
        return false;
    if (p->v_first && p->exchange != DT_PLAN_DIRECT)
        return false;
    if (p->residual && !(m->limits.lossy && m->workload.dtype == DT_BFLOAT16))
        return false;
    if (p->graph && p->ranks > 1 && !m->gpus.capture)
        return false;
    if (p->ranks == 1)
        return p->comm_ctas + p->windows + p->nccl_launch_order + p->nccl_p2p_channels +
                   p->nccl_p2p_chunk_kib ==
               0;
    if (!m->limits.tune_nccl &&
        p->nccl_launch_order + p->nccl_p2p_channels + p->nccl_p2p_chunk_kib != 0)
        return false;
    if (p->nccl_launch_order && (p->ulysses == 1 || p->ring == 1 || m->gpus.nccl < 22600))
        return false;
    return !p->windows || m->gpus.nccl >= 22703;
}

/* The rows of tiles_cuda.def and FlashAttention-2's for the head. */
static bool attention_legal(const struct machine *m, const struct dt_plan *p)
{
    int head = dt_network_head(&m->workload.network);
    bool is_default = p->tile_q == 128 && p->stages == 1 && p->tile_kv == (head <= 64 ? 128 : 64) &&
                      p->warps == (head <= 64 ? 8 : 4);
    bool narrow = m->workload.dtype == DT_BFLOAT16;
    if (p->attention == DT_ATTENTION_FA3)
        return is_default && narrow && m->gpus.attention[DT_ATTENTION_FA3] &&
               m->gpus.capability == 90 && head % 8 == 0 && head <= 128;
    if (p->attention == DT_ATTENTION_CUDNN)
        return is_default && narrow && m->gpus.attention[DT_ATTENTION_CUDNN] && head % 8 == 0 &&
               head <= 128;
    if (!narrow)
        return is_default;
    if (head != 64 && head != 72 && head != 88 && head != 128)
        return false;
    for (int i = 0; i < DT_ATTN_TILES; i++) {
        const struct dt_attn_tile *tile = &dt_attn_tiles[i];
        if (tile->tile_q == p->tile_q && tile->tile_kv == p->tile_kv && tile->stages == p->stages &&
            tile->warps == p->warps)
            return dt_attn_tile_bytes(tile, head) <= m->gpus.shared_bytes;
    }
    return false;
}

static bool fits(const struct machine *m, const struct dt_plan *p)
{
    int64_t beside = (INT64_C(1) << 30) + (INT64_C(64) << 20);
    if (p->ranks > 1)
        beside += INT64_C(2) << 30;
    return dt_workload_rank_bytes(&m->workload, p) + beside <= m->gpus.memory_bytes;
}

/* An odometer over every combination of the axes: independent of how the space enumerates. */
static int64_t count_by_force(const struct machine *m)
{
    static const int tiles_q[] = {64, 128}, tiles_kv[] = {32, 64, 128}, warps[] = {4, 8};
    static const int ctas[] = {0, 1, 2, 4, 8, 16, 32}, channels[] = {0, 2, 4, 8, 16, 32};
    static const int chunks[] = {0, 128, 256, 1024, 2048};
    int64_t count = 0;
    struct dt_plan p = dt_plan_fallback;
    for (p.ranks = 1; p.ranks <= m->limits.devices; p.ranks++)
        for (int i = 0; i < 2 * 8 * 8; i++) {
            p.cfg = 1 + i % 2;
            p.ulysses = 1 + i / 2 % 8;
            p.ring = 1 + i / 16;
            if (!degrees_legal(m, &p))
                continue;
            int64_t attention = 0, exchange = 0;
            for (int t = 0; t < 2 * 3 * 2 * 2 * 3; t++) {
                p.tile_q = tiles_q[t % 2];
                p.tile_kv = tiles_kv[t / 2 % 3];
                p.stages = 1 + t / 6 % 2;
                p.warps = warps[t / 12 % 2];
                p.attention = t / 24;
                attention += attention_legal(m, &p);
            }
            for (int x = 0; x < 2 * 12 * 2 * 2 * 2 * 2 * 7 * 6 * 5 * 2 * 2; x++) {
                p.overlap = x % 2;
                p.chunks = 1 + x / 2 % 12;
                p.graph = x / 24 % 2;
                p.exchange = x / 48 % 2;
                p.v_first = x / 96 % 2;
                p.windows = x / 192 % 2;
                p.comm_ctas = ctas[x / 384 % 7];
                p.nccl_p2p_channels = channels[x / 2688 % 6];
                p.nccl_p2p_chunk_kib = chunks[x / 16128 % 5];
                p.nccl_launch_order = x / 80640 % 2;
                p.residual = x / 161280;
                exchange += exchanges_legal(m, &p) && fits(m, &p);
            }
            count += attention * exchange;
        }
    return count;
}

static void check(const struct machine *m, bool any)
{
    struct dt_space *space = make(m);
    int64_t expected = count_by_force(m);
    if (dt_space_count(space) != expected || (expected > 0) != any)
        fail_msg("%lld plans, by force %lld", (long long)dt_space_count(space),
                 (long long)expected);
    dt_space_free(space);
}

static void counts_match_the_definition(void **state)
{
    static const enum dt_dtype dtypes[] = {DT_FLOAT32, DT_BFLOAT16, DT_TF32};
    static const int heads[] = {64, 72, 96, 128, 144};
    struct machine m;
    (void)state;
    for (int d = 0; d < 3; d++)
        for (int h = 0; h < 5; h++) {
            set_up(&m, 4, heads[h], dtypes[d]);
            check(&m, dtypes[d] != DT_BFLOAT16 || heads[h] != 144);
        }
    set_up(&m, 6, 64, DT_BFLOAT16);
    m.limits.devices = 4;
    m.limits.oversubscribe = true;
    check(&m, true);
}

static void each_fact_counts(void **state)
{
    struct machine m;
    (void)state;
    set_up(&m, 4, 128, DT_BFLOAT16);
    m.gpus.shared_bytes = 99 * 1024;
    check(&m, true);
    m.gpus.shared_bytes = 32 * 1024; /* of own kernels none fits: cuDNN's is left */
    check(&m, true);
    m.gpus.attention[DT_ATTENTION_CUDNN] = false;
    check(&m, false);
    set_up(&m, 4, 96, DT_BFLOAT16);
    m.gpus.attention[DT_ATTENTION_FA3] = true;
    check(&m, true);
    m.gpus.attention[DT_ATTENTION_CUDNN] =
        false; /* FlashAttention-3 is left, on capability 9.0 alone */
    check(&m, true);
    m.gpus.capability = 100;
    check(&m, false);
    m.gpus.capability = 80;
    check(&m, false);
    set_up(&m, 4, 64, DT_BFLOAT16);
    m.limits.devices = m.gpus.count = 4; /* ulysses and ring */
    check(&m, true);
    m.gpus.nccl = 22605;
    check(&m, true);
    m.gpus.nccl = 22503;
    check(&m, true);
    m.gpus.capture = false;
    check(&m, true);
    m.gpus.nccl = 0;
    check(&m, true);
    set_up(&m, 4, 64, DT_BFLOAT16);
    m.limits.tune_nccl = false;
    check(&m, true);
    m.limits.lossy = true;
    check(&m, true);
    set_up(&m, 4, 64, DT_FLOAT32);
    m.limits.lossy = true;
    check(&m, true);
    set_up(&m, 4, 64, DT_BFLOAT16); /* room for one rank without NCCL, not for two with it */
    m.gpus.memory_bytes = INT64_C(2) << 30;
    check(&m, true);
    m.gpus.memory_bytes = INT64_C(1) << 30;
    check(&m, false);
}

static void default_plans_match_a_table_by_hand(void **state)
{
    static const struct {
        int heads, head, gpus, cfg, ulysses, tile_kv, warps;
    } cases[] = {
        {16, 72, 8, 2, 4, 64, 4}, {6, 64, 8, 2, 2, 64, 4},  {12, 64, 1, 1, 1, 64, 4},
        {3, 128, 6, 2, 3, 64, 4}, {16, 64, 2, 2, 1, 64, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine m;
        struct dt_point point;
        set_up(&m, cases[i].heads, cases[i].head, DT_BFLOAT16);
        m.gpus.count = m.limits.devices = cases[i].gpus;
        struct dt_space *space = make(&m);
        assert_int_equal(dt_dit_default(space, &point), DT_OK);
        struct dt_plan plan = dt_dit_plan(space, &point);
        assert_int_equal(plan.ranks, cases[i].gpus);
        assert_int_equal(plan.cfg, cases[i].cfg);
        assert_int_equal(plan.ulysses, cases[i].ulysses);
        assert_int_equal(plan.tile_q, 128);
        assert_int_equal(plan.tile_kv, cases[i].tile_kv);
        assert_int_equal(plan.warps, cases[i].warps);
        assert_int_equal(plan.threads, 1);
        assert_int_equal(dt_plan_on(&plan), DT_ON_GPU);
        assert_int_equal(plan.comm_ctas + plan.windows + plan.nccl_p2p_channels, 0);
        assert_int_equal(dt_dit_baseline(space, &point), DT_OK);
        plan = dt_dit_plan(space, &point);
        assert_int_equal(plan.ranks, 1);
        dt_space_free(space);
    }
}

/* What engines do on such a card without being asked is no gain: cuDNN's attention, and graphs
 * where exchanges can be in them. */
static void the_default_is_what_engines_do_on_the_card(void **state)
{
    static const struct {
        int head, capability;
        enum dt_dtype dtype;
        bool cudnn, capture;
        int attention, graph_of_one, graph_of_two;
    } cases[] = {
        {64, 80, DT_BFLOAT16, true, true, DT_ATTENTION_OWN, 1, 1},
        {128, 80, DT_BFLOAT16, true, true, DT_ATTENTION_OWN, 1, 1},
        {128, 0, DT_BFLOAT16, true, true, DT_ATTENTION_OWN, 1, 1},
        {64, 90, DT_BFLOAT16, true, true, DT_ATTENTION_CUDNN, 1, 1},
        {128, 90, DT_BFLOAT16, true, true, DT_ATTENTION_CUDNN, 1, 1},
        {128, 100, DT_BFLOAT16, true, true, DT_ATTENTION_CUDNN, 1, 1},
        {72, 90, DT_BFLOAT16, true, true, DT_ATTENTION_CUDNN, 1, 1},
        {88, 90, DT_BFLOAT16, true, true, DT_ATTENTION_CUDNN, 1, 1},
        {72, 80, DT_BFLOAT16, true, true, DT_ATTENTION_OWN, 1, 1},
        {128, 90, DT_BFLOAT16, false, true, DT_ATTENTION_OWN, 1, 1},
        {128, 90, DT_BFLOAT16, true, false, DT_ATTENTION_CUDNN, 1, 0},
        {128, 90, DT_FLOAT32, true, true, DT_ATTENTION_OWN, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine m;
        struct dt_point point;
        set_up(&m, 4, cases[i].head, cases[i].dtype);
        m.gpus.capability = cases[i].capability;
        m.gpus.attention[DT_ATTENTION_CUDNN] = cases[i].cudnn;
        m.gpus.capture = cases[i].capture;
        struct dt_space *space = make(&m);
        assert_int_equal(dt_dit_default(space, &point), DT_OK);
        struct dt_plan plan = dt_dit_plan(space, &point);
        assert_int_equal(plan.ranks, 2);
        assert_int_equal(plan.attention, cases[i].attention);
        assert_int_equal(plan.graph, cases[i].graph_of_two);
        assert_int_equal(dt_dit_baseline(space, &point), DT_OK);
        plan = dt_dit_plan(space, &point);
        assert_int_equal(plan.attention, cases[i].attention);
        assert_int_equal(plan.graph, cases[i].graph_of_one);
        dt_space_free(space);
    }
}

static void parse(const struct dt_space *space, const char *text, struct dt_plan *plan)
{
    int64_t values[DT_AXES_MAX];
    struct dt_point point;
    if (dt_space_parse(space, text, values) != DT_OK ||
        dt_space_locate(space, values, &point) != DT_OK)
        fail_msg("%s: %s", text, dt_message());
    *plan = dt_dit_plan(space, &point);
}

/* Named values are kept; the rest is completed to a feasible plan if possible. */
static void unnamed_parameters_are_completed(void **state)
{
    struct machine m;
    struct dt_plan plan;
    int64_t values[DT_AXES_MAX];
    struct dt_point point;
    (void)state;
    set_up(&m, 4, 128, DT_BFLOAT16);
    struct dt_space *space = make(&m);
    parse(space, "tile_q=64", &plan);
    assert_int_equal(plan.attention, DT_ATTENTION_OWN); /* cuDNN, the default, has no tiles */
    assert_int_equal(plan.tile_kv, 64);
    assert_int_equal(plan.stages, 1);
    parse(space, "tile_kv=32", &plan);
    assert_int_equal(plan.tile_q, 128);
    assert_int_equal(plan.stages, 2);
    parse(space, "warps=8 tile_kv=64", &plan);
    assert_int_equal(plan.stages, 2);
    parse(space, "attention=cudnn graph=1", &plan);
    assert_int_equal(plan.attention, DT_ATTENTION_CUDNN);
    parse(space, "ulysses=2 v_first=1", &plan);
    assert_int_equal(plan.exchange, DT_PLAN_DIRECT);
    assert_int_equal(dt_space_parse(space, "threads=2", values), DT_EUSAGE);
    assert_int_equal(dt_space_parse(space, "ranks=1 v_first=1", values), DT_OK);
    assert_int_equal(dt_space_locate(space, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "exchange=direct needs an all-to-all"));
    dt_space_free(space);
    m.limits.tune_nccl = false;
    space = make(&m);
    assert_int_equal(dt_space_parse(space, "ranks=2 nccl_p2p_channels=4", values), DT_OK);
    assert_int_equal(dt_space_locate(space, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "--tune-nccl"));
    assert_int_equal(dt_space_parse(space, "residual=bfloat16", values), DT_OK);
    assert_int_equal(dt_space_locate(space, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "--lossy"));
    dt_space_free(space);
    m.limits.lossy = true;
    space = make(&m);
    parse(space, "", &plan);
    assert_int_equal(plan.residual, DT_PLAN_WIDE);
    parse(space, "residual=bfloat16", &plan);
    assert_int_equal(plan.residual, DT_PLAN_NARROW);
    assert_int_equal(dt_dit_check(&m.workload, &plan), DT_OK);
    m.workload.dtype = DT_TF32;
    plan.attention = DT_ATTENTION_OWN;
    assert_int_equal(dt_dit_check(&m.workload, &plan), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "residual=bfloat16 needs bfloat16"));
    dt_space_free(space);
    set_up(&m, 4, 128, DT_BFLOAT16);
    m.limits.no_dtype = true;
    space = make(&m);
    assert_int_equal(dt_space_parse(space, "", values), DT_OK);
    assert_int_equal(dt_space_locate(space, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "compute capability 8.0"));
    dt_space_free(space);
}

/* Environment variables for NCCL and their unit; tf32 does not exist on cores. */
static void devices_differ(void **state)
{
    struct machine m;
    struct dt_space *space = NULL;
    (void)state;
    set_up(&m, 4, 64, DT_TF32);
    space = make(&m);
    const struct dt_axis *chunk = dt_space_axis(space, dt_space_find(space, "nccl_p2p_chunk_kib"));
    assert_int_equal(chunk->role, DT_ROLE_ENVIRONMENT);
    assert_string_equal(chunk->variable, "NCCL_P2P_NVL_CHUNKSIZE");
    assert_int_equal(chunk->unit, 1024);
    assert_int_equal(dt_space_find(space, "threads"), -1);
    dt_space_free(space);
    m.limits.gpus = NULL;
    m.limits.cores = 2;
    m.limits.memory_bytes = INT64_C(1) << 34;
    assert_int_equal(dt_dit_space(&m.workload, &m.limits, &space), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "tf32 is computed by GPUs only"));
    m.workload.dtype = DT_FLOAT32;
    assert_int_equal(dt_dit_space(&m.workload, &m.limits, &space), DT_OK);
    assert_int_equal(dt_space_find(space, "graph"), -1);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_match_the_definition),
        cmocka_unit_test(each_fact_counts),
        cmocka_unit_test(unnamed_parameters_are_completed),
        cmocka_unit_test(default_plans_match_a_table_by_hand),
        cmocka_unit_test(the_default_is_what_engines_do_on_the_card),
        cmocka_unit_test(devices_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
