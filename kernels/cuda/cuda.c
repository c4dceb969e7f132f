/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/rng.h"
#include "kernels/cuda/cuda_int.h"
#ifdef DT_HAVE_CUDNN
#include "kernels/cuda/cudnn.h"
#endif
#include "kernels/cuda/launch.h"
#include "kernels/nvml.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define DT_CUDA_SLOT_BYTES (4LL << 20)

/* How long calls wait that have no deadline of their own: put, get, pack, release,
 * close. Tests shorten it. */
extern int64_t dt_cuda_patience_ns;

/* Waiting for the stream, and times on it. Waits poll and never block in the driver: the kernel of
 * an exchange whose peer has ended never ends, and the waiting rank must notice that. */

/* Polls without pause at first, so that the end of a short step is seen at once; then
 * yields the core between polls for as short as the timer slack set by cuda_open allows,
 * which bounds the delay. */
static void rest_between_polls(int polls)
{
    enum { SPIN = 200, YIELD = 2000 };
    const struct timespec nap = {.tv_nsec = 20000};
    if (polls >= YIELD)
        nanosleep(&nap, NULL);
    else if (polls >= SPIN)
        sched_yield();
}

int64_t dt_cuda_patience_ns = 60 * DT_NS_PER_SECOND;

/* Waits until the queued work has ended; false when it has not by the deadline, or a wait for
 * it was given up before: freeing its memory would wait for it without end, so that is left to
 * the end of the process. */
static bool cuda_quiet(struct dt_cuda *cuda)
{
    int64_t deadline = dt_clock_ns() + (cuda->stuck ? 0 : dt_cuda_patience_ns);
    for (int polls = 0; cudaStreamQuery(cuda->stream) == cudaErrorNotReady;
         polls += polls < INT32_MAX ? 1 : 0) {
        (void)cudaGetLastError(); /* "not ready" counts as one */
        cuda->stuck = dt_clock_ns() >= deadline;
        if (cuda->stuck)
            return false;
        rest_between_polls(polls);
    }
    return true;
}

static dt_status device_ended(struct dt_cuda *cuda, cudaError_t code)
{
    cuda->stuck = false;
    if (code != cudaSuccess) {
        char what[128];
        snprintf(what, sizeof what, "finish what was queued, last of all to %s", cuda->last);
        dt_cuda_keep(cuda, (int)code, what);
        cuda->last = "nothing";
    }
    dt_status status = dt_cuda_ready(cuda);
    if (status == DT_ENOMEM && !cuda->lost)
        cuda->error.status = DT_OK; /* reported once; later work may run */
    return status;
}

dt_status dt_cuda_finish(struct dt_device *device, int64_t deadline_ns,
                         dt_status (*check)(void *arg), void *arg)
{
    enum { CHECK_EACH = 64 };
    struct dt_cuda *cuda = dt_cuda_of(device);
    if (cuda->error.status != DT_OK && cuda->error.status != DT_ENOMEM)
        return dt_cuda_ready(cuda);
    for (int polls = 0;; polls += polls < INT32_MAX ? 1 : 0) {
        cudaError_t code = cudaStreamQuery(cuda->stream);
        if (code != cudaErrorNotReady)
            return device_ended(cuda, code);
        (void)cudaGetLastError(); /* "not ready" counts as one */
        dt_status status = check != NULL && polls % CHECK_EACH == 0 ? check(arg) : DT_OK;
        cuda->stuck = status < 0 || dt_clock_ns() >= deadline_ns;
        if (status < 0)
            return status;
        if (cuda->stuck)
            return dt_fail(DT_ETIMEOUT,
                           "GPU %d did not finish in time what was queued, last of all to %s",
                           device->index, cuda->last);
        rest_between_polls(polls);
    }
}

/* Timing events, created in blocks when a mark needs them; only the first step of
 * its kind creates any. */
static dt_status make_marks(struct dt_cuda *cuda, int count)
{
    enum { BLOCK = 256 };
    if (cuda->marks == NULL)
        cuda->marks = calloc(DT_MARKS_MOST, sizeof(cudaEvent_t));
    if (cuda->marks == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %d marks", DT_MARKS_MOST);
    int most = (count + BLOCK - 1) / BLOCK * BLOCK;
    while (cuda->mark_count < most) {
        DT_CUDA(cuda, cudaEventCreate(&cuda->marks[cuda->mark_count]), "make an event");
        cuda->mark_count++;
    }
    return DT_OK;
}

void dt_cuda_mark(struct dt_device *device, int slot)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda == NULL)
        return;
    dt_status status = slot < cuda->mark_count ? DT_OK : make_marks(cuda, slot + 1);
    if (status != DT_OK)
        dt_error_keep(&cuda->error, status);
    else
        dt_cuda_keep(cuda, (int)cudaEventRecord(cuda->marks[slot], cuda->stream), "note a time");
}

dt_status dt_cuda_times(struct dt_device *device, int n, int64_t ns[])
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (n > cuda->mark_count)
        return dt_fail(DT_EUSAGE, "%d marks requested, %d were made", n, cuda->mark_count);
    for (int i = 0; i < n; i++) {
        float milliseconds = 0.0F;
        DT_CUDA(cuda, cudaEventElapsedTime(&milliseconds, cuda->marks[0], cuda->marks[i]),
                "tell a time");
        ns[i] = (int64_t)((double)milliseconds * 1e6 + 0.5);
    }
    return DT_OK;
}

static uint64_t *clock_at(struct dt_cuda *cuda, int slot)
{
    char *clocks = cuda->workspace + DT_CUDA_LIBRARY_BYTES + DT_CUDA_BIAS_BYTES;
    return (uint64_t *)(void *)clocks + 2 * slot;
}

static void cuda_clock(struct dt_device *device, int slot)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda != NULL)
        dt_cuda_keep(cuda, dt_launch_clock(clock_at(cuda, slot), cuda->stream), "read a clock");
}

/* Waits for the next slot; *at is its memory. Does not wait again after an
 * earlier wait was given up. */
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

static dt_status cuda_get(struct dt_device *device, void *to, const void *from, int64_t bytes)
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

static dt_status cuda_clock_rate(struct dt_device *device, double *hz)
{
    uint64_t read[4]; /* cycles and nanoseconds of both readings */
    DT_TRY(cuda_get(device, read, clock_at(dt_cuda_of(device), 0), sizeof read));
    *hz = read[3] > read[1] && read[2] > read[0]
              ? (double)(read[2] - read[0]) * 1e9 / (double)(read[3] - read[1])
              : 0.0;
    return DT_OK;
}

/* Device memory, and copies to and from it through slots of pinned host memory, filled while the
 * previous slot is copied. */

/* Size of each piece of memory, for caches that are keyed by address. */
struct dt_cuda_block {
    struct dt_cuda_block *next;
    void *memory;
    int64_t bytes;
};

/* Errors after which the process must be relaunched according to
 * driver_types.h, and memory errors. */
static bool is_sticky(cudaError_t code)
{
    static const cudaError_t sticky[] = {
        cudaErrorECCUncorrectable,
        cudaErrorNvlinkUncorrectable,
        cudaErrorIllegalAddress,
        cudaErrorLaunchTimeout,
        cudaErrorAssert,
        cudaErrorHardwareStackError,
        cudaErrorIllegalInstruction,
        cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace,
        cudaErrorInvalidPc,
        cudaErrorLaunchFailure,
        cudaErrorMpsClientTerminated,
        cudaErrorExternalDevice,
        cudaErrorUnknown,
#if CUDART_VERSION >= 12080 /* older toolkits do not know them */
        cudaErrorContained,
        cudaErrorTensorMemoryLeak,
#endif
    };
    for (size_t i = 0; i < sizeof sticky / sizeof sticky[0]; i++)
        if (sticky[i] == code)
            return true;
    return false;
}

static dt_status device_failed(struct dt_cuda *cuda, cudaError_t code, const char *what)
{
    const char *name = cudaGetErrorName(code), *why = cudaGetErrorString(code);
    (void)cudaGetLastError(); /* clears the stored error, unless it is sticky */
    if (code == cudaErrorMemoryAllocation)
        return dt_fail(DT_ENOMEM, "GPU %d has not the memory to %s", cuda->base.index, what);
    if (!is_sticky(code))
        return dt_fail(DT_ELIB, "GPU %d could not %s: %s (%s)", cuda->base.index, what, why, name);
    cuda->lost = true;
    return dt_error_keep(&cuda->error,
                         dt_fail(DT_ELIB, "the device is lost: GPU %d could not %s: %s (%s)",
                                 cuda->base.index, what, why, name));
}

dt_status dt_cuda_check(struct dt_cuda *cuda, int code, const char *what)
{
    return code == (int)cudaSuccess ? DT_OK : device_failed(cuda, (cudaError_t)code, what);
}

static dt_status reserve_memory(struct dt_cuda *cuda, int64_t bytes, void **memory)
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
    dt_status status = reserve_memory(cuda, bytes, &made);
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
    if (!cuda_quiet(cuda))
        return;
    (void)cudaFree(memory);
    (void)cudaGetLastError();
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

static void cuda_fill(struct dt_device *device, void *to, int byte, int64_t bytes)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda == NULL || bytes == 0)
        return;
    dt_cuda_biases_forget(cuda, to, bytes);
    dt_cuda_keep(cuda, (int)cudaMemsetAsync(to, byte, (size_t)bytes, cuda->stream), "fill memory");
}

/* Rounds to nearest, ties to even; NAN stays NAN. */
static uint16_t narrow_bfloat16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U);
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

/* Stays row-major: cuBLASLt reads it transposed, and a matrix may begin at any row. */
static dt_status cuda_pack(struct dt_device *device, enum dt_dtype dtype, const float *weight,
                           int in, int out, void *packed)
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
            to[i] = narrow_bfloat16(weight[done + i]);
        DT_TRY(send_slot(cuda, (char *)packed + done * (int64_t)sizeof *to,
                         part * (int64_t)sizeof *to));
    }
    return DT_OK;
}

/* Records the queue as a CUDA graph by stream capture. The capture is local to this thread, so
 * other threads on other devices do not end it. */

struct dt_graph {
    cudaGraphExec_t exec;
};

static dt_status cuda_record(struct dt_device *device)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal),
            "begin to record");
    cuda->recording = true;
    return DT_OK;
}

/* Capture errors are recoverable: nothing was executed. */
static dt_status queue_status(struct dt_cuda *cuda)
{
    dt_status status = dt_cuda_ready(cuda);
    if (!cuda->lost)
        cuda->error.status = DT_OK;
    return status;
}

static dt_status instantiate_graph(struct dt_cuda *cuda, cudaGraph_t graph, struct dt_graph *made)
{
    DT_CUDA(cuda, cudaGraphInstantiate(&made->exec, graph, 0), "make a graph of what was recorded");
    return dt_cuda_check(cuda, (int)cudaGraphUpload(made->exec, cuda->stream), "load a graph");
}

static void cuda_graph_free(struct dt_device *device, struct dt_graph *graph)
{
    if (graph == NULL)
        return;
    (void)dt_cuda_of(device);
    if (graph->exec != NULL)
        (void)cudaGraphExecDestroy(graph->exec);
    (void)cudaGetLastError();
    free(graph);
}

static dt_status cuda_recorded(struct dt_device *device, struct dt_graph **graph)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    cudaGraph_t captured = NULL;
    cuda->recording = false;
    cudaError_t code = cudaStreamEndCapture(cuda->stream, &captured);
    if (code != cudaSuccess && captured == NULL) { /* end a capture that is still active */
        (void)cudaStreamEndCapture(cuda->stream, &captured);
        (void)cudaGetLastError();
    }
    dt_status status = queue_status(cuda);
    if (status == DT_OK)
        status = dt_cuda_check(cuda, (int)code, "record");
    else
        (void)cudaGetLastError();
    struct dt_graph *made = status == DT_OK ? calloc(1, sizeof *made) : NULL;
    if (status == DT_OK)
        status = made != NULL ? instantiate_graph(cuda, captured, made)
                              : dt_fail(DT_ENOMEM, "no memory for a graph");
    if (captured != NULL)
        (void)cudaGraphDestroy(captured);
    (void)cudaGetLastError();
    if (status != DT_OK) {
        cuda_graph_free(device, made);
        return status;
    }
    *graph = made;
    return DT_OK;
}

static void cuda_replay(struct dt_device *device, struct dt_graph *graph)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda != NULL)
        dt_cuda_keep(cuda, (int)cudaGraphLaunch(graph->exec, cuda->stream), "run a graph");
}

/* NVML is opened once per process and stays open, so that a sample is cheap. */

static struct dt_nvml *nvml; /* NULL: there is none */

static void start_runtime(void)
{
    if (dt_nvml_open(&nvml) != DT_OK) {
        dt_nvml_close(nvml);
        nvml = NULL;
    }
}

static void cuda_health(struct dt_device *device, struct dt_health *health)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct dt_cuda *cuda = (const struct dt_cuda *)(const void *)device;
    struct dt_nvml_device *there = NULL;
    struct dt_nvml_facts facts;
    pthread_once(&once, start_runtime);
    dt_nvml_facts_clear(&facts);
    if (nvml != NULL && dt_nvml_find(nvml, cuda->pci, &there) == DT_OK)
        dt_nvml_sample(nvml, there, &facts);
    *health = facts.health;
}

/* The rate of a large product, on random data, since GPUs multiply zeros faster. */

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
static dt_status fill_matrix(struct dt_device *device, enum dt_dtype dtype, int n, char *matrix)
{
    enum { ROWS = 64 };
    const int64_t part = (int64_t)ROWS * n, element = dt_dtype_bytes(dtype);
    dt_status status = DT_OK;
    float *rows = malloc((size_t)part * sizeof *rows);
    if (rows == NULL)
        return dt_fail(DT_ENOMEM, "no memory for random rows");
    dt_rng_fill(rows, (size_t)part, 1, dt_rng_stream("peak"), 0, 1.0F);
    for (int i = 0; i < n / ROWS && status == DT_OK; i++)
        status = cuda_pack(device, dtype, rows, n, ROWS, matrix + i * part * element);
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

static dt_status measure_product(struct dt_device *device, enum dt_dtype dtype, int n, char *memory,
                                 double *flop_rate)
{
    const struct dt_linear_shape shape = {.rows = n, .in = n, .out = n};
    const int64_t bytes = (int64_t)n * n * dt_dtype_bytes(dtype);
    const struct dt_linear_call call = {memory, memory + bytes, (float *)(void *)memory,
                                        memory + 2 * bytes};
    struct dt_linear *linear = NULL;
    DT_TRY(fill_matrix(device, dtype, n, memory));
    DT_TRY(fill_matrix(device, dtype, n, memory + bytes));
    DT_TRY(dt_cuda_linear_new(device, dtype, &shape, &linear));
    dt_status status =
        best_rate(device, linear, &call, 2.0 * (double)n * (double)n * (double)n, flop_rate);
    dt_cuda_linear_free(linear);
    return status;
}

static dt_status cuda_peak(struct dt_device *device, enum dt_dtype dtype, double *flop_rate)
{
    int n;
    void *memory = NULL;
    DT_TRY(size_for(dt_cuda_of(device), &n));
    DT_TRY(dt_cuda_alloc(device, 3 * (int64_t)n * n * dt_dtype_bytes(dtype), &memory));
    dt_status status = measure_product(device, dtype, n, memory, flop_rate);
    dt_cuda_release(device, memory);
    return status;
}

/* The operations that consist of one kernel. */

/* An operation without elements is not launched: a grid of no blocks is an error. */
#define QUEUE(device, elements, launch, what)                                                      \
    do {                                                                                           \
        struct dt_cuda *cuda_ = dt_cuda_enter(device);                                             \
        if (cuda_ != NULL && (elements) > 0) {                                                     \
            void *stream = cuda_->stream;                                                          \
            dt_cuda_keep(cuda_, (launch), (what));                                                 \
        }                                                                                          \
    } while (0)

static void cuda_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                        int64_t n)
{
    QUEUE(device, n, dt_launch_narrow(dtype, x, y, n, stream), "narrow");
}

static void cuda_modulate(struct dt_device *device, enum dt_dtype dtype,
                          const struct dt_modulate *op)
{
    QUEUE(device, (int64_t)op->sequences * op->tokens, dt_launch_modulate(dtype, op, stream),
          "normalise and modulate");
}

static void cuda_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op)
{
    QUEUE(device, (int64_t)op->sequences * op->queries, dt_launch_merge(dtype, op, stream),
          "merge attention");
}

static void cuda_copy(struct dt_device *device, const struct dt_copy *op)
{
    QUEUE(device, op->count[0] * op->count[1] * op->count[2] * op->width,
          dt_launch_copy(op, stream), "copy");
}

static void cuda_sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *sum)
{
    QUEUE(device, bytes, dt_launch_sum(data, bytes, sum, stream), "add up words");
}

static void cuda_sinusoid(struct dt_device *device, const struct dt_sinusoid *op)
{
    QUEUE(device, op->count, dt_launch_sinusoid(op, stream), "embed the timestep");
}

static void cuda_condition(struct dt_device *device, const struct dt_condition *op)
{
    QUEUE(device, op->count, dt_launch_condition(op, stream), "condition");
}

static void cuda_position(struct dt_device *device, const struct dt_position *op)
{
    QUEUE(device, (int64_t)op->sequences * op->tokens, dt_launch_position(op, stream),
          "add positions");
}

static void cuda_guide(struct dt_device *device, const struct dt_guide *op)
{
    QUEUE(device, op->pixels, dt_launch_guide(op, stream), "guide");
}

static void cuda_sampler(struct dt_device *device, const struct dt_sampler *op)
{
    QUEUE(device, (int64_t)op->tokens * op->pixels, dt_launch_sampler(op, stream),
          "update the latent");
}

/* Attention by our own kernels or by a library's, as the plan selects. */

static dt_status own_ready(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op)
{
    int code = dt_launch_attention_ready(dtype, op);
    if (code >= 0)
        return dt_cuda_check(cuda, code, "make attention ready");
    if (dtype != DT_BFLOAT16)
        return dt_fail(DT_EUNSUP, "attention in %s of %d channels a head was not built for GPUs",
                       dt_dtype_text(dtype), op->head);
    return dt_fail(
        DT_EUNSUP,
        "attention of tile_q=%d tile_kv=%d stages=%d warps=%d and %d channels a head was "
        "not built for GPUs",
        op->tile.tile_q, op->tile.tile_kv, op->tile.stages, op->tile.warps, op->head);
}

static int own_run(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op)
{
    return dt_launch_attention(dtype, op, cuda->stream);
}

static const struct dt_cuda_attention own = {.ready = own_ready, .run = own_run};

#ifdef DT_HAVE_CUDNN
static dt_status cudnn_ready(struct dt_cuda *cuda, enum dt_dtype dtype,
                             const struct dt_attention *op)
{
    (void)dtype;
    if (cuda->sdpa == NULL)
        DT_TRY(dt_cuda_sdpa_open(cuda->stream, &cuda->sdpa));
    return dt_cuda_sdpa_ready(cuda->sdpa, op, DT_CUDA_LIBRARY_BYTES);
}

static int cudnn_run(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op)
{
    (void)dtype;
    dt_error_keep(&cuda->error,
                  dt_cuda_sdpa_run(cuda->sdpa, op, cuda->workspace, DT_CUDA_LIBRARY_BYTES));
    return cudaSuccess;
}

static const struct dt_cuda_attention cudnn = {
    .ready = cudnn_ready, .run = cudnn_run, .version = dt_cuda_sdpa_version};
#endif

/* NULL: this build does not have it. */
static const struct dt_cuda_attention *const kinds[DT_ATTENTIONS] = {
    [DT_ATTENTION_OWN] = &own,
#ifdef DT_HAVE_CUDNN
    [DT_ATTENTION_CUDNN] = &cudnn,
#endif
#ifdef DT_HAVE_FA3
    [DT_ATTENTION_FA3] = &dt_cuda_attention_fa3,
#endif
};

const char *dt_cuda_attention_version(int kind)
{
    return kinds[kind] != NULL && kinds[kind]->version != NULL ? kinds[kind]->version() : "";
}

static dt_status cuda_attention_ready(struct dt_device *device, enum dt_dtype dtype,
                                      const struct dt_attention *op)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (kinds[op->kind] == NULL)
        return dt_fail(DT_EUNSUP, "attention=%s was not built in", dt_attention_texts[op->kind]);
    if (op->kind != DT_ATTENTION_OWN && dtype != DT_BFLOAT16)
        return dt_fail(DT_EUNSUP, "attention=%s needs bfloat16, not %s",
                       dt_attention_texts[op->kind], dt_dtype_text(dtype));
    return kinds[op->kind]->ready(cuda, dtype, op);
}

void dt_cuda_attention(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda != NULL && kinds[op->kind] != NULL)
        dt_cuda_keep(cuda, kinds[op->kind]->run(cuda, dtype, op), "attend");
}

/* A device is one non-blocking stream plus memory allocated before anything runs on it.
 *
 * Kernels are loaded at first use (CUDA_MODULE_LOADING stays lazy: loading all kernels of cuBLASLt
 * and cuDNN takes seconds and hundreds of megabytes). So the first step of a plan runs directly and
 * only later ones are captured. */

struct dt_cuda *dt_cuda_of(struct dt_device *device)
{
    struct dt_cuda *cuda = (struct dt_cuda *)(void *)device;
    cudaError_t code = cudaSetDevice(device->index);
    if (code != cudaSuccess)
        dt_cuda_keep(cuda, (int)code, "choose the device");
    return cuda;
}

struct dt_cuda *dt_cuda_enter(struct dt_device *device)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    return cuda->error.status == DT_OK ? cuda : NULL;
}

dt_status dt_cuda_ready(struct dt_cuda *cuda)
{
    return dt_error_raise(&cuda->error);
}

void dt_cuda_keep(struct dt_cuda *cuda, int code, const char *what)
{
    cuda->last = what;
    if (code != (int)cudaSuccess)
        dt_error_keep(&cuda->error, device_failed(cuda, (cudaError_t)code, what));
}

static dt_status make_slots(struct dt_cuda *cuda)
{
    DT_CUDA(cuda,
            cudaHostAlloc((void **)(void *)&cuda->pinned,
                          (size_t)(DT_CUDA_SLOTS * DT_CUDA_SLOT_BYTES), cudaHostAllocDefault),
            "reserve pinned host memory");
    for (int i = 0; i < DT_CUDA_SLOTS; i++)
        DT_CUDA(cuda, cudaEventCreateWithFlags(&cuda->slot_done[i], cudaEventDisableTiming),
                "make an event");
    return DT_OK;
}

static dt_status make_device(struct dt_cuda *cuda)
{
    struct cudaDeviceProp about;
    DT_CUDA(cuda, cudaSetDevice(cuda->base.index), "be opened");
    DT_CUDA(cuda, cudaGetDeviceProperties(&about, cuda->base.index), "say what it is");
    DT_CUDA(cuda, cudaDeviceGetPCIBusId(cuda->pci, sizeof cuda->pci, cuda->base.index),
            "say where it is");
    snprintf(cuda->model, sizeof cuda->model, "%s", about.name);
    cuda->l2_bytes = about.l2CacheSize;
    cuda->memory_bytes = (int64_t)about.totalGlobalMem;
    DT_CUDA(cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking), "make a stream");
    DT_CUDA(cuda, cudaMalloc((void **)(void *)&cuda->workspace, (size_t)DT_CUDA_WORKSPACE_BYTES),
            "reserve its work space");
    DT_TRY(make_slots(cuda));
    DT_TRY(dt_cuda_biases_new(cuda));
    cublasStatus_t code = cublasLtCreate(&cuda->lt);
    if (code != CUBLAS_STATUS_SUCCESS)
        return dt_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? DT_ENOMEM : DT_ELIB,
                       "cuBLASLt does not start on GPU %d: %s", cuda->base.index,
                       cublasLtGetStatusName(code));
    return DT_OK;
}

static void free_all(struct dt_cuda *cuda)
{
#ifdef DT_HAVE_CUDNN
    dt_cuda_sdpa_close(cuda->sdpa);
#endif
    if (cuda->lt != NULL)
        (void)cublasLtDestroy(cuda->lt);
    for (int i = 0; i < cuda->mark_count; i++)
        (void)cudaEventDestroy(cuda->marks[i]);
    for (int i = 0; i < DT_CUDA_SLOTS; i++)
        if (cuda->slot_done[i] != NULL)
            (void)cudaEventDestroy(cuda->slot_done[i]);
    (void)cudaFree(cuda->workspace);
    (void)cudaFreeHost(cuda->pinned);
    if (cuda->stream != NULL)
        (void)cudaStreamDestroy(cuda->stream);
    (void)cudaGetLastError();
}

/* On a lost device the driver frees the memory at the end of the process. */
static void cuda_close(struct dt_device *device)
{
    if (device == NULL)
        return;
    struct dt_cuda *cuda = (struct dt_cuda *)(void *)device;
    (void)cudaSetDevice(device->index);
    if (cuda->stream == NULL || cuda_quiet(cuda))
        free_all(cuda);
    dt_cuda_biases_free(cuda);
    dt_cuda_gemm_forget(cuda);
    free(cuda->marks);
    free(cuda);
}

static dt_status cuda_open(int index, struct dt_device **device)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || index < 0 || index >= count) {
        (void)cudaGetLastError();
        return dt_fail(DT_EUNSUP, "there is no GPU %d: %s", index,
                       code != cudaSuccess ? cudaGetErrorString(code)
                       : count == 0        ? "none was found"
                                           : "they are numbered from 0, and fewer");
    }
    struct dt_cuda *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a device");
    made->base = (struct dt_device){&dt_compute_cuda, index};
    made->last = "nothing";
    (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* naps of waits end 50 us late otherwise */
    dt_status status = make_device(made);
    if (status != DT_OK) {
        cuda_close(&made->base);
        return status;
    }
    *device = &made->base;
    return DT_OK;
}

static const char *cuda_model(struct dt_device *device)
{
    return ((struct dt_cuda *)(void *)device)->model;
}

static dt_status cuda_memory(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    size_t there = 0, total = 0;
    DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaMemGetInfo(&there, &total), "tell its memory");
    *free_bytes = (int64_t)there;
    *total_bytes = (int64_t)total;
    return DT_OK;
}

static void cuda_threads(struct dt_device *device, int count)
{
    (void)device;
    (void)count;
}

/* The table, and the queries that need no open device. */

/* bfloat16 and tf32 products, and asynchronous copies to shared memory. */
enum { CAPABILITY = 80 };

static int cuda_count(void)
{
    int there = 0;
    if (cudaGetDeviceCount(&there) != cudaSuccess)
        there = 0;
    (void)cudaGetLastError();
    return there;
}

static bool cuda_usable(enum dt_dtype dtype)
{
    (void)dtype;
    int devices = cuda_count(), least = 1000;
    for (int i = 0; i < devices; i++) {
        int major = 0, minor = 0;
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) != cudaSuccess ||
            cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i) != cudaSuccess)
            least = 0;
        least = 10 * major + minor < least ? 10 * major + minor : least;
    }
    (void)cudaGetLastError();
    return devices > 0 && least >= CAPABILITY;
}

enum { VERSIONS = 8, LONGEST = 256 };
static struct dt_version rows[VERSIONS];
static char texts[VERSIONS][LONGEST];
static int row_count;

static void add_version(const char *name, const char *format, int major, int minor, int patch)
{
    snprintf(texts[row_count], LONGEST, format, major, minor, patch);
    rows[row_count] = (struct dt_version){name, texts[row_count]};
    row_count++;
}

static void ask_versions(void)
{
    int version = 0, lt = (int)cublasLtGetVersion();
    struct cudaDeviceProp device;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess)
        add_version("cuda", "%d.%d", version / 1000, version % 1000 / 10, 0);
    if (cudaDriverGetVersion(&version) == cudaSuccess)
        add_version("cuda_driver", "%d.%d", version / 1000, version % 1000 / 10, 0);
    add_version("cublaslt", "%d.%d.%d", lt / 10000, lt % 10000 / 100, lt % 100);
    for (int i = 0; i < DT_ATTENTIONS; i++)
        if (dt_cuda_attention_version(i)[0] != '\0')
            rows[row_count++] =
                (struct dt_version){dt_attention_texts[i], dt_cuda_attention_version(i)};
    if (cudaGetDeviceProperties(&device, 0) == cudaSuccess) {
        snprintf(texts[row_count], LONGEST, "%s", device.name);
        rows[row_count] = (struct dt_version){"device", texts[row_count]};
        row_count++;
    }
    (void)cudaGetLastError();
}

static const struct dt_version *cuda_versions(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_versions);
    return rows;
}

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

/* Without a profiler this is a load and a branch. */
static void cuda_range(struct dt_device *device, const char *name)
{
    (void)device;
    if (name != NULL)
        (void)nvtxRangePushA(name);
    else
        (void)nvtxRangePop();
}
#define RANGE cuda_range
#else
#define RANGE NULL
#endif

static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    return (int64_t)row * in * dt_dtype_bytes(dtype);
}

const struct dt_compute dt_compute_cuda = {
    .name = "cuda",
    .usable = cuda_usable,
    .versions = cuda_versions,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .model = cuda_model,
    .memory.space = cuda_memory,
    .threads = cuda_threads,
    .memory.alloc = dt_cuda_alloc,
    .memory.release = dt_cuda_release,
    .memory.put = dt_cuda_put,
    .memory.get = cuda_get,
    .memory.fill = cuda_fill,
    .finish = dt_cuda_finish,
    .timeline.mark = dt_cuda_mark,
    .timeline.times = dt_cuda_times,
    .timeline.clock = cuda_clock,
    .timeline.clock_rate = cuda_clock_rate,
    .health.read = cuda_health,
    .health.reason = dt_nvml_reason,
    .timeline.range = RANGE,
    .graph.record = cuda_record,
    .graph.recorded = cuda_recorded,
    .graph.replay = cuda_replay,
    .graph.free = cuda_graph_free,
    .linear.pack = cuda_pack,
    .linear.weight_row = weight_row,
    .linear.make = dt_cuda_linear_new,
    .linear.apply = dt_cuda_linear,
    .linear.free = dt_cuda_linear_free,
    .attention.ready = cuda_attention_ready,
    .attention.run = dt_cuda_attention,
    .attention.merge = cuda_merge,
    .rows.narrow = cuda_narrow,
    .rows.modulate = cuda_modulate,
    .rows.copy = cuda_copy,
    .rows.sum = cuda_sum,
    .rows.sinusoid = cuda_sinusoid,
    .rows.condition = cuda_condition,
    .rows.position = cuda_position,
    .rows.guide = cuda_guide,
    .rows.sampler = cuda_sampler,
    .peak = cuda_peak,
};
