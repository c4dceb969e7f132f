/* SPDX-License-Identifier: MIT */
/* Streams and events: order within, none between but by events, errors that stay. */
#include "tests/fake_cuda/fake_cuda.h"

#include <cuda_runtime_api.h>
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

enum { N = 256 };

static void sleep_a_little(void *arg)
{
    usleep(*(unsigned *)arg);
}

static void streams_run_asynchronously(void **state)
{
    (void)state;
    struct gate gate;
    cudaStream_t stream;
    gate_init(&gate);
    dt_fake_cuda_set("devices=1:memory=64m:delay=0");
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamQuery(stream));
    OK(cudaLaunchHostFunc(stream, gate_wait, &gate));
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
    OK(cudaStreamDestroy(stream));
    assert_int_equal(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    OK(cudaGetLastError() == cudaErrorInvalidResourceHandle ? cudaSuccess : cudaErrorUnknown);
}

/* From pageable memory a copy has what was there at the call, from pinned memory what
 * is there when it runs. */
static void pageable_copies_read_at_the_call(void **state)
{
    (void)state;
    struct gate gate;
    int pageable = 1, *pinned, *memory, host[2];
    cudaStream_t stream;
    gate_init(&gate);
    dt_fake_cuda_set("devices=1:memory=64m:delay=0");
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMallocHost((void **)&pinned, sizeof *pinned));
    OK(cudaMalloc((void **)&memory, 2 * sizeof *memory));
    *pinned = 1;
    OK(cudaLaunchHostFunc(stream, gate_wait, &gate));
    OK(cudaMemcpyAsync(memory, &pageable, sizeof pageable, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(memory + 1, pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream));
    pageable = *pinned = 2;
    gate_open(&gate);
    OK(cudaMemcpyAsync(host, memory, sizeof host, cudaMemcpyDeviceToHost, stream));
    assert_int_equal(host[0], 1);
    assert_int_equal(host[1], 2);
    OK(cudaFree(memory));
    OK(cudaFreeHost(pinned));
    OK(cudaStreamDestroy(stream));
}

/* The second stream does not wait for the first, unless by an event. */
static void only_events_order_two_streams(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct gate gate;
        cudaStream_t a, b;
        cudaEvent_t event;
        float *memory, *host, one[N];
        gate_init(&gate);
        for (int i = 0; i < N; i++)
            one[i] = 1.0f;
        dt_fake_cuda_set("devices=1:memory=64m:delay=0");
        OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
        OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        OK(cudaMalloc((void **)&memory, sizeof one));
        OK(cudaMallocHost((void **)&host, sizeof one));
        OK(cudaMemset(memory, 0, sizeof one));
        OK(cudaDeviceSynchronize());
        OK(cudaLaunchHostFunc(a, gate_wait, &gate));
        OK(cudaMemcpyAsync(memory, one, sizeof one, cudaMemcpyHostToDevice, a));
        OK(cudaEventRecord(event, a));
        if (with)
            OK(cudaStreamWaitEvent(b, event, 0));
        OK(cudaMemcpyAsync(host, memory, sizeof one, cudaMemcpyDeviceToHost, b));
        if (!with)
            OK(cudaStreamSynchronize(b));
        else
            assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
        gate_open(&gate);
        OK(cudaDeviceSynchronize());
        assert_true(host[0] == (with ? 1.0f : 0.0f));
        (void)cudaGetLastError();
        OK(cudaEventDestroy(event));
        OK(cudaStreamDestroy(a));
        OK(cudaStreamDestroy(b));
        OK(cudaFree(memory));
        OK(cudaFreeHost(host));
    }
}

static void events_measure_time(void **state)
{
    (void)state;
    static unsigned pause = 20000;
    struct gate gate;
    cudaStream_t stream;
    cudaEvent_t from, to, plain;
    float ms = -1;
    gate_init(&gate);
    dt_fake_cuda_set("devices=1:memory=64m:delay=0");
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreate(&from));
    OK(cudaEventCreate(&to));
    OK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    OK(cudaEventQuery(from));
    assert_int_equal(cudaEventElapsedTime(&ms, from, to), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(from, stream));
    OK(cudaLaunchHostFunc(stream, gate_wait, &gate));
    OK(cudaLaunchHostFunc(stream, sleep_a_little, &pause));
    OK(cudaEventRecord(to, stream));
    OK(cudaEventRecord(plain, stream));
    assert_int_equal(cudaEventElapsedTime(&ms, from, to), cudaErrorNotReady);
    gate_open(&gate);
    OK(cudaEventSynchronize(to));
    OK(cudaEventElapsedTime(&ms, from, to));
    assert_true(ms >= 20.0f);
    OK(cudaEventSynchronize(plain));
    assert_int_equal(cudaEventElapsedTime(&ms, from, plain), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(from));
    OK(cudaEventDestroy(to));
    OK(cudaEventDestroy(plain));
    OK(cudaStreamDestroy(stream));
    (void)cudaGetLastError();
}

static void launchers_compute(void **state)
{
    (void)state;
    float *memory, host[N];
    cudaStream_t stream;
    dt_fake_cuda_set("devices=1:memory=64m");
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&memory, sizeof host));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(cudaMemcpyAsync(memory, host, sizeof host, cudaMemcpyHostToDevice, stream));
    OK(dt_launch_activation(DT_ACT_SILU, memory, N, stream));
    const struct dt_copy op = {.to = memory + 128,
                               .from = memory,
                               .count = {1, 1, 2},
                               .to_stride = {0, 0, 2},
                               .from_stride = {0, 0, 1},
                               .width = 1,
                               .element = 4};
    OK(dt_launch_copy(&op, stream));
    OK(cudaMemcpyAsync(host, memory, sizeof host, cudaMemcpyDeviceToHost, stream));
    assert_float_equal(host[2], 2.0f / (1 + 0.13533528f), 1e-6f);
    assert_true(host[128] == host[0] && host[130] == host[1] && host[129] > 128);
    assert_int_equal(dt_fake_cuda_launches(0), 2);
    OK(cudaFree(memory));
    OK(cudaStreamDestroy(stream));
}

/* A kernel that touches what is not its device's: the error shows later, and stays. */
static void an_illegal_address_is_a_sticky_error(void **state)
{
    (void)state;
    float host[N] = {0}, *memory;
    cudaStream_t stream;
    for (int planted = 0; planted < 2; planted++) {
        dt_fake_cuda_set(planted ? "devices=1:memory=64m:fault=launch,at=2,code=719"
                                 : "devices=1:memory=64m");
        int code = planted ? cudaErrorLaunchFailure : cudaErrorIllegalAddress;
        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        OK(cudaMalloc((void **)&memory, sizeof host));
        OK(dt_launch_activation(DT_ACT_SILU, memory, N, stream));
        OK(cudaStreamSynchronize(stream));
        (void)dt_launch_activation(DT_ACT_SILU, planted ? memory : memory + 1, N, stream);
        assert_int_equal(cudaStreamSynchronize(stream), code);
        assert_int_equal(cudaGetLastError(), code);
        assert_int_equal(cudaGetLastError(), code);
        assert_int_equal(cudaMalloc((void **)&memory, 1), code);
        assert_int_equal(dt_launch_activation(DT_ACT_SILU, memory, N, stream), code);
        assert_int_equal(cudaStreamQuery(stream), code);
        if (!planted)
            assert_non_null(strstr(dt_fake_cuda_complaint(), "no memory of its"));
        (void)cudaStreamDestroy(stream);
    }
}

static void refuses_a_stream_of_another_device(void **state)
{
    (void)state;
    float *memory;
    cudaStream_t stream;
    dt_fake_cuda_set("devices=2:memory=64m");
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&memory, 4));
    OK(cudaSetDevice(1));
    assert_int_equal(dt_launch_activation(DT_ACT_SILU, memory, 1, stream),
                     cudaErrorInvalidResourceHandle);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    (void)dt_launch_activation(DT_ACT_SILU, memory, 1, stream);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_non_null(strstr(dt_fake_cuda_complaint(), "no access"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_run_asynchronously),
        cmocka_unit_test(pageable_copies_read_at_the_call),
        cmocka_unit_test(only_events_order_two_streams),
        cmocka_unit_test(events_measure_time),
        cmocka_unit_test(launchers_compute),
        cmocka_unit_test(an_illegal_address_is_a_sticky_error),
        cmocka_unit_test(refuses_a_stream_of_another_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
