/* SPDX-License-Identifier: MIT */
/* Captures and graphs: work they run, and calls they refuse. */
#include "tests/fake_cuda/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/cuda/launch.h"
#include "tests/fake_cuda/gate.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

struct world {
    cudaStream_t main, side;
    cudaEvent_t fork, join;
    float *memory;
};

static void open_world(struct world *w, const char *settings)
{
    dt_fake_cuda_set(settings);
    OK(cudaStreamCreateWithFlags(&w->main, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&w->side, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&w->fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&w->join, cudaEventDisableTiming));
    OK(cudaMalloc((void **)&w->memory, 64 * sizeof(float)));
}

static void close_world(struct world *w)
{
    (void)cudaGetLastError();
    OK(cudaDeviceSynchronize());
    OK(cudaFree(w->memory));
    OK(cudaEventDestroy(w->fork));
    OK(cudaEventDestroy(w->join));
    OK(cudaStreamDestroy(w->main));
    OK(cudaStreamDestroy(w->side));
}

static void copy(const struct world *w, int to, int from, cudaStream_t stream)
{
    OK(cudaMemcpyAsync(w->memory + to, w->memory + from, sizeof(float), cudaMemcpyDeviceToDevice,
                       stream));
}

static float get(const struct world *w, int at)
{
    float value;
    OK(cudaMemcpyAsync(&value, w->memory + at, sizeof value, cudaMemcpyDeviceToHost, w->main));
    return value;
}

static void put(const struct world *w, int at, float value)
{
    OK(cudaMemcpyAsync(w->memory + at, &value, sizeof value, cudaMemcpyHostToDevice, w->main));
}

static cudaGraphExec_t made(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void sleep_a_little(void *arg)
{
    usleep(*(unsigned *)arg);
}

/* 0 -> 1 on main, 1 -> 2 on the side, 2 -> 3 on main, the side always late: nothing runs
 * while it is captured. */
static void captures_a_fork_and_its_join(void **state)
{
    (void)state;
    static unsigned pause = 3000;
    struct world w;
    open_world(&w, "devices=1:memory=64m:seed=3");
    put(&w, 3, -1.0f);
    OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
    copy(&w, 1, 0, w.main);
    OK(cudaEventRecord(w.fork, w.main));
    OK(cudaStreamWaitEvent(w.side, w.fork, 0));
    OK(cudaLaunchHostFunc(w.side, sleep_a_little, &pause));
    copy(&w, 2, 1, w.side);
    OK(cudaEventRecord(w.join, w.side));
    OK(cudaStreamWaitEvent(w.main, w.join, 0));
    copy(&w, 3, 2, w.main);
    cudaGraphExec_t exec = made(w.main);
    assert_true(get(&w, 3) == -1.0f);
    for (int i = 1; i <= 20; i++) {
        put(&w, 0, (float)i);
        OK(cudaGraphLaunch(exec, w.main));
        assert_true(get(&w, 3) == (float)i);
    }
    OK(cudaGraphLaunch(exec, w.main)); /* destroyed while it runs: it still ends */
    OK(cudaGraphExecDestroy(exec));
    close_world(&w);
}

/* The side waits for an event that comes before what it reads: so it reads too early, which the
 * main stream waits for. */
static void a_missing_wait_shows_in_the_result(void **state)
{
    (void)state;
    struct world w;
    struct gate gate;
    gate_init(&gate);
    open_world(&w, "devices=1:memory=64m:delay=0");
    OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(w.fork, w.main)); /* before what the side needs */
    OK(cudaLaunchHostFunc(w.main, gate_wait, &gate));
    copy(&w, 1, 0, w.main);
    OK(cudaStreamWaitEvent(w.side, w.fork, 0));
    copy(&w, 2, 1, w.side);
    OK(cudaLaunchHostFunc(w.side, gate_open, &gate));
    OK(cudaEventRecord(w.join, w.side));
    OK(cudaStreamWaitEvent(w.main, w.join, 0));
    cudaGraphExec_t exec = made(w.main);
    put(&w, 0, 7.0f);
    put(&w, 1, 1.0f);
    OK(cudaGraphLaunch(exec, w.main));
    assert_true(get(&w, 2) == 1.0f);
    OK(cudaGraphExecDestroy(exec));
    close_world(&w);
}

static void attempt_synchronize(struct world *w)
{
    assert_int_equal(cudaStreamSynchronize(w->main), cudaErrorStreamCaptureUnsupported);
}

static void attempt_device(struct world *w)
{
    (void)w;
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
}

static void attempt_malloc(struct world *w)
{
    void *memory;
    (void)w;
    assert_int_equal(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
}

static void attempt_query(struct world *w)
{
    assert_int_equal(cudaStreamQuery(w->main), cudaErrorStreamCaptureUnsupported);
}

static void attempt_other_query(struct world *w)
{
    assert_int_equal(cudaEventQuery(w->join), cudaErrorStreamCaptureUnsupported);
}

static void attempt_pageable(struct world *w)
{
    float value = 0;
    assert_int_equal(
        cudaMemcpyAsync(w->memory, &value, sizeof value, cudaMemcpyHostToDevice, w->main),
        cudaErrorStreamCaptureUnsupported);
}

static void attempt_foreign_event(struct world *w)
{
    OK(cudaEventRecord(w->join, w->side)); /* the side does not take part */
    assert_int_equal(cudaStreamWaitEvent(w->main, w->join, 0), cudaErrorStreamCaptureIsolation);
}

static void refuses_calls_that_cannot_be_captured(void **state)
{
    (void)state;
    static void (*const attempts[])(struct world *) = {
        attempt_synchronize, attempt_device,   attempt_malloc,       attempt_query,
        attempt_other_query, attempt_pageable, attempt_foreign_event};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        struct world w;
        cudaGraph_t graph;
        open_world(&w, "devices=1:memory=64m");
        OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
        copy(&w, 1, 0, w.main);
        attempts[i](&w);
        assert_int_equal(cudaMemsetAsync(w.memory, 0, 4, w.main),
                         cudaErrorStreamCaptureInvalidated);
        assert_int_equal(cudaStreamEndCapture(w.main, &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
        close_world(&w);
    }
}

static void an_invalid_capture_ends_with_an_error(void **state)
{
    (void)state;
    struct world w;
    cudaGraph_t graph;
    open_world(&w, "devices=1:memory=64m");
    OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(w.fork, w.main));
    OK(cudaStreamWaitEvent(w.side, w.fork, 0));
    copy(&w, 2, 1, w.side);
    assert_int_equal(cudaStreamEndCapture(w.main, &graph), cudaErrorStreamCaptureUnjoined);
    assert_int_equal(cudaEventQuery(w.fork), cudaErrorCapturedEvent);
    OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
    OK(cudaEventRecord(w.fork, w.main));
    OK(cudaStreamWaitEvent(w.side, w.fork, 0));
    assert_int_equal(cudaStreamEndCapture(w.side, &graph), cudaErrorStreamCaptureUnmatched);
    assert_int_equal(cudaStreamEndCapture(w.main, &graph), cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamQuery(w.main));
    close_world(&w);
}

/* An exchange is captured like the rest, and runs with each launch. */
static void exchanges_are_captured(void **state)
{
    (void)state;
    struct world w;
    ncclComm_t comm;
    ncclUniqueId id;
    open_world(&w, "devices=1:memory=64m");
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    OK(cudaStreamBeginCapture(w.main, cudaStreamCaptureModeThreadLocal));
    assert_int_equal(ncclAlltoAll(w.memory, w.memory + 8, 8, ncclFloat32, comm, w.main),
                     ncclSuccess);
    OK(dt_launch_activation(DT_ACT_SILU, w.memory + 8, 1, w.main));
    cudaGraphExec_t exec = made(w.main);
    for (int i = 0; i < 3; i++) {
        put(&w, 0, (float)i * 100.0f);
        OK(cudaGraphLaunch(exec, w.main));
        assert_true(get(&w, 8) == (float)i * 100.0f);
    }
    assert_int_equal(dt_fake_cuda_launches(0), 3);
    OK(cudaGraphExecDestroy(exec));
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    close_world(&w);
    assert_string_equal(dt_fake_cuda_posted(0), "alltoall comm=0 >0:8x7 <0:8x7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_a_fork_and_its_join),
        cmocka_unit_test(a_missing_wait_shows_in_the_result),
        cmocka_unit_test(refuses_calls_that_cannot_be_captured),
        cmocka_unit_test(an_invalid_capture_ends_with_an_error),
        cmocka_unit_test(exchanges_are_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
