/* SPDX-License-Identifier: MIT */
/* Whole networks on GPUs against the CPU back end on one rank, in float32: every degree and its chunks and overlap, every data type,
 * exchanges through the host's memory, ranks that share a GPU or have one each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/network.h"

/* What the data type costs (model/dtype.c); in float32 the order of sums. */
static double allowed(enum dt_dtype dtype)
{
    return dtype == DT_FLOAT32 ? 5e-6 : dt_dtype_tolerance(dtype);
}

static void agree(const struct dt_workload *workload, const struct dt_plan *plan, const float *out,
                  const float *baseline)
{
    char text[512];
    double error = network_error(out, baseline, plan->batch, network_image(workload));
    if (!(error < allowed(workload->dtype)))
        fail_msg("%s %s: relative error %.2e", dt_dtype_text(workload->dtype),
                 network_text(plan, text), error);
}

static void try_plans(struct dt_workload workload, const struct dt_plan plans[], int count)
{
    const int64_t size = network_image(&workload);
    float *baseline = network_baseline(&workload, plans[0].batch);
    float *out = calloc((size_t)(plans[0].batch * size), sizeof *out);
    assert_non_null(out);
    for (int i = 0; i < count; i++) {
        char text[512];
        struct network_run run = {.workload = &workload, .plan = &plans[i], .steps = 2, .out = out};
        if (network_run(&run) != DT_OK)
            fail_msg("%s: %s", network_text(&plans[i], text), run.message);
        agree(&workload, &plans[i], out, baseline);
    }
    free(baseline);
    free(out);
}

static int add(struct dt_plan plans[], int count, struct dt_plan plan)
{
    plans[count] = plan;
    return count + 1;
}

static void one_rank_is_the_cpu(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        struct dt_plan plans[8];
        int count = add(plans, 0, network_plan(1, 1, 1, 1));
        plans[count] = plans[0];
        plans[count++].chunks = 2;
        try_plans(workload, plans, count);
    }
}

static void ranks_are_one(void **state)
{
    (void)state;
    static const int degrees[][4] = {{2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2},
                                     {1, 1, 1, 3}, {1, 1, 4, 1}, {1, 2, 2, 1}, {1, 1, 2, 2}};
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        struct dt_workload workload = network_workload((enum dt_dtype)dtype);
        struct dt_plan plans[64];
        int count = 0;
        for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
            struct dt_plan plan =
                network_plan(degrees[i][0], degrees[i][1], degrees[i][2], degrees[i][3]);
            plan.batch = 2;
            for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++) {
                plan.chunks = 1 + (plan.ulysses == 2 && plan.overlap);
                count = add(plans, count, plan);
            }
        }
        try_plans(workload, plans, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_is_the_cpu),
        cmocka_unit_test(ranks_are_one),
    };
    if (!dt_compute_cuda.usable(DT_FLOAT32))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
