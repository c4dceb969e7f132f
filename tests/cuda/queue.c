/* SPDX-License-Identifier: MIT */
/* A GPU's queue: memory there and back, waiting with a deadline, marks, what was
 * recorded and is run again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"

static struct dt_device *gpu;

/* More than one slot, more than all of them, and no multiple of either; the host's memory is
 * overwritten once put returns. */
static void copies_return_what_was_sent(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 255, 4 << 20, (16 << 20) + 3, (21 << 20) + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t n = sizes[i];
        void *memory = NULL;
        unsigned char *host = malloc((size_t)n), *back = malloc((size_t)n);
        assert_non_null(host);
        assert_non_null(back);
        for (int64_t k = 0; k < n; k++)
            host[k] = (unsigned char)(k * 31 + k / 251);
        assert_int_equal(gpu->compute->memory.alloc(gpu, n, &memory), DT_OK);
        assert_int_equal((uintptr_t)memory % 256, 0);
        gpu->compute->memory.fill(gpu, memory, 0xab, n);
        assert_int_equal(gpu->compute->memory.put(gpu, memory, host, n), DT_OK);
        memset(host, 0, (size_t)n);
        assert_int_equal(gpu->compute->memory.get(gpu, back, memory, n), DT_OK);
        for (int64_t k = 0; k < n; k++)
            if (back[k] != (unsigned char)(k * 31 + k / 251))
                fail_msg("byte %lld of %lld", (long long)k, (long long)n);
        gpu->compute->memory.release(gpu, memory);
        free(host);
        free(back);
    }
    gpu->compute->memory.release(gpu, NULL);
}

static void too_much_is_out_of_memory(void **state)
{
    (void)state;
    void *memory = NULL;
    assert_int_equal(gpu->compute->memory.alloc(gpu, 1LL << 50, &memory), DT_ENOMEM);
    assert_non_null(strstr(dt_message(), "1125899906842624 bytes"));
    assert_null(memory);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 1024, &memory), DT_OK);
    gpu->compute->memory.release(gpu, memory);
}

static void an_unknown_gpu_is_refused(void **state)
{
    (void)state;
    struct dt_device *none = NULL;
    assert_int_equal(dt_compute_cuda.open(999, &none), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "999"));
    assert_int_equal(dt_compute_cuda.open(-1, &none), DT_EUNSUP);
    assert_null(none);
    dt_compute_cuda.close(NULL);
}

static void marks_are_in_order(void **state)
{
    (void)state;
    enum { MARKS = 700, N = 4096 };
    int64_t ns[MARKS];
    void *memory = array_new(gpu, DT_FLOAT32, NULL, N);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MARKS; i++) {
            gpu->compute->timeline.mark(gpu, i);
            gpu->compute->memory.fill(gpu, memory, i & 0xff, N);
        }
        assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
        assert_int_equal(gpu->compute->timeline.times(gpu, MARKS, ns), DT_OK);
        assert_int_equal(ns[0], 0);
        for (int i = 1; i < MARKS; i++)
            assert_true(ns[i] >= ns[i - 1]);
        assert_true(ns[MARKS - 1] > 0);
    }
    gpu->compute->memory.release(gpu, memory);
}

static void a_recording_runs_only_when_replayed(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct dt_graph *graph = NULL;
    float *x = random_floats("x", N);
    void *from = array_new(gpu, DT_FLOAT32, x, N), *to = array_new(gpu, DT_FLOAT32, NULL, N);
    const struct dt_copy op = {
        .to = to, .from = from, .count = {1, 1, 1}, .width = N, .element = sizeof(float)};
    assert_int_equal(gpu->compute->graph.record(gpu), DT_OK);
    gpu->compute->rows.copy(gpu, &op);
    assert_int_equal(gpu->compute->graph.recorded(gpu, &graph), DT_OK);
    float *got = array_read(gpu, DT_FLOAT32, to, N);
    for (int i = 0; i < N; i++)
        assert_true(isnan(got[i]));
    free(got);
    for (int round = 0; round < 3; round++) {
        x[0] = (float)round;
        assert_int_equal(gpu->compute->memory.put(gpu, from, x, N * (int64_t)sizeof(float)), DT_OK);
        gpu->compute->graph.replay(gpu, graph);
        got = array_read(gpu, DT_FLOAT32, to, N);
        assert_memory_equal(got, x, N * sizeof(float));
        free(got);
    }
    gpu->compute->graph.free(gpu, graph);
    gpu->compute->graph.free(gpu, NULL);
    gpu->compute->memory.release(gpu, from);
    gpu->compute->memory.release(gpu, to);
    free(x);
}

static dt_status count_calls(void *arg)
{
    int *calls = arg;
    return ++*calls > 3 ? dt_fail(DT_ELIB, "enough") : DT_OK;
}

/* Something long is queued: work by the gigabyte. */
static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    enum { N = 32 << 20, TIMES = 64 };
    void *memory = NULL;
    int calls = 0;
    assert_int_equal(gpu->compute->memory.alloc(gpu, N, &memory), DT_OK);
    for (int i = 0; i < TIMES; i++)
        gpu->compute->memory.fill(gpu, memory, i, N);
    dt_status status = gpu->compute->finish(gpu, dt_clock_ns(), NULL, NULL);
    assert_true(status == DT_OK || status == DT_ETIMEOUT);
    for (int i = 0; i < TIMES; i++)
        gpu->compute->memory.fill(gpu, memory, i, N);
    status = gpu->compute->finish(gpu, soon(), count_calls, &calls);
    assert_true(status == DT_OK || (status == DT_ELIB && strcmp(dt_message(), "enough") == 0));
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    gpu->compute->memory.release(gpu, memory);
}

static void versions_are_reported(void **state)
{
    (void)state;
    int count = 0;
    for (const struct dt_version *row = dt_compute_cuda.versions(); row->name != NULL; row++) {
        assert_true(row->version[0] != '\0');
        count++;
    }
    assert_true(count >= 4);
}

static void clock_readings_give_a_rate(void **state)
{
    (void)state;
    double hz = -1.0;
    gpu->compute->timeline.clock(gpu, 0);
    gpu->compute->timeline.clock(gpu, 1);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    assert_int_equal(gpu->compute->timeline.clock_rate(gpu, &hz), DT_OK);
    assert_true(hz >= 0.0 && hz < 1e11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_return_what_was_sent),
        cmocka_unit_test(too_much_is_out_of_memory),
        cmocka_unit_test(an_unknown_gpu_is_refused),
        cmocka_unit_test(marks_are_in_order),
        cmocka_unit_test(a_recording_runs_only_when_replayed),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(versions_are_reported),
        cmocka_unit_test(clock_readings_give_a_rate),
    };
    gpu = gpu_open();
    if (gpu == NULL)
        return SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gpu->compute->close(gpu);
    return failed;
}
