/* SPDX-License-Identifier: MIT */
/* cuBLASLt adds biases of the output's data type only (cublasLt.h, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), and biases are
 * float32. There are few of them and they do not change, so each is converted to bfloat16 once, at its first use, and
 * found again by its address. During capture nothing may be remembered, because the captured work may never run: the
 * copy is then part of the graph, and made on each replay in a place of its own. */
#include "kernels/cuda/cuda_int.h"
#include "kernels/cuda/launch.h"

#include <stdlib.h>

enum { ENTRIES = 4096, MOST = ENTRIES * 3 / 4 }; /* a power of two */

/* The end of the memory is for a temporary copy of the largest bias that linear.make accepts. */
#define KEPT_BYTES (DT_CUDA_BIAS_BYTES - DT_CUDA_BIAS_MOST * (int64_t)sizeof(uint16_t))
#define ALIGN      64

struct entry {
    const float *bias; /* NULL: free */
    int count;         /* 0: removed; the probe continues past it */
    int64_t at;        /* offset of the copy in bytes */
};

struct dt_cuda_biases {
    struct entry entries[ENTRIES];
    int taken, live; /* entries that are not free, and valid entries */
    int64_t used;    /* bytes of copies */
};

dt_status dt_cuda_biases_new(struct dt_cuda *cuda)
{
    cuda->biases = calloc(1, sizeof *cuda->biases);
    return cuda->biases != NULL ? DT_OK : dt_fail(DT_ENOMEM, "no memory for a table of biases");
}

void dt_cuda_biases_free(struct dt_cuda *cuda)
{
    free(cuda->biases);
    cuda->biases = NULL;
}

static struct entry *find(struct dt_cuda_biases *biases, const float *bias, int count)
{
    uint64_t hash = (uint64_t)(uintptr_t)bias * 0x9e3779b97f4a7c15U;
    for (int i = (int)(hash >> 52);; i = (i + 1) % ENTRIES) {
        struct entry *entry = &biases->entries[i];
        if (entry->bias == NULL || (entry->bias == bias && entry->count == count))
            return entry;
    }
}

const void *dt_cuda_bias(struct dt_cuda *cuda, const float *bias, int count)
{
    struct dt_cuda_biases *biases = cuda->biases;
    struct entry *entry = find(biases, bias, count);
    char *copies = cuda->workspace + DT_CUDA_LIBRARY_BYTES;
    int64_t bytes = ((int64_t)count * (int64_t)sizeof(uint16_t) + ALIGN - 1) / ALIGN * ALIGN;
    if (entry->bias != NULL)
        return copies + entry->at;
    bool kept = !cuda->recording && biases->taken < MOST && biases->used + bytes <= KEPT_BYTES;
    char *to = copies + (kept ? biases->used : KEPT_BYTES);
    dt_cuda_keep(cuda, dt_launch_narrow(DT_BFLOAT16, bias, to, count, cuda->stream),
                 "narrow a bias");
    if (kept && cuda->error.status == DT_OK) {
        *entry = (struct entry){bias, count, biases->used};
        biases->used += bytes;
        biases->taken++;
        biases->live++;
    }
    return cuda->error.status == DT_OK ? to : NULL;
}

/* A copy's memory is not reused while any other copy exists: a graph may still read it. */
void dt_cuda_biases_forget(struct dt_cuda *cuda, const void *memory, int64_t bytes)
{
    struct dt_cuda_biases *biases = cuda->biases;
    uintptr_t first = (uintptr_t)memory, end = first + (uintptr_t)bytes;
    if (biases == NULL || biases->live == 0)
        return;
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *entry = &biases->entries[i];
        uintptr_t at = (uintptr_t)entry->bias;
        if (entry->count > 0 && at < end && at + (uintptr_t)entry->count * sizeof(float) > first) {
            entry->count = 0;
            biases->live--;
        }
    }
    if (biases->live == 0)
        *biases = (struct dt_cuda_biases){0};
}
