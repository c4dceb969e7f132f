/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* A small network through the kernels themselves: heads of 64 and of 72 channels, exchanges in
 * both directions, tiles of either kind, against the CPU back end on one rank.
 * DITTUNE_DOSE=full: rings of two in float32 and of three; tests/cuda/passes.c runs the same way
 * with -C full: every degree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/network.h"
#include "tests/kernel_emulator/emulator.h"
#include "tests/lib/dose.h"

#define STEPS 2

static void try_plan(struct dt_workload workload, struct dt_plan plan)
{
    char text[512];
    const int64_t size = network_image(&workload);
    float *baseline = network_baseline(&workload, plan.batch, STEPS),
          *out = calloc((size_t)(plan.batch * size), sizeof *out);
    assert_non_null(out);
    struct network_run run = {.workload = &workload, .plan = &plan, .steps = STEPS, .out = out};
    if (network_run(&run) != DT_OK)
        fail_msg("%s: %s", plan_text(&plan, text), run.message);
    double error = image_error(out, baseline, plan.batch, size);
    print_message("%s, exponentials off by %d: relative error %.2e\n", plan_text(&plan, text),
                  emu_exponentials, error);
    /* Tolerance of the data type (model/dtype.c); in float32 of the order of sums. */
    if (!(error < (workload.dtype == DT_FLOAT32 ? 5e-6 : dt_dtype_tolerance(workload.dtype))))
        fail_msg("%s: relative error %.2e", plan_text(&plan, text), error);
    free(baseline);
    free(out);
}

static void one_rank_in_bfloat16(void **state)
{
    (void)state;
    try_plan(network_workload(DT_BFLOAT16), network_plan(1, 1, 1));
}

static void heads_of_72_channels(void **state)
{
    (void)state;
    struct dt_workload workload = network_workload(DT_BFLOAT16);
    workload.network.hidden = 288;
    struct dt_plan plan = network_plan(1, 2, 1);
    plan.tile_q = 128;
    plan.stages = 2;
    plan.warps = 8;
    try_plan(workload, plan);
}

/* Also with the largest errors that CUDA's guide allows exponentials: a GPU's
 * library is not the host's. */
static void a_ring_in_float32(void **state)
{
    (void)state;
    for (emu_exponentials = 2; dose_full() && emu_exponentials > 0; emu_exponentials--)
        try_plan(network_workload(DT_FLOAT32), network_plan(1, 1, 1));
    emu_exponentials = 0;
    if (dose_full())
        try_plan(network_workload(DT_FLOAT32), network_plan(1, 1, 2));
}

static void a_ring_in_bfloat16(void **state)
{
    (void)state;
    struct dt_plan plan = network_plan(1, 1, dose_full() ? 3 : 2);
    plan.overlap = 1;
    try_plan(network_workload(DT_BFLOAT16), plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_in_bfloat16),
        cmocka_unit_test(heads_of_72_channels),
        cmocka_unit_test(a_ring_in_float32),
        cmocka_unit_test(a_ring_in_bfloat16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
