/* SPDX-License-Identifier: MIT */
/* ctest: dose early slow */
/* Whole networks on GPUs against the CPU back end on one rank, in float32: every degree and its
 * chunks and overlap, every data type, exchanges through the host's memory and by NCCL, packed and
 * direct, steps by graphs, every attention tile. DITTUNE_DOSE=full: all of it in every data type;
 * thin: one of each kind; else half of it in float32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/network.h"
#include "tests/lib/dose.h"

#include <stdatomic.h>

enum { STEPS = 2 };

/* Allowed error: the data type's tolerance (model/dtype.c). In float32: the order of sums gives
 * 1.5e-6 in this network, and exponentials that are off by two units in the last place, as CUDA's
 * guide allows, 3e-8 more (kernel_emulator_whole, full dose). Frequencies of the timestep that are
 * one unit off gave 6e-6 to 1.4e-5: they are the same on both sides (kernels/compute.h). */
static double allowed(enum dt_dtype dtype)
{
    return dtype == DT_FLOAT32 ? 5e-6 : dt_dtype_tolerance(dtype);
}

static bool agrees(const struct dt_workload *workload, const struct dt_plan *plan, const float *out,
                   const float *baseline)
{
    char text[512];
    double error = image_error(out, baseline, plan->batch, network_image(workload));
    bool right = error < allowed(workload->dtype);
    if (!right)
        print_message("%s %s: relative error %.2e\n", dt_dtype_text(workload->dtype),
                      plan_text(plan, text), error);
    return right;
}

/* How many of `all` are tried in a data type. */
static size_t tried(enum dt_dtype dtype, size_t all)
{
    return dose_full() ? all : dtype == DT_FLOAT32 && !dose_thin() ? (all + 1) / 2 : 1;
}

static void run(const struct dt_workload *workload, const struct dt_plan *plan, bool nccl,
                float *out)
{
    char text[512];
    struct network_run run = {
        .workload = workload, .plan = plan, .steps = STEPS, .nccl = nccl, .out = out};
    if (network_run(&run) != DT_OK)
        fail_msg("%s: %s", plan_text(plan, text), run.message);
}

static float *images(const struct dt_workload *workload, int batch)
{
    float *out = calloc((size_t)(batch * network_image(workload)), sizeof *out);
    assert_non_null(out);
    return out;
}

/* All of them, so that one run shows every plan that is wrong. */
static void try_plans(struct dt_workload workload, const struct dt_plan plans[], int count,
                      bool nccl)
{
    int wrong = 0;
    float *baseline = network_baseline(&workload, plans[0].batch, STEPS);
    float *out = images(&workload, plans[0].batch);
    for (int i = 0; i < count; i++) {
        run(&workload, &plans[i], nccl, out);
        wrong += !agrees(&workload, &plans[i], out, baseline);
    }
    free(baseline);
    free(out);
    assert_int_equal(wrong, 0);
}

static int add(struct dt_plan plans[], int count, struct dt_plan plan)
{
    plans[count] = plan;
    return count + 1;
}

static void one_rank_matches_the_cpu(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        struct dt_plan plans[8];
        int count = add(plans, 0, network_plan(1, 1, 1));
        plans[count] = plans[0];
        plans[count++].chunks = 2;
        try_plans(workload, plans, count, false);
    }
}

static void several_ranks_match_one(void **state)
{
    (void)state;
    static const int degrees[][3] = {{1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {1, 1, 3},
                                     {1, 4, 1}, {2, 2, 1}, {1, 2, 2}};
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        size_t most = tried((enum dt_dtype)dtype, sizeof degrees / sizeof degrees[0]);
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        struct dt_plan plans[64];
        int count = 0;
        for (size_t i = 0; i < most; i++) {
            struct dt_plan plan = network_plan(degrees[i][0], degrees[i][1], degrees[i][2]);
            plan.batch = 2;
            for (plan.overlap = dose_full() ? 0 : (int)i % 2; plan.overlap <= 1; plan.overlap++) {
                plan.chunks = 1 + (plan.ulysses == 2 && plan.overlap);
                count = add(plans, count, plan);
            }
        }
        try_plans(workload, plans, count, false);
    }
}

/* A stream in bfloat16 is rounded at the positions and after each branch, by at most 2^-9 of each
 * number; the last sum is normalised before it is rounded. So it adds at most 2 depth 2^-9 to what
 * the data type itself is off. */
static void a_residual_in_bfloat16_adds_its_roundings(void **state)
{
    (void)state;
    static const int degrees[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 2}, {2, 2, 1}};
    struct dt_workload workload = network_workload(DT_BFLOAT16);
    double most = 2 * workload.network.depth * ldexp(1.0, -9);
    float *baseline = network_baseline(&workload, 2, 1), *wide = images(&workload, 2),
          *narrow = images(&workload, 2);
    for (size_t i = 0; i < tried(DT_BFLOAT16, 4); i++) {
        struct dt_plan plan = network_plan(degrees[i][0], degrees[i][1], degrees[i][2]);
        int64_t size = network_image(&workload);
        plan.batch = 2;
        struct network_run runs[] = {
            {.workload = &workload, .plan = &plan, .steps = 1, .out = wide},
            {.workload = &workload, .plan = &plan, .steps = 1, .out = narrow}};
        for (plan.residual = DT_PLAN_WIDE; plan.residual <= DT_PLAN_NARROW; plan.residual++)
            if (network_run(&runs[plan.residual]) != DT_OK)
                fail_msg("residual=%d: %s", plan.residual, runs[plan.residual].message);
        double off = image_error(wide, baseline, 2, size);
        double error = image_error(narrow, baseline, 2, size);
        print_message("a step is off by %.2e, with a residual in bfloat16 by %.2e\n", off, error);
        assert_true(error < off + most);
        assert_true(image_error(narrow, wide, 2, size) > 0);
    }
    free(baseline);
    free(wide);
    free(narrow);
}

/* Packed and direct, values first, chunks: through the host, and by NCCL. */
static void ways_to_exchange_agree(void **state)
{
    (void)state;
    static const int degrees[][2] = {{2, 1}, {1, 2}, /* full: */ {2, 2}, {4, 1}};
    for (int dtype = 0; dtype < (dose_full() ? DT_TF32 : DT_FLOAT32 + 1); dtype++) {
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        struct dt_plan plans[64];
        int count = 0;
        for (int i = 0; i < (dose_full() ? 4 : dose_thin() ? 1 : 2); i++) {
            struct dt_plan plan = network_plan(1, degrees[i][0], degrees[i][1]);
            for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++) {
                plan.chunks = 1 + (plan.ulysses == 2);
                plan.exchange = DT_PLAN_PACKED;
                plan.v_first = 0;
                count = add(plans, count, plan);
                plan.exchange = DT_PLAN_DIRECT;
                for (plan.v_first = 0; plan.v_first <= 1 && plan.ulysses > 1; plan.v_first++)
                    count = add(plans, count, plan);
            }
        }
        try_plans(workload, plans, count, false);
        if (network_nccl(4))
            try_plans(workload, plans, count, true);
    }
}

/* A step that is replayed is the step, but for the order of sums: the two runs may have
 * chosen other algorithms. */
static void a_replayed_step_equals_the_step(void **state)
{
    (void)state;
    static const int degrees[][3] = {{1, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 1}};
    for (int dtype = 0; dtype < DT_TF32; dtype++) {
        size_t most = tried((enum dt_dtype)dtype, sizeof degrees / sizeof degrees[0]);
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        int64_t size = network_image(&workload);
        float *eager = images(&workload, 1), *replayed = images(&workload, 1);
        for (size_t i = 0; i < most; i++) {
            struct dt_plan plan = network_plan(degrees[i][0], degrees[i][1], degrees[i][2]);
            struct network_run runs[2];
            for (plan.graph = 0; plan.graph <= 1 && network_nccl(plan.ranks); plan.graph++) {
                runs[plan.graph] = (struct network_run){.workload = &workload,
                                                        .plan = &plan,
                                                        .steps = 5,
                                                        .nccl = plan.ranks > 1,
                                                        .out = plan.graph ? replayed : eager};
                if (network_run(&runs[plan.graph]) != DT_OK)
                    fail_msg("graph=%d: %s", plan.graph, runs[plan.graph].message);
            }
            double error = image_error(replayed, eager, 1, size);
            if (!(error < allowed((enum dt_dtype)dtype)))
                fail_msg("replayed: relative error %.2e", error);
        }
        free(eager);
        free(replayed);
    }
}

enum { NAMES = 6 };
static const char *const range_names[NAMES] = {"step",      "block",    "gemm",
                                               "attention", "exchange", "wait"};
static _Thread_local int depth;
static atomic_int deepest, ranges[NAMES], unbalanced;

static void watch(struct dt_device *device, const char *name)
{
    (void)device;
    depth += name != NULL ? 1 : -1;
    if (depth < 0 || (name != NULL && (depth == 1) != (strcmp(name, "step") == 0)))
        atomic_fetch_add(&unbalanced, 1);
    if (depth > atomic_load(&deepest))
        atomic_store(&deepest, depth);
    for (int i = 0; name != NULL && i < NAMES; i++)
        if (strcmp(name, range_names[i]) == 0)
            atomic_fetch_add(&ranges[i], 1);
}

/* A profiler's ranges: a step holds blocks, those what they do, and what begins ends. */
static void profiler_ranges_are_nested_and_closed(void **state)
{
    (void)state;
    static const int expect[NAMES] = {
        2 * STEPS,         /* ranks */
        2 * STEPS * 2,     /* blocks */
        2 * STEPS * 14,    /* 4 a block; time 2, patches 1, modulations 2, the last 1 */
        2 * STEPS * 2 * 2, /* chunks */
        2 * STEPS * 2 * 4, /* two ways */
        2 * STEPS * 2 * 4,
    };
    struct dt_workload workload = network_workload(DT_FLOAT32);
    struct dt_plan plan = network_plan(1, 2, 1);
    float *out = images(&workload, 1);
    plan.chunks = 2;
    struct network_run run = {
        .workload = &workload, .plan = &plan, .steps = STEPS, .range = watch, .out = out};
    if (network_run(&run) != DT_OK)
        fail_msg("%s", run.message);
    assert_int_equal(atomic_load(&unbalanced), 0);
    assert_int_equal(atomic_load(&deepest), 3);
    for (int i = 0; i < NAMES; i++)
        if (atomic_load(&ranges[i]) != expect[i])
            fail_msg("%d ranges of %s, not %d", atomic_load(&ranges[i]), range_names[i], expect[i]);
    free(out);
}

/* Each row of model/tiles_cuda.def in a network. */
static void every_tile_gives_the_same_output(void **state)
{
    (void)state;
    static const int rows[][4] = {
#define DT_ATTN_TILE(tile_q, tile_kv, stages, warps) {tile_q, tile_kv, stages, warps},
#include "model/tiles_cuda.def"
#undef DT_ATTN_TILE
    };
    struct dt_plan plans[64];
    int count = 0;
    for (size_t i = 0; i < (dose_thin() ? 1 : sizeof rows / sizeof rows[0]); i++) {
        struct dt_plan plan = network_plan(1, 1, 1);
        plan.tile_q = rows[i][0];
        plan.tile_kv = rows[i][1];
        plan.stages = rows[i][2];
        plan.warps = rows[i][3];
        count = add(plans, count, plan);
    }
    try_plans(network_workload(DT_BFLOAT16), plans, count, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_matches_the_cpu),
        cmocka_unit_test(several_ranks_match_one),
        cmocka_unit_test(a_residual_in_bfloat16_adds_its_roundings),
        cmocka_unit_test(ways_to_exchange_agree),
        cmocka_unit_test(a_replayed_step_equals_the_step),
        cmocka_unit_test(every_tile_gives_the_same_output),
        cmocka_unit_test(profiler_ranges_are_nested_and_closed),
    };
    if (!dt_compute_cuda.usable(DT_FLOAT32))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
