/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* A resident plan: no allocation in a step, phases that add up, projections that estimate, files
 * that come back, plans that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/safetensors.h"
#include "tests/kernels/case.h"
#include "tests/lib/sanitized.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <unistd.h>

#ifndef SANITIZED
/* The C library calls these for every allocation of the program and its libraries. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
static atomic_int counting, allocations;
static atomic_llong allocated;

/* Counts this program's own allocations, not those of libraries: OpenBLAS takes a table of jobs for
 * each product it splits among threads, LLVM's OpenMP one for each team, and they give it back. */
static void count(size_t size, const void *caller)
{
    Dl_info where, own;
    if (counting == 0)
        return;
    counting = 0; /* dladdr may allocate */
    if (dladdr(caller, &where) != 0 && dladdr(&counting, &own) != 0 &&
        where.dli_fbase == own.dli_fbase) {
        allocated += (long long)size;
        allocations++;
    }
    counting = 1;
}

void *malloc(size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(n * size, __builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    count(size, __builtin_return_address(0));
    return __libc_memalign(align, size);
}
#endif

/* Resident, a plan takes what was predicted and a few tables, besides the largest weight while it
 * is packed; a step takes nothing. */
static void expect_allocations(struct dt_plan plan)
{
#ifdef SANITIZED
    (void)plan;
    skip();
#else
    struct dt_workload workload = case_workload(4, 16, 16, 16);
    struct dt_weights *weights = NULL;
    struct dt_comm *comm = NULL;
    struct dt_pass *pass = NULL;
    struct dt_device *device = case_device();
    assert_int_equal(dt_comm_self(&comm), DT_OK);
    allocations = 0;
    allocated = 0;
    counting = 1;
    assert_int_equal(dt_weights_new(&workload, device, &weights), DT_OK);
    assert_int_equal(dt_pass_new(&workload, &plan, weights, comm, &pass), DT_OK);
    counting = 0;
    const long long largest = 6LL * 64 * 64 * 4, timeline = 16 * DT_MARKS_MOST;
    assert_in_range(allocated - largest - timeline - dt_workload_rank_bytes(&workload, &plan), 0,
                    32768);
    assert_true(allocations > 2);
    allocations = 0;
    counting = 1;
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_pass_step(pass, NULL), DT_OK);
    counting = 0;
    assert_int_equal(allocations, 0);
    dt_pass_free(pass);
    dt_weights_free(weights);
    dt_comm_free(comm);
#endif
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 1, 1);
    expect_allocations(plan);
    plan.batch = 3;
    plan.chunks = 2;
    plan.threads = 2;
    expect_allocations(plan);
}

static void phases_add_up(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(4, 16, 16, 16);
    struct dt_plan plan = case_plan(2, 2, 2);
    struct dt_weights *weights = NULL;
    struct dt_phases *phases = calloc(1, sizeof *phases);
    float *out = calloc((size_t)case_image(&workload), sizeof *out);
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct case_run run = {.workload = &workload,
                           .plan = &plan,
                           .weights = weights,
                           .steps = 3,
                           .out = out,
                           .phases = phases};
    assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
    int64_t sum = 0, blocks = 0;
    assert_int_equal(phases->kind_ns[DT_PHASE_IDLE], 0);
    for (int i = 0; i < DT_PHASE_IDLE; i++) {
        assert_true(phases->kind_ns[i] > 0);
        sum += phases->kind_ns[i];
    }
    assert_int_equal(sum, phases->step_ns);
    for (int i = 0; i < DT_BLOCK_KINDS; i++) {
        assert_int_equal(phases->block_count[i], i == DT_BLOCK_BLOCK ? 6 : 3);
        for (int j = 0; j < phases->block_count[i]; j++)
            blocks += phases->block_ns[i][j];
    }
    assert_int_equal(blocks, phases->step_ns);
    assert_true(phases->exchange_in_flight_ns > 0);
    /* [N=1] per block: 16 tokens x 3C out and 16 x C back to one peer, one rotation of K and V of
     * 32 tokens x C/2; then the partner's eps, once a step */
    int64_t a_block = 16 * 3 * 32 + 16 * 32 + 2 * 32 * 32, eps = 16 * 2 * 2 * 3;
    assert_int_equal(phases->exchange_bytes, 3 * (2 * a_block + eps) * (int64_t)sizeof(float));
    dt_weights_free(weights);
    free(phases);
    free(out);
}

/* sqrt(mean (p_a - p_b)^2) is ||a - b||: one resident plan before and after a step of
 * its trajectory. The estimate from K projections has a relative standard deviation
 * of about 1/sqrt(2K). */
static void projections_estimate_distances(void **state)
{
    (void)state;
    enum { K = 256, BATCH = 2 };
    struct dt_workload workload = case_workload(2, 8, 8, 8);
    struct dt_plan plan = case_plan(1, 1, 1);
    struct dt_weights *weights = NULL;
    struct dt_comm *comm = NULL;
    struct dt_pass *pass = NULL;
    int64_t size = case_image(&workload);
    float *a = calloc((size_t)(BATCH * size), sizeof *a),
          *b = calloc((size_t)(BATCH * size), sizeof *b);
    static double norm[2][BATCH], projections[2][BATCH * K];
    plan.batch = BATCH;
    assert_int_equal(dt_comm_self(&comm), DT_OK);
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    assert_int_equal(dt_pass_new(&workload, &plan, weights, comm, &pass), DT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dt_pass_step(pass, NULL), DT_OK);
        assert_int_equal(dt_pass_output(pass, i == 0 ? a : b), DT_OK);
        assert_int_equal(dt_pass_verify(pass, 9, K, norm[i], projections[i]), DT_OK);
    }
    for (int i = 0; i < BATCH; i++) {
        double own = 0.0, sum = 0.0, distance = 0.0, estimate = 0.0;
        for (int64_t e = i * size; e < (i + 1) * size; e++) {
            sum += (double)a[e] * (double)a[e];
            distance += pow((double)a[e] - (double)b[e], 2);
        }
        for (int k = i * K; k < (i + 1) * K; k++) {
            own += pow(projections[0][k], 2) / K;
            estimate += pow(projections[0][k] - projections[1][k], 2) / K;
        }
        assert_true(fabs(norm[0][i] - sqrt(sum)) < 1e-9 * sqrt(sum));
        assert_true(fabs(sqrt(own) / norm[0][i] - 1.0) < 0.2);
        assert_true(distance > 0.0);
        assert_true(fabs(sqrt(estimate / distance) - 1.0) < 0.2);
    }
    /* back at the first step the same numbers come again, to the bit */
    dt_pass_reset(pass);
    assert_int_equal(dt_pass_step(pass, NULL), DT_OK);
    assert_int_equal(dt_pass_output(pass, b), DT_OK);
    assert_memory_equal(a, b, (size_t)(BATCH * size) * sizeof *a);
    dt_pass_free(pass);
    dt_weights_free(weights);
    dt_comm_free(comm);
    free(a);
    free(b);
}

/* The trajectory starts again after its last step. */
static void trajectories_restart(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(2, 8, 8, 8);
    struct dt_plan plan = case_plan(1, 1, 1);
    struct dt_weights *weights = NULL;
    size_t size = (size_t)case_image(&workload);
    float *first = calloc(size, sizeof *first), *again = calloc(size, sizeof *again);
    workload.sampler_steps = 3;
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct case_run run = {
        .workload = &workload, .plan = &plan, .weights = weights, .steps = 2, .out = first};
    assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
    run.steps = 5;
    run.out = again;
    assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
    assert_memory_equal(first, again, size * sizeof *first);
    dt_weights_free(weights);
    free(first);
    free(again);
}

static void output_is_written(void **state)
{
    (void)state;
    char path[] = "/tmp/dt-out-XXXXXX";
    int fd = mkstemp(path);
    struct dt_workload workload = case_workload(2, 8, 8, 8);
    struct dt_plan plan = case_plan(1, 1, 1);
    struct dt_weights *weights = NULL;
    struct dt_comm *comm = NULL;
    struct dt_pass *pass = NULL;
    struct dt_safetensors *file = NULL;
    size_t size = (size_t)case_image(&workload);
    float *out = calloc(size, sizeof *out);
    const void *data = NULL;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(dt_comm_self(&comm), DT_OK);
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    assert_int_equal(dt_pass_new(&workload, &plan, weights, comm, &pass), DT_OK);
    assert_int_equal(dt_pass_step(pass, NULL), DT_OK);
    assert_int_equal(dt_pass_output(pass, out), DT_OK);
    assert_int_equal(dt_pass_write(pass, path), DT_OK);
    assert_int_equal(dt_safetensors_open(path, &file), DT_OK);
    const struct dt_safetensor expect = {"out", "F32", 4, {1, 6, 8, 8}, NULL, 0};
    assert_int_equal(dt_safetensors_get(file, &expect, &data), DT_OK);
    assert_memory_equal(data, out, size * sizeof *out);
    assert_int_equal(dt_pass_write(pass, "/nowhere/at/all"), DT_EIO);
    dt_safetensors_close(file);
    dt_pass_free(pass);
    dt_weights_free(weights);
    dt_comm_free(comm);
    free(out);
    unlink(path);
}

static void expect_refused(struct dt_plan plan, dt_status code, const char *say)
{
    struct dt_workload workload = case_workload(4, 8, 8, 8);
    struct dt_weights *weights = NULL;
    struct dt_fake *fake = NULL;
    struct case_run run = {.workload = &workload, .plan = &plan};
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    run.weights = weights;
    assert_int_equal(dt_fake_new(1, &(struct dt_fake_options){0}, &fake), DT_OK);
    assert_int_equal(case_body(dt_fake_comm(fake, 0), &run), code);
    if (strstr(dt_message(), say) == NULL)
        fail_msg("'%s' does not say '%s'", dt_message(), say);
    dt_fake_free(fake);
    dt_weights_free(weights);
}

static void illegal_plans_are_refused(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 3, 1);
    expect_refused(plan, DT_EUSAGE, "ranks=3, but the group has 1");
    plan = case_plan(1, 1, 1);
    plan.tile_q = 33;
    expect_refused(plan, DT_EUNSUP, "tile_q=33");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(phases_add_up),
        cmocka_unit_test(projections_estimate_distances),
        cmocka_unit_test(trajectories_restart),
        cmocka_unit_test(output_is_written),
        cmocka_unit_test(illegal_plans_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
