/* SPDX-License-Identifier: MIT */
/* The launchers of kernels/cuda/launch.h: a copy of the arguments is queued; when it runs, its
 * addresses become those that the streams may use (all bytes of each must lie in one block of the
 * stream's device) and the CPU back end computes. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include "kernels/cuda/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct launched {
    enum dt_dtype dtype; /* of activations; float32 and tf32 compute alike here */
    union {
        struct dt_modulate modulate;
        struct dt_merge merge;
        struct dt_copy copy;
        struct dt_sinusoid sinusoid;
        struct dt_condition condition;
        struct dt_position position;
        struct dt_guide guide;
        struct dt_sampler sampler;
        struct {
            const void *from;
            void *to;
            int64_t n;
            enum dt_activation act;
        } plain;
    } op;
};

struct dt_device *fake_cpu(struct CUstream_st *stream)
{
    if (stream->compute == NULL) {
        struct dt_device *device = NULL;
        if (dt_compute_cpu.open(0, &device) != DT_OK)
            abort();
        dt_compute_cpu.threads(device, 1);
        stream->compute = device;
    }
    return stream->compute;
}

void fake_compute_close(struct CUstream_st *stream)
{
    if (stream->compute != NULL)
        dt_compute_cpu.close(stream->compute);
    free(stream->scratch);
}

bool fake_see_field(const struct CUstream_st *stream, const void *field, int64_t bytes)
{
    void *pointer;
    memcpy(&pointer, field, sizeof pointer);
    if (pointer == NULL)
        return true;
    pointer = fake_see(stream->device, pointer, (size_t)(bytes > 0 ? bytes : 1));
    memcpy((void *)(uintptr_t)field, &pointer, sizeof pointer);
    return pointer != NULL;
}

static int64_t bytes_of(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? 2 : 4;
}

static int64_t size_of(const struct launched *all)
{
    return bytes_of(all->dtype);
}

static int start(const char *name, cudaError_t (*run)(struct CUstream_st *, void *),
                 struct launched *all, void *stream)
{
    struct fake_task task = {run, NULL, sizeof *all};
    if (all->dtype != DT_BFLOAT16)
        all->dtype = DT_FLOAT32;
    cudaError_t error = fake_enter(name);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_put(stream, FAKE_KERNEL, &task, all);
    fake_unlock();
    fake_leave(error);
    return (int)cudaGetLastError();
}

static cudaError_t narrow(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    if (!fake_see_field(stream, &all.op.plain.from, all.op.plain.n * 4) ||
        !fake_see_field(stream, &all.op.plain.to, all.op.plain.n * size_of(&all)))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.narrow(fake_cpu(stream), all.dtype, all.op.plain.from, all.op.plain.to,
                               all.op.plain.n);
    return cudaSuccess;
}

int dt_launch_narrow(enum dt_dtype dtype, const float *x, void *y, int64_t n, void *stream)
{
    struct launched all = {.dtype = dtype, .op.plain = {.from = x, .to = y, .n = n}};
    return start(__func__, narrow, &all, stream);
}

static cudaError_t modulate(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_modulate *op = &all.op.modulate;
    int64_t values = (int64_t)op->sequences * op->tokens * op->channels;
    int64_t gate = ((op->sequences - 1) * op->gate_stride + op->channels) * 4;
    int64_t shift = ((op->sequences - 1) * op->stride + op->channels) * 4;
    if (!fake_see_field(stream, &op->x, values * bytes_of(op->stream)) ||
        !fake_see_field(stream, &op->branch, values * size_of(&all)) ||
        (op->branch != NULL && !fake_see_field(stream, &op->gate, gate)) ||
        !fake_see_field(stream, &op->shift, shift) || !fake_see_field(stream, &op->scale, shift) ||
        !fake_see_field(stream, &op->y, values * size_of(&all)))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.modulate(fake_cpu(stream), all.dtype, op);
    return cudaSuccess;
}

int dt_launch_modulate(enum dt_dtype dtype, const struct dt_modulate *op, void *stream)
{
    struct launched all = {.dtype = dtype, .op.modulate = *op};
    return start(__func__, modulate, &all, stream);
}

static int64_t reach(const struct dt_strides *at, int sequences, int rows, int64_t width)
{
    return (sequences - 1) * at->sequence + (rows - 1) * at->row + width;
}

static cudaError_t merge(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_merge *op = &all.op.merge;
    int64_t width = (int64_t)op->heads * op->head, rows = (int64_t)op->sequences * op->queries;
    int64_t lse = rows * op->heads * 4;
    int64_t out = reach(&op->out_at, op->sequences, op->queries, width);
    if (!fake_see_field(stream, &op->out, out * size_of(&all)) ||
        !fake_see_field(stream, &op->lse, lse) ||
        !fake_see_field(stream, &op->part, rows * width * size_of(&all)) ||
        !fake_see_field(stream, &op->part_lse, lse))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.attention.merge(fake_cpu(stream), all.dtype, op);
    return cudaSuccess;
}

int dt_launch_merge(enum dt_dtype dtype, const struct dt_merge *op, void *stream)
{
    struct launched all = {.dtype = dtype, .op.merge = *op};
    return start(__func__, merge, &all, stream);
}

static int64_t span(const int64_t count[3], const int64_t stride[3], int64_t width)
{
    for (int i = 0; i < 3; i++)
        width += (count[i] - 1) * stride[i];
    return width;
}

static cudaError_t copy(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_copy *op = &all.op.copy;
    if (op->count[0] <= 0 || op->count[1] <= 0 || op->count[2] <= 0)
        return cudaSuccess;
    if (!fake_see_field(stream, &op->to, span(op->count, op->to_stride, op->width) * op->element) ||
        !fake_see_field(stream, &op->from,
                        span(op->count, op->from_stride, op->width) * op->element))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.copy(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_copy(const struct dt_copy *op, void *stream)
{
    struct launched all = {.op.copy = *op};
    return start(__func__, copy, &all, stream);
}

static cudaError_t sum(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    if (!fake_see_field(stream, &all.op.plain.from, all.op.plain.n) ||
        !fake_see_field(stream, &all.op.plain.to, 8))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.sum(fake_cpu(stream), all.op.plain.from, all.op.plain.n, all.op.plain.to);
    return cudaSuccess;
}

int dt_launch_sum(const void *data, int64_t bytes, uint64_t *total, void *stream)
{
    struct launched all = {.op.plain = {.from = data, .to = total, .n = bytes}};
    return start(__func__, sum, &all, stream);
}

static cudaError_t sinusoid(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_sinusoid *op = &all.op.sinusoid;
    if (!fake_see_field(stream, &op->time, op->count * 4) ||
        !fake_see_field(stream, &op->out, (int64_t)op->count * op->channels * 4))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.sinusoid(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_sinusoid(const struct dt_sinusoid *op, void *stream)
{
    struct launched all = {.op.sinusoid = *op};
    return start(__func__, sinusoid, &all, stream);
}

static cudaError_t condition(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_condition *op = &all.op.condition;
    int64_t bytes = (int64_t)op->count * op->channels * 4;
    if (!fake_see_field(stream, &op->x, bytes) ||
        !fake_see_field(stream, &op->label, op->count * 4) ||
        !fake_see_field(stream, &op->out, bytes))
        return cudaErrorIllegalAddress;
    int most = 0;
    for (int i = 0; i < op->count; i++)
        most = op->label[i] > most ? op->label[i] : most;
    if (!fake_see_field(stream, &op->table, (most + 1) * (int64_t)op->channels * 4))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.condition(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_condition(const struct dt_condition *op, void *stream)
{
    struct launched all = {.op.condition = *op};
    return start(__func__, condition, &all, stream);
}

static cudaError_t position(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_position *op = &all.op.position;
    int64_t image = (int64_t)op->tokens * op->channels * 4;
    if (!fake_see_field(stream, &op->x, op->images * image) ||
        !fake_see_field(stream, &op->position, image) ||
        !fake_see_field(stream, &op->out, op->sequences * image / 4 * bytes_of(op->stream)))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.position(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_position(const struct dt_position *op, void *stream)
{
    struct launched all = {.op.position = *op};
    return start(__func__, position, &all, stream);
}

static cudaError_t guide(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_guide *op = &all.op.guide;
    int64_t values = op->pixels * op->channels * 4;
    if (!fake_see_field(stream, &op->cond, ((op->pixels - 1) * op->cond_stride + op->guided) * 4) ||
        !fake_see_field(stream, &op->uncond,
                        ((op->pixels - 1) * op->uncond_stride + op->guided) * 4) ||
        (op->guided < op->channels && !fake_see_field(stream, &op->rest, values)) ||
        !fake_see_field(stream, &op->out, values))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.guide(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_guide(const struct dt_guide *op, void *stream)
{
    struct launched all = {.op.guide = *op};
    return start(__func__, guide, &all, stream);
}

static cudaError_t sampler(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    struct dt_sampler *op = &all.op.sampler;
    int64_t pixels = (int64_t)op->tokens * op->pixels * 4;
    if (!fake_see_field(stream, &op->latent, pixels * op->channels) ||
        !fake_see_field(stream, &op->eps, pixels * op->eps_channels) ||
        !fake_see_field(stream, &op->update, 8))
        return cudaErrorIllegalAddress;
    dt_compute_cpu.rows.sampler(fake_cpu(stream), op);
    return cudaSuccess;
}

int dt_launch_sampler(const struct dt_sampler *op, void *stream)
{
    struct launched all = {.op.sampler = *op};
    return start(__func__, sampler, &all, stream);
}

static cudaError_t activation(struct CUstream_st *stream, void *data)
{
    struct launched all = *(struct launched *)data;
    if (!fake_see_field(stream, &all.op.plain.to, all.op.plain.n * 4))
        return cudaErrorIllegalAddress;
    float *x = all.op.plain.to;
    for (int64_t i = 0; i < all.op.plain.n; i++)
        x[i] = all.op.plain.act == DT_ACT_GELU   ? fake_gelu(x[i])
               : all.op.plain.act == DT_ACT_SILU ? x[i] / (1.0f + expf(-x[i]))
                                                 : x[i];
    return cudaSuccess;
}

int dt_launch_activation(enum dt_activation act, float *x, int64_t n, void *stream)
{
    struct launched all = {.op.plain = {.to = x, .n = n, .act = act}};
    return start(__func__, activation, &all, stream);
}
