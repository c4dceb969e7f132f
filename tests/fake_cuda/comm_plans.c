/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Whole networks on ranks with a GPU each, by NCCL: features of GPU plans only (pieces sent in
 * place, values first, one graph per step, windows) give the same bits as exchanges through host
 * memory, which agree with one rank of the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/kernels/case.h"
#include "tests/kernels/ranks.h"
#include "tests/lib/dose.h"

static const struct ranks *const by_threads = &ranks_rows[0], *const by_processes = &ranks_rows[1],
                                 *const on_one_gpu = &ranks_rows[2];
static const struct ranks on_cpu = {"cpu", .fake = true, .gpu = true, .open = ranks_open_fake};

enum { STEPS = 3 }; /* the first as it comes, the second recorded, the third replayed */

struct run {
    const struct dt_workload *workload;
    struct dt_plan plans[8]; /* one after the other */
    int count;
    float *out; /* of rank 0, one after the other; common */
};

static dt_status steps(struct dt_comm *comm, const struct run *run, int index,
                       const struct dt_weights *weights)
{
    const struct dt_plan *plan = &run->plans[index];
    float *out = run->out + index * plan->batch * case_image(run->workload);
    double norm[8], projections[8 * 4];
    struct dt_pass *pass = NULL;
    DT_TRY(dt_pass_new(run->workload, plan, weights, comm, &pass));
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < STEPS; i++)
        status = dt_pass_step(pass, NULL);
    if (status == DT_OK)
        status = dt_pass_output(pass, comm->rank == 0 ? out : NULL);
    if (status == DT_OK)
        status = dt_pass_verify(pass, 7, 4, norm, projections);
    dt_pass_free(pass);
    return status;
}

static dt_status body(struct dt_comm *comm, void *arg)
{
    const struct run *run = arg;
    struct dt_device *device = comm->device, *opened = NULL;
    struct dt_weights *weights = NULL;
    if (device == NULL) {
        DT_TRY(dt_compute_cpu.open(0, &opened));
        device = opened;
    }
    dt_status status = dt_weights_new(run->workload, device, &weights);
    for (int i = 0; status == DT_OK && i < run->count; i++)
        status = steps(comm, run, i, weights);
    dt_weights_free(weights);
    if (opened != NULL)
        dt_compute_cpu.close(opened);
    if (status == DT_OK && comm->device != NULL && *dt_fake_cuda_complaint() != '\0')
        return dt_fail(DT_FAILED, "%s", dt_fake_cuda_complaint());
    return status;
}

enum { WAYS = 8 };
#define EDGE_ERROR 2e-6 /* relative: float32 sums in another order */

struct sweep {
    struct dt_workload workload;
    float *baseline, *out; /* out: of WAYS plans */
    size_t bytes;
    int plans;
};

static void start(struct sweep *sweep, int batch)
{
    *sweep = (struct sweep){.workload = case_workload(4, 8, 6, 10)}; /* 15 tokens */
    sweep->bytes = (size_t)(batch * case_image(&sweep->workload)) * sizeof(float);
    sweep->baseline = ranks_common(sweep->bytes);
    sweep->out = ranks_common(WAYS * sweep->bytes);
    struct run run = {&sweep->workload, {case_plan(1, 1, 1)}, 1, sweep->baseline};
    run.plans[0].batch = batch;
    assert_int_equal(ranks_run(&on_cpu, 1, body, &run, NULL), DT_OK);
}

static void end(struct sweep *sweep)
{
    print_message("%d plans\n", sweep->plans);
    munmap(sweep->baseline, sweep->bytes);
    munmap(sweep->out, WAYS * sweep->bytes);
}

/* Plans that give the first output. The same bits where the products of OpenBLAS do not depend on
 * their number of rows, which some of its kernels round differently at the edges: elsewhere
 * within that rounding. */
static void run_on(struct sweep *sweep, const struct ranks *kind, struct run *run,
                   const void *first)
{
    char text[256];
    memset(sweep->out, 0, WAYS * sweep->bytes);
    if (ranks_run(kind, run->plans[0].ranks, body, run, NULL) != DT_OK)
        fail_msg("%s: %s and others like it", kind->name, plan_text(&run->plans[0], text));
    for (int i = 0; i < run->count; i++)
        if (first != NULL &&
            memcmp((char *)sweep->out + (size_t)i * sweep->bytes, first, sweep->bytes) != 0 &&
            !(image_error((float *)(void *)((char *)sweep->out + (size_t)i * sweep->bytes), first,
                          run->plans[i].batch, case_image(&sweep->workload)) < EDGE_ERROR))
            fail_msg("%s: not what it is through the host's memory: %s", kind->name,
                     plan_text(&run->plans[i], text));
    sweep->plans += run->count;
}

/* The same bits with every way to exchange, and within the rounding of another order of
 * sums those of one rank. All ways are tried in one process, where the communicators of
 * one may serve the next. */
static void try_degrees(struct sweep *sweep, struct dt_plan plan)
{
    char text[256];
    float *first = malloc(sweep->bytes);
    struct run run = {&sweep->workload, {plan}, 1, sweep->out};
    run_on(sweep, on_one_gpu, &run, NULL);
    memcpy(first, sweep->out, sweep->bytes);
    double error = image_error(first, sweep->baseline, plan.batch, case_image(&sweep->workload));
    if (!(error < 5e-6))
        fail_msg("%s: relative error %.2e", plan_text(&plan, text), error);
    for (int way = 0; way < WAYS; way++) {
        plan.graph = way & 1;
        plan.windows = way >> 1 & 1;
        plan.comm_ctas = way == 5 ? 4 : 0;
        plan.exchange = plan.ulysses > 1 && way >= 4 ? DT_PLAN_DIRECT : DT_PLAN_PACKED;
        plan.v_first = plan.exchange == DT_PLAN_DIRECT && way >= 6;
        run.plans[way] = plan;
    }
    run.count = WAYS;
    run_on(sweep, by_threads, &run, first);
    if (!dose_thin()) /* sanitizers look at one process */
        run_on(sweep, by_processes, &run, first);
    free(first);
}

static struct dt_plan gpu_plan(int cfg, int ulysses, int ring)
{
    struct dt_plan plan = case_plan(cfg, ulysses, ring);
    plan.batch = 2;
    plan.tile_kv = 64;
    plan.stages = 1;
    plan.warps = 4;
    return plan;
}

static void ulysses_and_ring_match_one_rank(void **state)
{
    (void)state;
    static const int degrees[][2] = {{2, 1}, {4, 1}, {1, 2}, {1, 3}, {2, 2}};
    struct sweep sweep;
    start(&sweep, 2);
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        struct dt_plan plan = gpu_plan(1, degrees[i][0], degrees[i][1]);
        plan.overlap = i % 2 == 0 || plan.ring > 1;
        plan.chunks = plan.ulysses == 2 ? 2 : 1;
        try_degrees(&sweep, plan);
    }
    end(&sweep);
}

static void cfg_matches_one_rank(void **state)
{
    (void)state;
    struct sweep sweep;
    start(&sweep, 2);
    try_degrees(&sweep, gpu_plan(2, 2, 1));
    try_degrees(&sweep, gpu_plan(2, 1, 2));
    end(&sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ulysses_and_ring_match_one_rank),
        cmocka_unit_test(cfg_matches_one_rank),
    };
    setenv("DITTUNE_FAKE_CUDA", "devices=8:memory=1g:delay=20:poison=64k:lt=one", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
