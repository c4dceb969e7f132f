/* SPDX-License-Identifier: MIT */
/* bench - speed of single operations of a GPU, through the table of kernels/compute.h
 *
 * A row is one operation on one shape. Its batches of 20 calls, one graph, lie between two marks
 * of the device, behind an untimed call: no time contains the start of an idle queue or the host's
 * launches; the median of the batches' means is printed beside a rate. Calls take turns on several
 * sets of operands, which together exceed the L2 cache, so that each call finds its own in memory,
 * as a step finds the weights of its blocks. To add a group of rows: one function, and a row in
 * the table of main.c.
 */
#ifndef DT_BENCH_GPU_BENCH_H
#define DT_BENCH_GPU_BENCH_H

#include "kernels/compute.h"

#include <stdbool.h>

struct bench {
    struct dt_device *device;
    bool quick; /* tiny shapes, only to check that everything runs */
    /* --short: the rows of DiT-XL/2, attention with heads of 128, and the ceilings */
    bool first_only;
    int failures, turn;
};

/* Times call(bench, arg, set) and prints the row: `what`, its time, and amount a second in units of
 * 10^12 (FLOP/s, "TFLOP/s") or 10^9 (bytes, "GB/s"). set: 0 to sets - 1, in turn. */
struct bench_row {
    const char *what, *unit;
    double amount;
    void (*call)(struct bench *bench, void *arg, int set);
    void *arg;
    int sets;
};
void bench_time(struct bench *bench, const struct bench_row *row);

/* A row that could not be made ready, with its reason. */
void bench_refused(struct bench *bench, const char *what);

/* Number of sets of this size, in bytes, that exceed the cache together: 1 to BENCH_SETS_MOST. */
#define BENCH_SETS_MOST 64
int bench_sets(const struct bench *bench, int64_t bytes);

/* Device memory of random bytes that are small numbers in either data type; NULL (and said) when
 * there is not so much. */
void *bench_memory(struct bench *bench, int64_t bytes);
void bench_release(struct bench *bench, void *memory);

void bench_copy(struct bench *bench);
void bench_linear(struct bench *bench);
void bench_attention(struct bench *bench);
void bench_passes(struct bench *bench);

#endif
