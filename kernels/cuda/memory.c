/* SPDX-License-Identifier: MIT */
/* Device memory, and copies to and from it through slots of pinned host memory, filled while the previous slot is
 * copied. */
#include "kernels/cuda/cuda_int.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Size of each piece of memory, for caches that are keyed by address. */
struct dt_cuda_block {
    struct dt_cuda_block *next;
    void *memory;
    int64_t bytes;
};

static dt_status reserve(struct dt_cuda *cuda, int64_t bytes, void **memory)
{
    cudaError_t code = cudaMalloc(memory, (size_t)bytes);
    if (code == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total = 0;
        (void)cudaMemGetInfo(&free_bytes, &total);
        (void)cudaGetLastError();
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes on GPU %d, %lld of %lld are free",
                       (long long)bytes, cuda->base.index, (long long)free_bytes, (long long)total);
    }
    return dt_cuda_check(cuda, (int)code, "reserve memory");
}

dt_status dt_cuda_alloc(struct dt_device *device, int64_t bytes, void **memory)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    void *made = NULL;
    DT_TRY(dt_cuda_ready(cuda));
    struct dt_cuda_block *block = malloc(sizeof *block);
    if (block == NULL)
        return dt_fail(DT_ENOMEM, "no memory to take note of memory");
    dt_status status = reserve(cuda, bytes, &made);
    if (status != DT_OK) {
        free(block);
        return status;
    }
    *block = (struct dt_cuda_block){cuda->blocks, made, bytes};
    cuda->blocks = block;
    *memory = made;
    return DT_OK;
}

void dt_cuda_release(struct dt_device *device, void *memory)
{
    if (memory == NULL)
        return;
    struct dt_cuda *cuda = dt_cuda_of(device);
    struct dt_cuda_block **at = &cuda->blocks;
    while (*at != NULL && (*at)->memory != memory)
        at = &(*at)->next;
    struct dt_cuda_block *block = *at;
    if (block == NULL)
        return;
    *at = block->next;
    dt_cuda_biases_forget(cuda, memory, block->bytes);
    free(block);
    if (!dt_cuda_quiet(cuda))
        return;
    (void)cudaFree(memory);
    (void)cudaGetLastError();
}

/* Waits for the next slot; *at is its memory. Does not wait again after an earlier wait was given up. */
static dt_status take_slot(struct dt_cuda *cuda, char **at)
{
    const int64_t deadline = dt_clock_ns() + dt_cuda_patience_ns;
    cudaError_t code;
    while ((code = cudaEventQuery(cuda->slot_done[cuda->slot])) == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* "not ready" counts as one */
        cuda->stuck = cuda->stuck || dt_clock_ns() >= deadline;
        if (cuda->stuck)
            return dt_fail(DT_ETIMEOUT, "GPU %d has not finished yet what was queued",
                           cuda->base.index);
        const struct timespec nap = {.tv_nsec = 20000};
        nanosleep(&nap, NULL);
    }
    DT_CUDA(cuda, code, "bring memory");
    *at = cuda->pinned + cuda->slot * DT_CUDA_SLOT_BYTES;
    return DT_OK;
}

static dt_status send_slot(struct dt_cuda *cuda, void *to, int64_t bytes)
{
    const char *at = cuda->pinned + cuda->slot * DT_CUDA_SLOT_BYTES;
    DT_CUDA(cuda, cudaMemcpyAsync(to, at, (size_t)bytes, cudaMemcpyHostToDevice, cuda->stream),
            "copy memory to the device");
    DT_CUDA(cuda, cudaEventRecord(cuda->slot_done[cuda->slot], cuda->stream), "record an event");
    cuda->slot = (cuda->slot + 1) % DT_CUDA_SLOTS;
    return DT_OK;
}

dt_status dt_cuda_put(struct dt_device *device, void *to, const void *from, int64_t bytes)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    dt_cuda_biases_forget(cuda, to, bytes);
    for (int64_t done = 0; done < bytes; done += DT_CUDA_SLOT_BYTES) {
        int64_t part = bytes - done < DT_CUDA_SLOT_BYTES ? bytes - done : DT_CUDA_SLOT_BYTES;
        char *at = NULL;
        DT_TRY(take_slot(cuda, &at));
        memcpy(at, (const char *)from + done, (size_t)part);
        DT_TRY(send_slot(cuda, (char *)to + done, part));
    }
    return DT_OK;
}

dt_status dt_cuda_get(struct dt_device *device, void *to, const void *from, int64_t bytes)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    for (int64_t done = 0; done < bytes; done += DT_CUDA_SLOT_BYTES) {
        int64_t part = bytes - done < DT_CUDA_SLOT_BYTES ? bytes - done : DT_CUDA_SLOT_BYTES;
        char *at = NULL;
        DT_TRY(take_slot(cuda, &at));
        DT_CUDA(cuda,
                cudaMemcpyAsync(at, (const char *)from + done, (size_t)part, cudaMemcpyDeviceToHost,
                                cuda->stream),
                "copy memory from the device");
        DT_CUDA(cuda, cudaEventRecord(cuda->slot_done[cuda->slot], cuda->stream),
                "record an event");
        DT_TRY(take_slot(cuda, &at));
        memcpy((char *)to + done, at, (size_t)part);
    }
    return DT_OK;
}

void dt_cuda_fill(struct dt_device *device, void *to, int byte, int64_t bytes)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda == NULL || bytes == 0)
        return;
    dt_cuda_biases_forget(cuda, to, bytes);
    dt_cuda_keep(cuda, (int)cudaMemsetAsync(to, byte, (size_t)bytes, cuda->stream), "fill memory");
}

/* Rounds to nearest, ties to even; NAN stays NAN. */
static uint16_t narrowed(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U);
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

/* Stays row-major: cuBLASLt reads it transposed, and a matrix may begin at any row. */
dt_status dt_cuda_pack(struct dt_device *device, enum dt_dtype dtype, const float *weight, int in,
                       int out, void *packed)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    const int64_t size = (int64_t)in * out;
    const int64_t slot = DT_CUDA_SLOT_BYTES / (int64_t)sizeof(uint16_t);
    if (dtype != DT_BFLOAT16)
        return dt_cuda_put(device, packed, weight, size * (int64_t)sizeof *weight);
    DT_TRY(dt_cuda_ready(cuda));
    for (int64_t done = 0; done < size; done += slot) {
        int64_t part = size - done < slot ? size - done : slot;
        char *at = NULL;
        DT_TRY(take_slot(cuda, &at));
        uint16_t *to = (uint16_t *)(void *)at;
        for (int64_t i = 0; i < part; i++)
            to[i] = narrowed(weight[done + i]);
        DT_TRY(send_slot(cuda, (char *)packed + done * (int64_t)sizeof *to,
                         part * (int64_t)sizeof *to));
    }
    return DT_OK;
}
