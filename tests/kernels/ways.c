/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Whole networks give the same bits whatever carries their exchanges, threads or processes, and
 * within rounding those of one rank: what a comm does is to move bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/kernels/case.h"
#include "tests/kernels/ranks.h"
#include "tests/lib/dose.h"

static struct case_run reference(const struct dt_workload *workload, const struct dt_plan *plan,
                                 float *out)
{
    return (struct case_run){.workload = workload, .plan = plan, .steps = 2, .out = out};
}

/* Weights of its own: ranks may be processes. */
static dt_status body(struct dt_comm *comm, void *arg)
{
    struct case_run run = *(const struct case_run *)arg;
    struct dt_device *device = comm->device, *opened = NULL;
    struct dt_weights *weights = NULL;
    if (device == NULL) {
        DT_TRY(dt_compute_cpu.open(0, &opened));
        device = opened;
    }
    dt_status status = dt_weights_new(run.workload, device, &weights);
    run.weights = weights;
    if (status == DT_OK)
        status = case_body(comm, &run);
    dt_weights_free(weights);
    if (opened != NULL)
        dt_compute_cpu.close(opened);
    return status;
}

/* In a process of its own, threads too: this one must not have used OpenMP when it forks. */
static void run_on(const struct ranks *kind, struct case_run *run)
{
    struct ranks apart = *kind;
    char text[512];
    apart.gpu = true;
    if (ranks_run(&apart, run->plan->ranks, body, run, NULL) != DT_OK)
        fail_msg("%s: %s", kind->name, plan_text(run->plan, text));
}

static void expect_one_answer(const struct dt_plan *plan)
{
    struct dt_workload workload = case_workload(4, 8, 6, 10); /* 15 tokens */
    size_t size = (size_t)(plan->batch * case_image(&workload)), bytes = size * sizeof(float);
    float *out = ranks_common(3 * bytes), *first = out + size, *baseline = first + size;
    struct dt_plan single = case_plan(1, 1, 1);
    char text[512];
    single.batch = plan->batch;
    struct case_run run = reference(&workload, &single, baseline);
    run_on(&ranks_rows[0], &run);
    run = reference(&workload, plan, first);
    run_on(&ranks_rows[0], &run);
    double error = image_error(first, baseline, plan->batch, case_image(&workload));
    if (!(error < 5e-6))
        fail_msg("%s: relative error %.2e", plan_text(plan, text), error);
    for (int row = 1; row < RANKS_ROWS; row++) {
        memset(out, 0, bytes);
        run = reference(&workload, plan, out);
        run_on(&ranks_rows[row], &run);
        if (memcmp(out, first, bytes) != 0)
            fail_msg("%s: other bits than by %s: %s", ranks_rows[row].name, ranks_rows[0].name,
                     plan_text(plan, text));
    }
    munmap(out, 3 * bytes);
}

static void every_way_gives_the_same_bits(void **state)
{
    (void)state;
    static const int degrees[][3] = {{1, 1, 3}, {2, 2, 1}, {1, 2, 1}, {1, 2, 2}, {2, 1, 2}};
    size_t count = dose_thin() ? 2 : sizeof degrees / sizeof degrees[0];
    for (size_t i = 0; i < count; i++) {
        struct dt_plan plan = case_plan(degrees[i][0], degrees[i][1], degrees[i][2]);
        plan.batch = 2;
        for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++) {
            plan.chunks = plan.ulysses == 2 && plan.overlap ? 2 : 1;
            expect_one_answer(&plan);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
