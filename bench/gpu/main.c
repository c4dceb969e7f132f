/* SPDX-License-Identifier: MIT */
/* bench-gpu [--quick]: rates of copies, linear layers, attention and fused passes on GPU 0. Exit codes: 0, 1 (a row failed), 77 (no
 * GPU). */
#include "bench/gpu/bench.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (120 * DT_NS_PER_SECOND)

enum { BATCHES = 7, CALLS = 5 };

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static dt_status run_batch(struct bench *bench, const struct bench_row *row, int calls, int64_t *ns)
{
    const struct dt_compute *compute = bench->device->compute;
    int64_t times[2];
    compute->timeline.mark(bench->device, 0);
    for (int i = 0; i < calls; i++)
        row->call(bench, row->arg);
    compute->timeline.mark(bench->device, 1);
    DT_TRY(compute->finish(bench->device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    DT_TRY(compute->timeline.times(bench->device, 2, times));
    *ns = times[1] / calls;
    return DT_OK;
}

void bench_time(struct bench *bench, const struct bench_row *row)
{
    int64_t ns[BATCHES] = {0}, cold;
    dt_status status = run_batch(bench, row, 1, &cold);
    for (int i = 0; status == DT_OK && i < BATCHES; i++)
        status = run_batch(bench, row, bench->quick ? 1 : CALLS, &ns[i]);
    if (status != DT_OK) {
        bench_refused(bench, row->what);
        return;
    }
    qsort(ns, BATCHES, sizeof ns[0], ascending);
    int64_t middle = ns[BATCHES / 2];
    double seconds = (double)middle * 1e-9, scale = row->unit[0] == 'T' ? 1e12 : 1e9;
    printf("%-58s %10.4f ms %9.1f %s\n", row->what, seconds * 1e3,
           seconds > 0 ? row->amount / seconds / scale : 0.0, row->unit);
}

void bench_refused(struct bench *bench, const char *what)
{
    printf("%-58s not run: %s\n", what, dt_message());
    bench->failures++;
}

void *bench_memory(struct bench *bench, int64_t bytes)
{
    const struct dt_compute *compute = bench->device->compute;
    enum { PIECE = 1 << 22 };
    static uint16_t random[PIECE / 2];
    void *memory = NULL;
    /* Words of this form are numbers of magnitude 0.5 to 2 in bfloat16, and as either half of a float32. */
    for (size_t i = 0; random[0] == 0 && i < PIECE / 2; i++)
        random[i] = (uint16_t)(0x3f00 | (dt_rng_hash(1, 2, i) & 0x80ff));
    dt_status status = compute->memory.alloc(bench->device, bytes, &memory);
    for (int64_t at = 0; status == DT_OK && at < bytes; at += PIECE)
        status = compute->memory.put(bench->device, (char *)memory + at, random,
                                     bytes - at < PIECE ? bytes - at : PIECE);
    if (status == DT_OK)
        return memory;
    compute->memory.release(bench->device, memory);
    return NULL;
}

void bench_release(struct bench *bench, void *memory)
{
    bench->device->compute->memory.release(bench->device, memory);
}

static void (*const groups[])(struct bench *bench) = {bench_copy, bench_linear, bench_attention,
                                                      bench_passes};

int main(int argc, char **argv)
{
    struct bench bench = {.quick = argc == 2 && strcmp(argv[1], "--quick") == 0};
    const struct dt_compute *compute = &dt_compute_cuda;
    if (argc > 1 && !bench.quick) {
        fprintf(stderr, "usage: bench-gpu [--quick]\n");
        return 2;
    }
    if (compute->open(0, &bench.device) != DT_OK) {
        printf("bench-gpu: no GPU: %s\n", dt_message());
        return 77;
    }
    printf("%s; median of %d batches of %d calls, by the device's events\n",
           compute->model(bench.device), BATCHES, bench.quick ? 1 : CALLS);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        groups[i](&bench);
    compute->close(bench.device);
    return bench.failures > 0;
}
