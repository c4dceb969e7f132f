/* SPDX-License-Identifier: MIT */
#include "bench/kernels/side.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS 30000000

int dt_bench_threads = 2, dt_bench_turns = 7;

void *dt_bench_room(int64_t bytes)
{
    void *made = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (made == NULL) {
        fprintf(stderr, "bench-kernels: no memory for %lld bytes\n", (long long)bytes);
        exit(1);
    }
    return made;
}

/* Numbers around 1 in either type: zeros would be multiplied faster on some processors. */
void *dt_bench_numbers(enum dt_dtype dtype, int64_t n)
{
    char *made = dt_bench_room(n * dt_dtype_bytes(dtype));
    for (int64_t i = 0; i < n; i++) {
        float value = (float)((i * 7919) % 1000) / 500.0f - 1.0f;
        memcpy(made + i * dt_dtype_bytes(dtype),
               (const char *)&value + (dtype == DT_FLOAT32 ? 0 : 2), (size_t)dt_dtype_bytes(dtype));
    }
    return made;
}

static double rate(const struct dt_side *side)
{
    int64_t start = dt_clock_ns(), now = start;
    int runs = 0;
    while (now - start < TURN_NS) {
        side->run(side->arg);
        now = dt_clock_ns();
        runs++;
    }
    return side->amount * runs / ((double)(now - start) * 1e-9);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double x[])
{
    qsort(x, (size_t)dt_bench_turns, sizeof x[0], ascending);
    return x[dt_bench_turns / 2];
}

/* Rate of ours over rate of theirs. */
double dt_bench_compare(const char *what, const char *unit, const struct dt_side *ours,
                        const struct dt_side *theirs)
{
    double ratio[DT_BENCH_TURNS], a[DT_BENCH_TURNS], b[DT_BENCH_TURNS];
    rate(ours);
    rate(theirs);
    for (int i = 0; i < dt_bench_turns; i++) {
        if (i % 2 == 0)
            a[i] = rate(ours);
        b[i] = rate(theirs);
        if (i % 2 == 1)
            a[i] = rate(ours);
        ratio[i] = a[i] / b[i];
    }
    double middle = median(ratio);
    printf("%-58s %6.3f  [%.3f, %.3f]  %8.1f against %8.1f %s\n", what, middle, ratio[0],
           ratio[dt_bench_turns - 1], median(a) * 1e-9, median(b) * 1e-9, unit);
    fflush(stdout);
    return middle;
}
