/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* How many kernels a step starts: a number that the plan decides, not how many ranks exchange. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/network.h"
#include "tests/fake_cuda/fake_cuda.h"

/* Kernels of all ranks in so many steps, and before. */
static int64_t launches(const struct dt_workload *workload, const struct dt_plan *plan, int steps)
{
    char text[512];
    float *out = calloc((size_t)network_image(workload), sizeof *out);
    struct network_run run = {.workload = workload, .plan = plan, .steps = steps, .out = out};
    dt_fake_cuda_set("devices=4:memory=450m:delay=0:poison=64k:lt=one");
    if (network_run(&run) != DT_OK)
        fail_msg("%s: %s", plan_text(plan, text), run.message);
    free(out);
    return dt_fake_cuda_launches(0);
}

/* Of all ranks, which share GPU 0, in a step past the first two, in which
 * exchanges are summed up. */
static int64_t of_a_step(const struct dt_workload *workload, int ulysses)
{
    struct dt_plan plan = network_plan(1, ulysses, 1);
    return launches(workload, &plan, 4) - launches(workload, &plan, 3);
}

static void packed_exchanges_cost_the_same_for_any_number_of_ranks(void **state)
{
    static const struct {
        int height, width; /* of the latent */
        bool guidance;
        int copies; /* of a rank in a block */
        int more;   /* of a rank with a token less than others */
    } rows[] = {
        {8, 8, false, 4, 0},  /* 16 tokens. pack; q, k and v; pack; unpack */
        {8, 8, true, 6, 0},   /* of two sequences q, k and v are apart */
        {6, 10, false, 6, 0}, /* 15 tokens: peers with one less are apart in two of them */
        {6, 10, true, 10, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_workload workload = network_workload(DT_FLOAT32);
        workload.guidance = rows[i].guidance;
        workload.height = rows[i].height;
        workload.width = rows[i].width;
        int64_t one = of_a_step(&workload, 1), two = of_a_step(&workload, 2),
                four = of_a_step(&workload, 4);
        print_message(
            "%d x %d, %d sequences: %lld kernels a step on one rank, %lld on two, %lld on four\n",
            rows[i].height, rows[i].width, workload.guidance ? 2 : 1, (long long)one,
            (long long)two, (long long)four);
        int depth = workload.network.depth; /* one rank has a token less than the others */
        assert_int_equal(two - 2 * one, depth * (2 * rows[i].copies + rows[i].more));
        assert_int_equal(four - 4 * one, depth * (4 * rows[i].copies + rows[i].more));
    }
}

/* All blocks' modulations are one product, and the condition is narrowed once for it
 * and the last layer's. */
static void a_block_makes_no_modulation(void **state)
{
    (void)state;
    int64_t wide = 0;
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        int64_t two = of_a_step(&workload, 1);
        workload.network.depth = 5;
        int64_t five = of_a_step(&workload, 1);
        wide = dtype == DT_FLOAT32 ? two : wide;
        print_message("%s: %lld kernels a step of two blocks, %lld of five\n",
                      dt_dtype_text((enum dt_dtype)dtype), (long long)two, (long long)five);
        bool fused = dtype == DT_BFLOAT16; /* GELU; a kernel of our own for outputs in float32 */
        assert_int_equal(five - two, 3 * (fused ? 7 : 8)); /* four products, attention, two norms */
        if (fused) /* narrowed: time twice, the latent, the condition; two blocks' GELU */
            assert_int_equal(two - wide, 4 - 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_exchanges_cost_the_same_for_any_number_of_ranks),
        cmocka_unit_test(a_block_makes_no_modulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
