/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* Every plan of small spaces gives the output of one rank: degrees that are no powers of two,
 * tokens that do not divide, every tile, overlap on and off, chunks, guidance, data parallel;
 * after two chained steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/compute.h"
#include "model/layout.h"
#include "tests/kernels/case.h"
#include "tests/lib/dose.h"

enum { TILES = DT_TILES_Q * DT_TILES_KV, MOST_BATCH = 4 };

struct sweep {
    struct dt_workload workload;
    struct dt_weights *weights;
    float *baseline[MOST_BATCH + 1], *out;
    int plans, tile;
    bool cross; /* every tile pair with every choice of the others */
    double worst;
};

/* The baseline is float32 whatever the plans run in. */
static void start(struct sweep *sweep, struct dt_workload workload)
{
    struct dt_workload wide = workload;
    struct dt_weights *weights = NULL;
    wide.dtype = DT_FLOAT32;
    *sweep = (struct sweep){.workload = workload};
    int64_t size = case_image(&workload);
    assert_int_equal(dt_weights_new(&workload, case_device(), &sweep->weights), DT_OK);
    assert_int_equal(dt_weights_new(&wide, case_device(), &weights), DT_OK);
    sweep->out = calloc((size_t)(MOST_BATCH * size), sizeof(float));
    for (int batch = 1; batch <= MOST_BATCH; batch++) {
        struct dt_plan plan = case_plan(1, 1, 1);
        plan.batch = batch;
        sweep->baseline[batch] = calloc((size_t)(batch * size), sizeof(float));
        struct case_run run = {.workload = &wide,
                               .plan = &plan,
                               .weights = weights,
                               .steps = 2,
                               .out = sweep->baseline[batch]};
        assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
    }
    dt_weights_free(weights);
}

static void end(struct sweep *sweep)
{
    print_message("%d plans, worst relative error %.2e\n", sweep->plans, sweep->worst);
    assert_true(sweep->plans > 0);
    for (int batch = 1; batch <= MOST_BATCH; batch++)
        free(sweep->baseline[batch]);
    free(sweep->out);
    dt_weights_free(sweep->weights);
}

static void try_plan(struct sweep *sweep, const struct dt_plan *plan)
{
    char text[512];
    struct case_run run = {.workload = &sweep->workload,
                           .plan = plan,
                           .weights = sweep->weights,
                           .steps = 2,
                           .out = sweep->out};
    dt_status status = case_run_plan(&run, &(struct dt_fake_options){0});
    if (status != DT_OK)
        fail_msg("%s: %s", plan_text(plan, text), dt_message());
    double error = image_error(sweep->out, sweep->baseline[plan->batch], plan->batch,
                               case_image(&sweep->workload));
    if (!(error < (sweep->workload.dtype == DT_FLOAT32 ? 5e-6 : 2e-2)))
        fail_msg("%s: relative error %.2e", plan_text(plan, text), error);
    int64_t most = 0;
    for (int i = 0; i < plan->ranks; i++)
        most = run.bytes[i] > most ? run.bytes[i] : most;
    if (most != dt_layout_bytes(&sweep->workload, plan))
        fail_msg("%s: %lld bytes allocated, %lld predicted", plan_text(plan, text), (long long)most,
                 (long long)dt_layout_bytes(&sweep->workload, plan));
    sweep->worst = error > sweep->worst ? error : sweep->worst;
    sweep->plans++;
}

/* Overlap and chunks of one choice of degrees, with every tile pair, or the pairs taking turns. */
static void try_degrees(struct sweep *sweep, struct dt_plan plan)
{
    int owned = sweep->workload.network.heads / plan.ulysses;
    for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++) {
        for (plan.chunks = 1; plan.chunks <= owned; plan.chunks++) {
            for (int i = 0; i < (sweep->cross ? TILES : 1); i++) {
                int tile = sweep->tile++ % TILES;
                plan.tile_q = dt_tiles_q[tile / DT_TILES_KV];
                plan.tile_kv = dt_tiles_kv[tile % DT_TILES_KV];
                try_plan(sweep, &plan);
            }
        }
    }
}

static void try_all(struct sweep *sweep, int most_ranks, int batch)
{
    int heads = sweep->workload.network.heads, halves = sweep->workload.guidance ? 2 : 1;
    for (int cfg = 1; cfg <= halves; cfg++)
        for (int ulysses = 1; ulysses <= heads; ulysses++)
            for (int ring = 1; cfg * ulysses * ring <= most_ranks; ring++) {
                struct dt_plan plan = case_plan(cfg, ulysses, ring);
                plan.batch = batch;
                if (heads % ulysses == 0)
                    try_degrees(sweep, plan);
            }
}

static void sweep_heads(struct dt_workload workload)
{
    struct sweep sweep;
    start(&sweep, workload);
    sweep.cross = workload.network.depth == 1 && !dose_thin() &&
                  (workload.dtype == DT_FLOAT32 || dose_full());
    try_all(&sweep, 6, 1);
    try_all(&sweep, 4, 2);
    end(&sweep);
}

static void every_plan_of_three_heads_agrees(void **state)
{
    (void)state;
    sweep_heads(case_workload(3, 8, 10, 10)); /* 25 tokens */
}

/* The whole space, nothing left out. */
static void every_plan_of_three_heads_and_every_tile_agrees(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(3, 4, 6, 10); /* 15 tokens */
    workload.network.depth = 1;
    sweep_heads(workload);
}

static void every_plan_of_five_heads_agrees(void **state)
{
    (void)state;
    sweep_heads(case_workload(5, 12, 6, 14)); /* 21 tokens */
}

static void every_plan_of_six_heads_agrees(void **state)
{
    (void)state;
    sweep_heads(case_workload(6, 4, 6, 10)); /* 15 tokens; 6 ranks get 2 or 3 */
}

static void every_plan_without_guidance_agrees(void **state)
{
    (void)state;
    struct sweep sweep;
    struct dt_workload workload = case_workload(4, 8, 10, 6);
    workload.guidance = false;
    workload.network.learn_sigma = false;
    start(&sweep, workload);
    try_all(&sweep, 6, 1);
    try_all(&sweep, 4, 4);
    try_all(&sweep, 3, 3);
    end(&sweep);
}

/* Every legal plan in bfloat16 stays within 2e-2 of float32 on one rank; with every tile
 * pair in the full dose. */
static void bfloat16_is_near_float32(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(3, 8, 10, 10); /* 25 tokens */
    workload.dtype = DT_BFLOAT16;
    if (!dt_compute_cpu.usable(DT_BFLOAT16)) {
        print_message("skipped: %s\n", dt_message());
        skip();
    }
    sweep_heads(workload);
    workload = case_workload(5, 12, 6, 14); /* 21 tokens */
    workload.dtype = DT_BFLOAT16;
    workload.network.depth = 1;
    sweep_heads(workload);
    workload =
        case_workload(3, 5, 6, 10); /* an odd number of channels of a head: pairs do not fit */
    workload.network.hidden = 60;
    workload.network.heads = 4;
    workload.dtype = DT_BFLOAT16;
    sweep_heads(workload);
}

/* Sequences longer than the tiles, so that every pair really tiles. */
static void every_tile_agrees_on_long_sequences(void **state)
{
    (void)state;
    struct sweep sweep;
    struct dt_workload workload = case_workload(2, 8, 34, 34); /* 289 tokens */
    workload.network.depth = 1;
    start(&sweep, workload);
    for (int tile = 0; tile < TILES; tile++) {
        const int degrees[][2] = {{1, 1}, {2, 1}, {1, 3}, {2, 2}};
        for (int i = 0; i < 4; i++) {
            struct dt_plan plan = case_plan(1, degrees[i][0], degrees[i][1]);
            plan.overlap = i % 2;
            plan.tile_q = dt_tiles_q[tile / DT_TILES_KV];
            plan.tile_kv = dt_tiles_kv[tile % DT_TILES_KV];
            try_plan(&sweep, &plan);
        }
    }
    end(&sweep);
}

/* Image i is the same whatever the batch, and images differ. */
static void images_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    struct sweep sweep;
    start(&sweep, case_workload(3, 8, 8, 8));
    int64_t size = case_image(&sweep.workload);
    assert_true(image_error(sweep.baseline[4], sweep.baseline[1], 1, size) < 5e-6);
    assert_true(image_error(sweep.baseline[4], sweep.baseline[3], 3, size) < 5e-6);
    assert_true(image_error(sweep.baseline[4] + size, sweep.baseline[1], 1, size) > 0.1);
    sweep.plans = 1;
    end(&sweep);
}

/* Rank 0's layout is the largest of every plan, as dt_layout_bytes says. */
static void first_rank_is_the_largest(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(6, 8, 10, 14);
    for (int ulysses = 1; ulysses <= 6; ulysses++) {
        for (int ring = 1; ring <= 4; ring++) {
            struct dt_plan plan = case_plan(2, ulysses, ring);
            plan.batch = 3;
            for (int rank = 1; rank < plan.ranks && 6 % ulysses == 0; rank++) {
                struct dt_layout layout;
                dt_layout_init(&layout, &workload, &plan, rank);
                assert_true(layout.bytes <= dt_layout_bytes(&workload, &plan));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_of_three_heads_agrees),
        cmocka_unit_test(every_plan_of_three_heads_and_every_tile_agrees),
        cmocka_unit_test(every_plan_of_five_heads_agrees),
        cmocka_unit_test(every_plan_of_six_heads_agrees),
        cmocka_unit_test(every_plan_without_guidance_agrees),
        cmocka_unit_test(bfloat16_is_near_float32),
        cmocka_unit_test(every_tile_agrees_on_long_sequences),
        cmocka_unit_test(images_do_not_depend_on_the_batch),
        cmocka_unit_test(first_rank_is_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
