/* SPDX-License-Identifier: MIT */
/* The rate of a large product, on random data, since GPUs multiply zeros faster. */
#include "kernels/cuda/cuda_int.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdlib.h>

enum { MOST = 8192, LEAST = 256 };

/* The largest power of two whose three matrices take at most half of the free memory. */
static dt_status size_for(struct dt_cuda *cuda, int *n)
{
    size_t free_bytes = 0, total = 0;
    DT_CUDA(cuda, cudaMemGetInfo(&free_bytes, &total), "tell its memory");
    for (*n = MOST; *n > LEAST; *n /= 2)
        if ((uint64_t)*n * (uint64_t)*n * 3 * sizeof(float) <= free_bytes / 2)
            break;
    return DT_OK;
}

/* A matrix repeats a few random rows, which does not change the cost of a product. */
static dt_status fill(struct dt_device *device, enum dt_dtype dtype, int n, char *matrix)
{
    enum { ROWS = 64 };
    const int64_t part = (int64_t)ROWS * n, element = dt_dtype_bytes(dtype);
    dt_status status = DT_OK;
    float *rows = malloc((size_t)part * sizeof *rows);
    if (rows == NULL)
        return dt_fail(DT_ENOMEM, "no memory for random rows");
    dt_rng_fill(rows, (size_t)part, 1, dt_rng_stream("peak"), 0, 1.0F);
    for (int i = 0; i < n / ROWS && status == DT_OK; i++)
        status = dt_cuda_pack(device, dtype, rows, n, ROWS, matrix + i * part * element);
    free(rows);
    return status;
}

/* The best of several: a peak is the device's maximum, not its average. */
static dt_status best_rate(struct dt_device *device, struct dt_linear *linear,
                           const struct dt_linear_call *call, double flops, double *flop_rate)
{
    double best = 0.0;
    int64_t end = dt_clock_ns() + 300000000;
    do {
        int64_t ns[2];
        dt_cuda_mark(device, 0);
        dt_cuda_linear(device, linear, call);
        dt_cuda_mark(device, 1);
        DT_TRY(dt_cuda_finish(device, dt_clock_ns() + 60000000000, NULL, NULL));
        DT_TRY(dt_cuda_times(device, 2, ns));
        if (ns[1] > 0 && flops * 1e9 / (double)ns[1] > best)
            best = flops * 1e9 / (double)ns[1];
    } while (dt_clock_ns() < end);
    *flop_rate = best;
    return DT_OK;
}

static dt_status measure(struct dt_device *device, enum dt_dtype dtype, int n, char *memory,
                         double *flop_rate)
{
    const struct dt_linear_shape shape = {.rows = n, .in = n, .out = n};
    const int64_t bytes = (int64_t)n * n * dt_dtype_bytes(dtype);
    const struct dt_linear_call call = {memory, memory + bytes, (float *)(void *)memory,
                                        memory + 2 * bytes};
    struct dt_linear *linear = NULL;
    DT_TRY(fill(device, dtype, n, memory));
    DT_TRY(fill(device, dtype, n, memory + bytes));
    DT_TRY(dt_cuda_linear_new(device, dtype, &shape, &linear));
    dt_status status =
        best_rate(device, linear, &call, 2.0 * (double)n * (double)n * (double)n, flop_rate);
    dt_cuda_linear_free(linear);
    return status;
}

dt_status dt_cuda_peak(struct dt_device *device, enum dt_dtype dtype, double *flop_rate)
{
    int n;
    void *memory = NULL;
    DT_TRY(size_for(dt_cuda_of(device), &n));
    DT_TRY(dt_cuda_alloc(device, 3 * (int64_t)n * n * dt_dtype_bytes(dtype), &memory));
    dt_status status = measure(device, dtype, n, memory, flop_rate);
    dt_cuda_release(device, memory);
    return status;
}
