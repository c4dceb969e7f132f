/* SPDX-License-Identifier: MIT */
/* bench-gpu [--quick|--short] [GROUP]...: rates on GPU 0; without a group, of all. Exit codes: 0, 1
 * (a row failed), 2 (wrong usage), 77 (no GPU). */
#include "bench/gpu/bench.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (120 * DT_NS_PER_SECOND)

enum { BATCHES = 7, CALLS = 20, LONG_CALLS = 5 };

#define LONG_NS (DT_NS_PER_SECOND / 400) /* a call this long: fewer of those make a batch */
#define WARM_NS (DT_NS_PER_SECOND / 50)  /* an idle GPU raises its clock in steps */

/* More than twice the L2 cache of an H200. */
#define CACHE_BYTES (INT64_C(128) << 20)

int bench_sets(const struct bench *bench, int64_t bytes)
{
    int64_t sets = bench->quick ? 2 : (CACHE_BYTES + bytes - 1) / bytes;
    return sets < BENCH_SETS_MOST ? (int)sets : BENCH_SETS_MOST;
}

static void call_next(struct bench *bench, const struct bench_row *row)
{
    row->call(bench, row->arg, bench->turn++ % row->sets);
}

/* So many calls between two marks, behind an untimed one: the queue is not idle
 * when the clock starts. */
static dt_status run_batch(struct bench *bench, const struct bench_row *row, struct dt_graph *graph,
                           int calls, int64_t *ns)
{
    const struct dt_compute *compute = bench->device->compute;
    int64_t times[2];
    call_next(bench, row);
    compute->timeline.mark(bench->device, 0);
    if (graph != NULL)
        compute->graph.replay(bench->device, graph);
    else
        call_next(bench, row);
    compute->timeline.mark(bench->device, 1);
    DT_TRY(compute->finish(bench->device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    DT_TRY(compute->timeline.times(bench->device, 2, times));
    *ns = times[1] / calls;
    return DT_OK;
}

static dt_status record(struct bench *bench, const struct bench_row *row, int calls,
                        struct dt_graph **graph)
{
    DT_TRY(bench->device->compute->graph.record(bench->device));
    for (int i = 0; i < calls; i++)
        call_next(bench, row);
    return bench->device->compute->graph.recorded(bench->device, graph);
}

static dt_status run_batches(struct bench *bench, const struct bench_row *row, int64_t ns[BATCHES])
{
    struct dt_graph *graph = NULL;
    int64_t cold = 0;
    DT_TRY(run_batch(bench, row, NULL, 1, &cold));
    int calls = bench->quick ? 1 : cold > LONG_NS ? LONG_CALLS : CALLS;
    DT_TRY(record(bench, row, calls, &graph));
    dt_status status = DT_OK;
    for (int64_t warm = bench->quick ? WARM_NS : 0; status == DT_OK && warm < WARM_NS;
         warm += calls * ns[0] + 1)
        status = run_batch(bench, row, graph, calls, &ns[0]);
    for (int i = 0; status == DT_OK && i < BATCHES; i++)
        status = run_batch(bench, row, graph, calls, &ns[i]);
    bench->device->compute->graph.free(bench->device, graph);
    return status;
}

void bench_time(struct bench *bench, const struct bench_row *row)
{
    int64_t ns[BATCHES] = {0};
    if (run_batches(bench, row, ns) != DT_OK) {
        bench_refused(bench, row->what);
        return;
    }
    qsort(ns, BATCHES, sizeof ns[0], dt_ascending_int64);
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
    /* Words of this form are numbers of magnitude 0.5 to 2 in bfloat16, and as
     * either half of a float32. */
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

static const struct group {
    const char *name;
    void (*run)(struct bench *bench);
} groups[] = {{"copy", bench_copy},
              {"linear", bench_linear},
              {"attention", bench_attention},
              {"passes", bench_passes}};

enum { GROUPS = sizeof groups / sizeof groups[0] };

/* False when a word is no option and no group. */
static bool read_words(int argc, char **argv, struct bench *bench, bool chosen[])
{
    for (int i = 1; i < argc; i++) {
        int group = 0;
        while (group < GROUPS && strcmp(argv[i], groups[group].name) != 0)
            group++;
        if (strcmp(argv[i], "--quick") == 0)
            bench->quick = true;
        else if (strcmp(argv[i], "--short") == 0)
            bench->first_only = true;
        else if (group < GROUPS)
            chosen[group] = chosen[GROUPS] = true;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench bench = {.quick = false};
    bool chosen[GROUPS + 1] = {false}; /* the last one: any of them */
    const struct dt_compute *compute = &dt_compute_cuda;
    if (!read_words(argc, argv, &bench, chosen)) {
        fprintf(stderr,
                "usage: bench-gpu [--quick|--short] [copy] [linear] [attention] [passes]\n");
        return 2;
    }
    if (compute->open(0, &bench.device) != DT_OK) {
        printf("bench-gpu: no GPU: %s\n", dt_message());
        return 77;
    }
    printf("%s; median of %d batches of at most %d calls, by the device's events\n",
           compute->model(bench.device), BATCHES, bench.quick ? 1 : CALLS);
    for (int i = 0; i < GROUPS; i++)
        if (chosen[i] || !chosen[GROUPS])
            groups[i].run(&bench);
    compute->close(bench.device);
    return bench.failures > 0;
}
