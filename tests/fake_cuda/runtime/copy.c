/* SPDX-License-Identifier: MIT */
/* Copies and fills. From pageable memory what is copied is what was there at the call; from pinned
 * memory it is what is there when the stream gets to it. To pageable memory
 * a copy is waited for. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, rows;
    enum cudaMemcpyKind kind;
    void *staged; /* owned */
};

static size_t extent(size_t pitch, const struct copy *copy)
{
    return copy->rows > 0 ? (copy->rows - 1) * pitch + copy->width : 0;
}

static bool to_device(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

static bool from_device(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static cudaError_t run(struct CUstream_st *stream, void *data)
{
    (void)stream;
    struct copy *copy = data;
    char *to = copy->to;
    const char *from = copy->staged != NULL ? copy->staged : copy->from;
    if (to_device(copy->kind))
        to = fake_see(NULL, to, extent(copy->to_pitch, copy));
    if (from_device(copy->kind))
        from = fake_see(NULL, from, extent(copy->from_pitch, copy));
    if (to == NULL || from == NULL)
        return cudaErrorIllegalAddress;
    for (size_t i = 0; i < copy->rows; i++)
        memmove(to + i * copy->to_pitch, from + i * copy->from_pitch, copy->width);
    return cudaSuccess;
}

static void drop(void *data)
{
    struct copy *copy = data;
    free(copy->staged);
    copy->staged = NULL;
}

static bool inside(const void *memory, size_t bytes)
{
    struct fake_device *device;
    return fake_block_at(memory, bytes, &device) != NULL;
}

static cudaError_t check(struct copy *copy)
{
    if (copy->kind == cudaMemcpyDefault)
        copy->kind =
            fake_is_device(copy->to)
                ? (fake_is_device(copy->from) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                : (fake_is_device(copy->from) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
    if (copy->rows > 1 && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
        return cudaErrorInvalidPitchValue;
    if (to_device(copy->kind) ? !inside(copy->to, extent(copy->to_pitch, copy))
                              : fake_is_device(copy->to))
        return cudaErrorInvalidValue;
    if (from_device(copy->kind) ? !inside(copy->from, extent(copy->from_pitch, copy))
                                : fake_is_device(copy->from))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

static cudaError_t queue(struct copy *copy, cudaStream_t handle, bool wait)
{
    if (copy->width == 0 || copy->rows == 0)
        return cudaSuccess;
    cudaError_t error = check(copy);
    struct CUstream_st *stream = fake_stream_at(handle);
    if (error != cudaSuccess || stream == NULL)
        return error != cudaSuccess ? error : cudaErrorInvalidResourceHandle;
    size_t from = extent(copy->from_pitch, copy), to = extent(copy->to_pitch, copy);
    bool stage = !from_device(copy->kind) && !fake_pinned(copy->from, from);
    wait = wait || (!to_device(copy->kind) && !fake_pinned(copy->to, to));
    if (stream->capture != NULL && (stage || wait)) {
        stream->capture->invalid = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    if (wait && (error = fake_unsafe()) != cudaSuccess)
        return error;
    if (stage) {
        copy->staged = malloc(from);
        if (copy->staged == NULL)
            abort();
        memcpy(copy->staged, copy->from, from);
    }
    struct fake_task task = {run, drop, sizeof *copy};
    error = fake_put(handle, FAKE_WORK, &task, copy);
    return error == cudaSuccess && wait ? fake_wait_idle(stream->device, stream) : error;
}

static cudaError_t start(const char *name, struct copy *copy, cudaStream_t stream, bool wait)
{
    cudaError_t error = fake_enter(name);
    fake_lock();
    if (error == cudaSuccess)
        error = queue(copy, stream, wait);
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    struct copy copy = {to, from, bytes, bytes, bytes, 1, kind, NULL};
    return start(__func__, &copy, stream, false);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct copy copy = {to, from, bytes, bytes, bytes, 1, kind, NULL};
    return start(__func__, &copy, NULL, true);
}

/* NOLINTNEXTLINE(readability-function-size): the library's signature */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    struct copy copy = {to, from, to_pitch, from_pitch, width, rows, kind, NULL};
    return start(__func__, &copy, stream, false);
}

struct fill {
    void *to;
    size_t bytes;
    int byte;
};

static cudaError_t run_fill(struct CUstream_st *stream, void *data)
{
    const struct fill *fill = data;
    void *to = fake_see(stream->device, fill->to, fill->bytes);
    if (to == NULL)
        return cudaErrorIllegalAddress;
    memset(to, fill->byte, fill->bytes);
    return cudaSuccess;
}

static cudaError_t fill(const char *name, void *to, int byte, size_t bytes, cudaStream_t stream)
{
    struct fill data = {to, bytes, byte};
    struct fake_task task = {run_fill, NULL, sizeof data};
    cudaError_t error = fake_enter(name);
    fake_lock();
    if (error == cudaSuccess && bytes > 0)
        error =
            inside(to, bytes) ? fake_put(stream, FAKE_WORK, &task, &data) : cudaErrorInvalidValue;
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    return fill(__func__, to, byte, bytes, stream);
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    return fill(__func__, to, byte, bytes, NULL);
}

struct call {
    cudaHostFn_t function;
    void *arg;
};

static cudaError_t run_call(struct CUstream_st *stream, void *data)
{
    (void)stream;
    const struct call *call = data;
    fake_callback(true);
    call->function(call->arg);
    fake_callback(false);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *arg)
{
    struct call data = {function, arg};
    struct fake_task task = {run_call, NULL, sizeof data};
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_put(stream, FAKE_WORK, &task, &data);
    fake_unlock();
    return fake_leave(error);
}
