/* SPDX-License-Identifier: MIT */
/* cuda_int - the state of a GPU, shared by the files of this back end and the comms of its devices
 *
 * One stream is the queue. Each call that queues work ends with dt_cuda_keep: the first error
 * is kept, with the name of the operation, and the next call with a status returns it. Errors
 * after which CUDA requires a new process (see driver_types.h) make the device lost; nothing
 * more is queued on it.
 */
#ifndef DT_KERNELS_CUDA_CUDA_INT_H
#define DT_KERNELS_CUDA_CUDA_INT_H

#include "kernels/compute.h"
#include "model/workload.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

/* Fixed memory of an open device, in this order: workspace of cuBLASLt and cuDNN, which never
 * run at the same time, biases in bfloat16 (gemm.c), and clock readings. The prediction of a
 * GPU's memory includes it. */
#define DT_CUDA_WORKSPACE_BYTES DT_GPU_WORKSPACE_BYTES
#define DT_CUDA_CLOCK_BYTES     4096LL
#define DT_CUDA_BIAS_BYTES      ((6LL << 20) - DT_CUDA_CLOCK_BYTES)
#define DT_CUDA_LIBRARY_BYTES   (DT_CUDA_WORKSPACE_BYTES - DT_CUDA_BIAS_BYTES - DT_CUDA_CLOCK_BYTES)

/* Slots of pinned host memory that put, get and pack use in turn. */
enum { DT_CUDA_SLOTS = 4 };

struct dt_cuda_biases;
struct dt_cuda_block;
struct dt_cuda_choice;
struct dt_cuda_sdpa;

struct dt_cuda {
    struct dt_device base;
    cudaStream_t stream;
    cublasLtHandle_t lt;
    char *workspace; /* device memory, DT_CUDA_WORKSPACE_BYTES; starts with the libraries' part */
    struct dt_cuda_biases *biases;
    struct dt_cuda_choice *choices; /* chosen algorithms (gemm.c) */
    struct dt_cuda_sdpa *sdpa;      /* NULL until cuDNN is first used */
    char *pinned;                   /* DT_CUDA_SLOTS x DT_CUDA_SLOT_BYTES of host memory */
    cudaEvent_t slot_done[DT_CUDA_SLOTS];
    int slot; /* next slot to use */
    cudaEvent_t *marks;
    int mark_count; /* created so far */
    bool recording;
    bool stuck;                   /* a wait ended before the queued work did */
    struct dt_cuda_block *blocks; /* allocated by alloc */
    const char *last;             /* name of the last queued operation */
    struct dt_error error;        /* the first */
    bool lost;                    /* permanently */
    char model[256], pci[32];
    int64_t l2_bytes, memory_bytes;
};

/* Makes the device current for the calling thread. */
struct dt_cuda *dt_cuda_of(struct dt_device *device);

/* Like dt_cuda_of, for calls that queue work: NULL when the device already has an error. */
struct dt_cuda *dt_cuda_enter(struct dt_device *device);

/* Returns the device's first error. */
dt_status dt_cuda_ready(struct dt_cuda *cuda) DT_MUST_CHECK;

/* DT_OK, or a failure of `what` ("reserve memory") as a status with a sentence:
 * DT_ENOMEM, DT_ELIB. When the code is one that CUDA does not recover from, the device is
 * lost. code is a cudaError_t. */
dt_status dt_cuda_check(struct dt_cuda *cuda, int code, const char *what) DT_MUST_CHECK;

/* For calls that queue `what` and return nothing: keeps an error. */
void dt_cuda_keep(struct dt_cuda *cuda, int code, const char *what);

/* Returns from the calling function when a call of the CUDA runtime fails. */
#define DT_CUDA(cuda, call, what) DT_TRY(dt_cuda_check((cuda), (int)(call), (what)))

/* A kind of attention: a row of kernels/cuda/cuda.c. ready checks the shape once before it runs;
 * run queues it and returns a cudaError_t; version is the library's, NULL for own kernels. A
 * library's data type is bfloat16. */
struct dt_cuda_attention {
    dt_status (*ready)(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op);
    int (*run)(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op);
    const char *(*version)(void);
};
extern const struct dt_cuda_attention
    dt_cuda_attention_fa3;                       /* kernels/cuda/fa3, where it is built */
const char *dt_cuda_attention_version(int kind); /* "" when it is not built, or has none */

dt_status dt_cuda_alloc(struct dt_device *device, int64_t bytes, void **memory) DT_MUST_CHECK;
void dt_cuda_release(struct dt_device *device, void *memory);
dt_status dt_cuda_put(struct dt_device *device, void *to, const void *from,
                      int64_t bytes) DT_MUST_CHECK;

dt_status dt_cuda_finish(struct dt_device *device, int64_t deadline_ns,
                         dt_status (*check)(void *arg), void *arg) DT_MUST_CHECK;
void dt_cuda_mark(struct dt_device *device, int slot);
dt_status dt_cuda_times(struct dt_device *device, int n, int64_t ns[]) DT_MUST_CHECK;

dt_status dt_cuda_linear_new(struct dt_device *device, enum dt_dtype dtype,
                             const struct dt_linear_shape *shape,
                             struct dt_linear **linear) DT_MUST_CHECK;
void dt_cuda_linear(struct dt_device *device, struct dt_linear *linear,
                    const struct dt_linear_call *call);
void dt_cuda_linear_free(struct dt_linear *linear);
void dt_cuda_gemm_forget(struct dt_cuda *cuda); /* the choices of algorithms */

/* cuBLASLt adds only biases of the output's data type. Returns the bfloat16 copy of a float32 bias
 * on the device: made at the first request, kept until forget is called for changed memory. NULL
 * when an error was kept. */
dt_status dt_cuda_biases_new(struct dt_cuda *cuda) DT_MUST_CHECK;
void dt_cuda_biases_free(struct dt_cuda *cuda);
void dt_cuda_biases_forget(struct dt_cuda *cuda, const void *memory, int64_t bytes);

void dt_cuda_attention(struct dt_device *device, enum dt_dtype dtype,
                       const struct dt_attention *op);

#endif
