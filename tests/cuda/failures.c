/* SPDX-License-Identifier: MIT */
/* ctest: dose early slow */
/* Every call to CUDA fails once, in turn (DITTUNE_DOSE=full: each with each of three errors;
 * else one in 8 with one of them; under a sanitizer in the plain run one in 20), while a
 * network is made, run, recorded, replayed and read: each time there is a status and one
 * sentence, nothing crashes and no device memory is left. Sticky errors, memory that is short,
 * recordings that are spoilt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"
#include "tests/cuda/network.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/lib/dose.h"

static dt_status run_pass(struct dt_device *gpu, struct dt_comm *comm)
{
    struct dt_workload workload = network_workload(DT_FLOAT32);
    struct dt_plan plan = network_plan(1, 1, 1);
    struct dt_weights *weights = NULL;
    struct dt_pass *pass = NULL;
    double norm[1], projections[2];
    workload.network.hidden = 64;
    workload.network.heads = 1;
    workload.network.depth = 1;
    workload.height = workload.width = 4;
    dt_status status = dt_weights_new(&workload, gpu, &weights);
    if (status == DT_OK)
        status = dt_pass_new(&workload, &plan, weights, comm, &pass);
    for (int i = 0; i < 3 && status == DT_OK; i++)
        status = dt_pass_step(pass, NULL);
    if (status == DT_OK)
        status = dt_pass_verify(pass, 1, 2, norm, projections);
    dt_pass_free(pass);
    dt_weights_free(weights);
    return status;
}

/* Runs operations that a network does not use: recordings, narrow layers, marks and rates. */
static dt_status run_rest(struct dt_device *gpu)
{
    const struct dt_linear_shape shape = {.rows = 4, .in = 64, .out = 64, .act = DT_ACT_GELU};
    const struct dt_compute *compute = gpu->compute;
    struct dt_linear *linear = NULL;
    struct dt_graph *graph = NULL;
    void *memory = NULL;
    double hz;
    int64_t ns[2];
    dt_status status = compute->memory.alloc(gpu, 1 << 20, &memory);
    if (status != DT_OK)
        return status;
    char *at = memory;
    compute->memory.fill(gpu, memory, 0, 1 << 20);
    const struct dt_linear_call call = {at, at + 4096, (float *)memory, at + 65536};
    status = compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear);
    if (status == DT_OK)
        compute->linear.apply(gpu, linear, &call);
    if (status == DT_OK)
        status = compute->graph.record(gpu);
    if (status == DT_OK) {
        compute->linear.apply(gpu, linear, &call);
        status = compute->graph.recorded(gpu, &graph);
    }
    if (status == DT_OK) {
        compute->timeline.mark(gpu, 0);
        compute->timeline.clock(gpu, 0);
        compute->graph.replay(gpu, graph);
        compute->timeline.clock(gpu, 1);
        compute->timeline.mark(gpu, 1);
        status = compute->finish(gpu, soon(), NULL, NULL);
    }
    if (status == DT_OK)
        status = compute->timeline.times(gpu, 2, ns);
    if (status == DT_OK)
        status = compute->timeline.clock_rate(gpu, &hz);
    compute->graph.free(gpu, graph);
    compute->linear.free(linear);
    compute->memory.release(gpu, memory);
    return status;
}

static dt_status run_all(void)
{
    struct dt_device *gpu = NULL;
    struct dt_comm *comm = NULL;
    DT_TRY(dt_compute_cuda.open(0, &gpu));
    dt_status status = dt_comm_self(&comm);
    if (status == DT_OK)
        status = run_pass(gpu, comm);
    if (status == DT_OK)
        status = run_rest(gpu);
    dt_comm_free(comm);
    dt_compute_cuda.close(gpu);
    return status;
}

/* A failure while freeing memory has no status, since it changes nothing. */
static void check(int at, int code, dt_status status, int *silent)
{
    const char *message = dt_message();
    bool lost = code == 700, short_of = code == 2;
    if (status == DT_OK) {
        ++*silent;
        return;
    }
    if (status != DT_ELIB && status != DT_ENOMEM && status != DT_EUNSUP)
        fail_msg("call %d, error %d: status %d (%s)", at, code, status, message);
    if (message[0] == '\0' || strchr(message, '\n') != NULL)
        fail_msg("call %d, error %d: the sentence is '%s'", at, code, message);
    if (lost && status == DT_ELIB && strstr(message, "GPU") == NULL &&
        strstr(message, "cuBLASLt") == NULL)
        fail_msg("call %d, error %d: '%s' names no GPU", at, code, message);
    if (short_of && status == DT_ELIB && strstr(message, "cuBLASLt") == NULL)
        fail_msg("call %d: out of memory became '%s'", at, message);
}

static int fail_each(int code, int first, int step)
{
    int silent = 0, at = first;
    for (;; at += step) {
        char settings[128];
        snprintf(settings, sizeof settings,
                 "devices=1:delay=0:poison=64k:lt=one:fault=any,at=%d,code=%d", at, code);
        dt_fake_cuda_set(settings);
        dt_status status = run_all();
        if (dt_fake_cuda_fired() == 0) {
            assert_int_equal(status, DT_OK);
            break;
        }
        check(at, code, status, &silent);
        /* A cudaFree that fails frees nothing. */
        if (dt_fake_cuda_blocks(0) > (status == DT_OK ? 1 : 0))
            fail_msg("call %d, error %d: %d blocks are left, after '%s'", at, code,
                     dt_fake_cuda_blocks(0), dt_message());
        assert_string_equal(dt_fake_cuda_complaint(), "");
    }
    print_message("error %d: %d calls, %d of them without a status\n", code, (at - first) / step,
                  silent);
    return at - 1;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    static const int codes[] = {1, 2, 700}; /* invalid value, memory allocation, illegal address */
    int step = dose_full() ? 1 : dose_thin() ? 60 : 24;
    for (int i = 0; i < 3; i++)
        assert_true(fail_each(codes[i], step > 1 ? 1 + i : 1, step) > 200);
}

static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    struct dt_device *gpu = NULL;
    void *memory = NULL, *more = NULL;
    char byte;
    dt_fake_cuda_set("devices=1:fault=launch,at=3,code=700");
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 4096, &memory), DT_OK);
    for (int i = 0; i < 20; i++)
        gpu->compute->rows.sum(gpu, memory, 2048, memory);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_ELIB);
    assert_non_null(strstr(dt_message(), "the device is lost"));
    assert_non_null(strstr(dt_message(), "cudaErrorIllegalAddress"));
    assert_int_equal(gpu->compute->memory.alloc(gpu, 4096, &more), DT_ELIB);
    assert_non_null(strstr(dt_message(), "the device is lost"));
    assert_int_equal(gpu->compute->memory.get(gpu, &byte, memory, 1), DT_ELIB);
    assert_int_equal(gpu->compute->memory.put(gpu, memory, &byte, 1), DT_ELIB);
    assert_int_equal(gpu->compute->graph.record(gpu), DT_ELIB);
    int64_t launches = dt_fake_cuda_launches(0);
    gpu->compute->rows.sum(gpu, memory, 2048, memory);
    assert_int_equal(dt_fake_cuda_launches(0), launches);
    assert_int_equal(gpu->compute->finish(gpu, 0, NULL, NULL), DT_ELIB);
    gpu->compute->memory.release(gpu, memory);
    gpu->compute->close(gpu);
}

/* A step that ran out of memory is reported once, and the next may run. */
static void running_out_of_memory_is_temporary(void **state)
{
    (void)state;
    struct dt_device *gpu = NULL;
    void *memory = NULL;
    dt_fake_cuda_set("devices=1:fault=dt_launch_sum,at=2,code=2");
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 4096, &memory), DT_OK);
    for (int i = 0; i < 3; i++)
        gpu->compute->rows.sum(gpu, memory, 2048, memory);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_ENOMEM);
    assert_non_null(strstr(dt_message(), "add up words"));
    gpu->compute->rows.sum(gpu, memory, 2048, memory);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    gpu->compute->memory.release(gpu, memory);
    gpu->compute->close(gpu);
    assert_int_equal(dt_fake_cuda_blocks(0), 0);
}

/* A plan that does not fit costs nothing but itself. */
static void a_plan_too_large_leaves_room(void **state)
{
    (void)state;
    struct dt_workload workload = network_workload(DT_FLOAT32);
    struct dt_plan plan = network_plan(1, 1, 1);
    struct dt_device *gpu = NULL;
    struct dt_weights *weights = NULL;
    struct dt_pass *pass = NULL;
    struct dt_comm *comm = NULL;
    dt_fake_cuda_set("devices=1:memory=150m");
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_OK);
    assert_int_equal(dt_comm_self(&comm), DT_OK);
    assert_int_equal(dt_weights_new(&workload, gpu, &weights), DT_OK);
    int blocks = dt_fake_cuda_blocks(0);
    plan.batch = 1000;
    assert_int_equal(dt_pass_new(&workload, &plan, weights, comm, &pass), DT_ENOMEM);
    assert_non_null(strstr(dt_message(), "bytes on GPU 0"));
    assert_int_equal(dt_fake_cuda_blocks(0), blocks);
    plan.batch = 1;
    assert_int_equal(dt_pass_new(&workload, &plan, weights, comm, &pass), DT_OK);
    assert_int_equal(dt_pass_step(pass, NULL), DT_OK);
    dt_pass_free(pass);
    dt_weights_free(weights);
    dt_comm_free(comm);
    gpu->compute->close(gpu);
    assert_int_equal(dt_fake_cuda_blocks(0), 0);
}

/* An operation that cannot be captured invalidates only the capture. */
static void a_failed_capture_harms_nothing_else(void **state)
{
    (void)state;
    struct dt_device *gpu = NULL;
    struct dt_graph *graph = NULL;
    void *memory = NULL, *more = NULL;
    dt_fake_cuda_set("devices=1");
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 4096, &memory), DT_OK);
    assert_int_equal(gpu->compute->graph.record(gpu), DT_OK);
    gpu->compute->rows.sum(gpu, memory, 2048, memory);
    dt_status status = gpu->compute->memory.alloc(gpu, 4096, &more);
    gpu->compute->rows.sum(gpu, memory, 2048, memory);
    dt_status end = gpu->compute->graph.recorded(gpu, &graph);
    assert_true(status != DT_OK || end == DT_OK);
    if (end != DT_OK)
        assert_null(graph);
    gpu->compute->graph.free(gpu, graph);
    gpu->compute->rows.sum(gpu, memory, 2048, memory);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    gpu->compute->memory.release(gpu, memory);
    gpu->compute->memory.release(gpu, more);
    gpu->compute->close(gpu);
    assert_int_equal(dt_fake_cuda_blocks(0), 0);
}

/* Work that never ends is waited for only once, and its memory is kept to
 * the end of the process. */
static void a_hung_device_is_waited_for_once(void **state)
{
    (void)state;
    struct dt_device *gpu = NULL;
    void *memory = NULL;
    char byte = 0;
    dt_status status = DT_OK;
    dt_fake_cuda_set("devices=1:fault=launch,at=2,do=hang");
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 4096, &memory), DT_OK);
    for (int i = 0; i < 3; i++)
        gpu->compute->rows.sum(gpu, memory, 2048, memory);
    int64_t deadline = dt_clock_ns() + DT_NS_PER_SECOND / 10;
    assert_int_equal(gpu->compute->finish(gpu, deadline, NULL, NULL), DT_ETIMEOUT);
    assert_non_null(strstr(dt_message(), "add up words"));
    for (int i = 0; i < 20 && status == DT_OK; i++)
        status = gpu->compute->memory.put(gpu, memory, &byte, 1);
    assert_int_equal(status, DT_ETIMEOUT);
    assert_int_equal(gpu->compute->memory.get(gpu, &byte, memory, 1), DT_ETIMEOUT);
    gpu->compute->memory.release(gpu, memory);
    gpu->compute->close(gpu);
    assert_true(dt_fake_cuda_blocks(0) > 0);
}

static void a_missing_gpu_is_reported(void **state)
{
    (void)state;
    struct dt_device *gpu = NULL;
    dt_fake_cuda_set("devices=0");
    assert_false(dt_compute_cuda.usable(DT_FLOAT32));
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "no CUDA-capable device"));
    dt_fake_cuda_set("devices=1:driver=11000");
    assert_false(dt_compute_cuda.usable(DT_FLOAT32));
    assert_int_equal(dt_compute_cuda.open(0, &gpu), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "driver"));
    dt_fake_cuda_set("devices=1:major=7");
    assert_false(dt_compute_cuda.usable(DT_BFLOAT16));
    assert_null(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(running_out_of_memory_is_temporary),
        cmocka_unit_test(a_plan_too_large_leaves_room),
        cmocka_unit_test(a_failed_capture_harms_nothing_else),
        cmocka_unit_test(a_missing_gpu_is_reported),
        cmocka_unit_test(a_hung_device_is_waited_for_once), /* the last: it hangs to the end */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
