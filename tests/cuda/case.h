/* SPDX-License-Identifier: MIT */
/* case - the CUDA back end beside the CPU's: the same data on both, for tests that compare them
 *
 * The same tests run with fake and with real GPUs.
 */
#ifndef DT_TESTS_CUDA_CASE_H
#define DT_TESTS_CUDA_CASE_H

#include "base/clock.h"
#include "base/rng.h"
#include "kernels/compute.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77

static inline int64_t soon(void)
{
    return dt_clock_ns() + 60 * DT_NS_PER_SECOND;
}

static inline uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline float of_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Standard normal numbers, others for each name. */
static inline float *random_floats(const char *name, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    if (x == NULL)
        abort();
    dt_rng_fill(x, (size_t)n, 5, dt_rng_stream(name), 0, 1.0F);
    return x;
}

/* Rounds the numbers in place to the data type. */
static inline void round_floats(enum dt_dtype dtype, float *x, int64_t n)
{
    for (int64_t i = 0; dtype == DT_BFLOAT16 && i < n; i++)
        x[i] = of_bf16(bf16_of(x[i]));
}

/* An array of n activations (of `wide` ones: float32) in memory of a device.
 * x NULL: not numbers. */
static inline void *array_new(struct dt_device *device, enum dt_dtype dtype, const float *x,
                              int64_t n)
{
    void *memory = NULL;
    int64_t bytes = n * (dtype == DT_BFLOAT16 ? 2 : 4);
    dt_status status = device->compute->memory.alloc(device, bytes, &memory);
    if (status == DT_OK && x == NULL)
        device->compute->memory.fill(device, memory, 0xff, bytes);
    if (status == DT_OK && x != NULL && dtype != DT_BFLOAT16)
        status = device->compute->memory.put(device, memory, x, bytes);
    if (status == DT_OK && x != NULL && dtype == DT_BFLOAT16) {
        uint16_t *narrow = malloc((size_t)bytes);
        for (int64_t i = 0; narrow != NULL && i < n; i++)
            narrow[i] = bf16_of(x[i]);
        status =
            narrow != NULL ? device->compute->memory.put(device, memory, narrow, bytes) : DT_ENOMEM;
        free(narrow);
    }
    if (status != DT_OK) {
        fprintf(stderr, "%s\n", dt_message());
        abort();
    }
    return memory;
}

/* Returns the contents as float32; owned by the caller. */
static inline float *array_read(struct dt_device *device, enum dt_dtype dtype, const void *memory,
                                int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    uint16_t *narrow = malloc((size_t)n * sizeof *narrow);
    dt_status status = x == NULL || narrow == NULL
                           ? DT_ENOMEM
                           : device->compute->finish(device, soon(), NULL, NULL);
    if (status == DT_OK)
        status = dtype == DT_BFLOAT16 ? device->compute->memory.get(device, narrow, memory, 2 * n)
                                      : device->compute->memory.get(device, x, memory, 4 * n);
    if (status != DT_OK) {
        fprintf(stderr, "%s\n", dt_message());
        abort();
    }
    for (int64_t i = 0; dtype == DT_BFLOAT16 && i < n; i++)
        x[i] = of_bf16(narrow[i]);
    free(narrow);
    return x;
}

/* The GPU; NULL when there is none. */
static inline struct dt_device *gpu_open(void)
{
    struct dt_device *device = NULL;
    if (!dt_compute_cuda.usable(DT_FLOAT32))
        return NULL;
    if (dt_compute_cuda.open(0, &device) != DT_OK) {
        fprintf(stderr, "%s\n", dt_message());
        abort();
    }
    return device;
}

/* Data types from float32 on whose activations the GPU computes with; fake ones compute on the
 * processor, which may not have bfloat16. */
static inline int compared(void)
{
    if (getenv("DITTUNE_FAKE_CUDA") == NULL || dt_simd(DT_BFLOAT16) != NULL)
        return DT_BFLOAT16 + 1;
    printf("bfloat16 is not compared: the processor behind the fake GPUs has none\n");
    return DT_FLOAT32 + 1;
}

static inline struct dt_device *cpu_open(void)
{
    struct dt_device *device = NULL;
    if (dt_compute_cpu.open(0, &device) != DT_OK)
        abort();
    device->compute->threads(device, 1);
    return device;
}

#endif
