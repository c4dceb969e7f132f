/* SPDX-License-Identifier: MIT */
/* bench - speed of single operations of a GPU, through the table of kernels/compute.h
 *
 * A row is one operation on one shape: it is queued once untimed, then in batches between two marks of the device, and the median of
 * the batches' means is printed beside a rate. To add a group of rows: one function, and a row in the table of main.c.
 */
#ifndef DT_BENCH_GPU_BENCH_H
#define DT_BENCH_GPU_BENCH_H

#include "kernels/compute.h"

#include <stdbool.h>

struct bench {
    struct dt_device *device;
    bool quick; /* tiny shapes, only to check that everything runs */
    int failures;
};

/* Times call(bench, arg) and prints the row: `what`, its time, and amount a second in units of 10^12 (FLOP/s, "TFLOP/s") or
 * 10^9 (bytes, "GB/s"). */
struct bench_row {
    const char *what, *unit;
    double amount;
    void (*call)(struct bench *bench, void *arg);
    void *arg;
};
void bench_time(struct bench *bench, const struct bench_row *row);

/* A row that could not be made ready, with its reason. */
void bench_refused(struct bench *bench, const char *what);

/* Device memory of random bytes that are small numbers in either data type; NULL (and said) when there is not so much. */
void *bench_memory(struct bench *bench, int64_t bytes);
void bench_release(struct bench *bench, void *memory);

void bench_copy(struct bench *bench);
void bench_linear(struct bench *bench);
void bench_attention(struct bench *bench);
void bench_passes(struct bench *bench);

#endif
