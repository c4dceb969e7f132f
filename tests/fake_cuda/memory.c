/* SPDX-License-Identifier: MIT */
/* Memory of fake devices: access, contents and size. */
#include "tests/fake_cuda/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static void new_memory_is_poisoned(void **state)
{
    (void)state;
    float *memory, host[4];
    dt_fake_cuda_set("devices=1:memory=64m");
    assert_int_equal(cudaMalloc((void **)&memory, sizeof host), cudaSuccess);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_int_equal(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (int i = 0; i < 4; i++)
        assert_true(isnan(host[i]));
    assert_int_equal(cudaFree(memory), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* A child that touches device memory dies of it. */
static void host_access_crashes(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        volatile char *memory;
        signal(SIGSEGV, SIG_DFL);
        dt_fake_cuda_set("devices=1:memory=64m");
        if (cudaMalloc((void **)(uintptr_t)&memory, 16) == cudaSuccess)
            memory[0] = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void free_memory_is_accounted_for(void **state)
{
    (void)state;
    void *first, *second, *third;
    size_t before, after, total;
    int value;
    struct cudaDeviceProp properties;
    dt_fake_cuda_set("devices=2:memory=64m:context=8m");
    assert_int_equal(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    assert_int_equal(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0), cudaSuccess);
    assert_int_equal(dt_fake_cuda_used(0), 0); /* no context yet */
    assert_int_equal(cudaMemGetInfo(&before, &total), cudaSuccess);
    assert_int_equal(total, 64 * MIB);
    assert_int_equal(before, 56 * MIB);
    assert_int_equal(cudaMalloc(&first, 30 * MIB + 1), cudaSuccess);
    assert_int_equal(cudaMemGetInfo(&after, &total), cudaSuccess);
    assert_int_equal(before - after, 32 * MIB);
    assert_int_equal(cudaMalloc(&second, 100), cudaSuccess);
    assert_int_equal(cudaMalloc(&third, 100), cudaSuccess);
    assert_int_equal(cudaMemGetInfo(&after, &total), cudaSuccess);
    assert_int_equal(before - after, 34 * MIB);
    assert_int_equal(dt_fake_cuda_blocks(0), 3);
    void *none = NULL;
    assert_int_equal(cudaMalloc(&none, 30 * MIB), cudaErrorMemoryAllocation);
    assert_null(none);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaMalloc(&none, 30 * MIB), cudaSuccess);
    assert_int_equal(cudaFree(none), cudaSuccess);
    assert_int_equal(cudaFree(first), cudaSuccess);
    assert_int_equal(cudaFree(second), cudaSuccess);
    assert_int_equal(cudaFree(third), cudaSuccess);
    assert_int_equal(dt_fake_cuda_used(0), 8 * MIB);
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
}

static void copies_are_checked(void **state)
{
    (void)state;
    char *memory, host[64] = "";
    dt_fake_cuda_set("devices=1:memory=64m");
    assert_int_equal(cudaMalloc((void **)&memory, 64), cudaSuccess);
    assert_int_equal(cudaMemcpy(memory, host, 65, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(memory + 1, host, 64, cudaMemcpyHostToDevice),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, memory, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(memory, host, 64, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(cudaMemset(memory, 1, 65), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

/* Memory that another process allocated is not free here, until that process has ended. */
static void memory_of_other_processes_is_counted(void **state)
{
    (void)state;
    char box[64], settings[128], byte = 0;
    int ready[2], go[2];
    snprintf(box, sizeof box, "/tmp/fake-cuda-box-%d", (int)getpid());
    snprintf(settings, sizeof settings, "devices=1:memory=64m:context=0:box=%s", box);
    assert_int_equal(pipe(ready) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        void *memory;
        dt_fake_cuda_set(settings);
        bool ok = cudaMalloc(&memory, 40 * MIB) == cudaSuccess && write(ready[1], "x", 1) == 1;
        if (ok && read(go[0], &byte, 1) == 1)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    size_t left, total;
    void *memory;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    dt_fake_cuda_set(settings);
    assert_int_equal(cudaMemGetInfo(&left, &total), cudaSuccess);
    assert_int_equal(left, 24 * MIB);
    assert_int_equal(cudaMalloc(&memory, 30 * MIB), cudaErrorMemoryAllocation);
    assert_int_equal(write(go[1], "x", 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(cudaMalloc(&memory, 30 * MIB), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
    dt_fake_cuda_set("devices=1");
    unlink(box);
    close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
}

/* A child of a process that has used its devices has none. */
static void a_forked_child_has_no_devices(void **state)
{
    (void)state;
    void *memory;
    dt_fake_cuda_set("devices=1:memory=64m");
    assert_int_equal(cudaMalloc(&memory, 1), cudaSuccess);
    pid_t child = fork();
    if (child == 0)
        _exit(cudaMalloc(&memory, 1) == cudaErrorInitializationError ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

static void zero_devices_are_reported(void **state)
{
    (void)state;
    int count = -1, version = -1;
    void *memory;
    dt_fake_cuda_set("devices=0");
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorNoDevice);
    dt_fake_cuda_set("driver=0");
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    assert_int_equal(count, 0);
    assert_int_equal(cudaDriverGetVersion(&version), cudaSuccess);
    assert_int_equal(version, 0);
    dt_fake_cuda_set("driver=12080");
    assert_int_equal(cudaMalloc(&memory, 1), cudaErrorInsufficientDriver);
}

static void planted_faults_strike_once(void **state)
{
    (void)state;
    void *memory[3];
    dt_fake_cuda_set("devices=2:memory=64m:fault=cudaMalloc,at=2,code=2,device=0");
    assert_int_equal(cudaMalloc(&memory[0], 1), cudaSuccess);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaMalloc(&memory[1], 1), cudaSuccess);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaMalloc(&memory[2], 1), cudaErrorMemoryAllocation);
    assert_int_equal(cudaMalloc(&memory[2], 1), cudaSuccess);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cudaFree(memory[i]), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_access_crashes), /* forks, so it stands before the first call */
        cmocka_unit_test(memory_of_other_processes_is_counted),
        cmocka_unit_test(new_memory_is_poisoned),
        cmocka_unit_test(free_memory_is_accounted_for),
        cmocka_unit_test(copies_are_checked),
        cmocka_unit_test(a_forked_child_has_no_devices),
        cmocka_unit_test(zero_devices_are_reported),
        cmocka_unit_test(planted_faults_strike_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
