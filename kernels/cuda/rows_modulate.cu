/* SPDX-License-Identifier: MIT */
/* Gated residual, LayerNorm and modulation in one pass: a block has one row, kept in registers
 * between the two sums (the mean, then the squares about it, since the one-pass formula cancels),
 * in groups of eight channels.
 *
 * T is the type of activations, X that of the residual stream, which is rounded when it is
 * stored and not before. */
#include "kernels/cuda/rows.cuh"

#define MOST 1024 /* threads of a block */

/* Start addresses of a row's parts. */
template <class T, class X> struct row {
    X *x;
    const T *branch;
    const float *gate, *shift, *scale;
    T *y;
};

template <class T, class X>
static __device__ struct row<T, X> row_of(const struct dt_modulate &op, int64_t i) {
    int64_t sequence = i / op.tokens;
    struct row<T, X> row;
    row.x = (X *)op.x + i * op.channels;
    row.branch = op.branch == NULL ? NULL : (const T *)op.branch + i * op.channels;
    row.gate = op.gate + sequence * op.gate_stride;
    row.shift = op.shift + sequence * op.stride;
    row.scale = op.scale + sequence * op.stride;
    row.y = (T *)op.y + i * op.channels;
    return row;
}

/* Loads x[8], adds the gated branch and stores the sum. */
template <class T, class X>
static __device__ void residual_of_8(float x[8], const struct row<T, X> &row, int at)
{
    float gate[8], branch[8];
    dt_load8(x, row.x + at);
    if (row.branch == NULL)
        return;
    dt_load8(gate, row.gate + at);
    dt_load8(branch, row.branch + at);
    for (int k = 0; k < 8; k++)
        x[k] = fmaf(gate[k], branch[k], x[k]);
    dt_store8(row.x + at, x);
}

template <class T, class X>
static __device__ void modulate_by_8(const float x[8], const struct row<T, X> &row, int at,
                                     float mean, float inverse)
{
    float y[8], scale[8], shift[8];
    dt_load8(scale, row.scale + at);
    dt_load8(shift, row.shift + at);
    for (int k = 0; k < 8; k++)
        y[k] = fmaf((x[k] - mean) * inverse, scale[k] + 1.0f, shift[k]);
    dt_store8(row.y + at, y);
}

static __device__ float inverse_of(float squares, int channels)
{
    return 1.0f / sqrtf(squares / (float)channels + 1e-6f);
}

/* EACH: groups of eight channels per thread. */
template <class T, class X, int EACH>
static __global__ void __launch_bounds__(MOST) modulate_rows(struct dt_modulate op)
{
    __shared__ float parts[2][MOST / DT_WARP];
    struct row<T, X> row = row_of<T, X>(op, blockIdx.x);
    float x[EACH][8], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int at = (i * (int)blockDim.x + (int)threadIdx.x) * 8;
        if (at < op.channels) {
            residual_of_8<T, X>(x[i], row, at);
            for (int k = 0; k < 8; k++)
                sum += x[i][k];
        }
    }
    float mean = dt_block_sum(sum, parts[0]) / (float)op.channels;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if ((i * (int)blockDim.x + (int)threadIdx.x) * 8 < op.channels)
            for (int k = 0; k < 8; k++)
                squares = fmaf(x[i][k] - mean, x[i][k] - mean, squares);
    float inverse = inverse_of(dt_block_sum(squares, parts[1]), op.channels);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int at = (i * (int)blockDim.x + (int)threadIdx.x) * 8;
        if (at < op.channels)
            modulate_by_8<T, X>(x[i], row, at, mean, inverse);
    }
}

/* The sum of one channel, unrounded. */
template <class T, class X> static __device__ float residual1(const struct row<T, X> &row, int at)
{
    float x = dt_widen(row.x[at]);
    return row.branch == NULL ? x : fmaf(row.gate[at], dt_widen(row.branch[at]), x);
}

/* For any shape and address: the sums are computed again where they are needed, and stored last. */
template <class T, class X> static __global__ void modulate_plain(struct dt_modulate op)
{
    __shared__ float parts[2][MOST / DT_WARP];
    struct row<T, X> row = row_of<T, X>(op, blockIdx.x);
    float sum = 0.0f, squares = 0.0f;
    for (int at = threadIdx.x; at < op.channels; at += blockDim.x)
        sum += residual1<T, X>(row, at);
    float mean = dt_block_sum(sum, parts[0]) / (float)op.channels;
    for (int at = threadIdx.x; at < op.channels; at += blockDim.x) {
        float off = residual1<T, X>(row, at) - mean;
        squares = fmaf(off, off, squares);
    }
    float inverse = inverse_of(dt_block_sum(squares, parts[1]), op.channels);
    for (int at = threadIdx.x; at < op.channels; at += blockDim.x) {
        float x = residual1<T, X>(row, at);
        if (row.branch != NULL)
            dt_narrow_to(row.x + at, x);
        dt_narrow_to(row.y + at, fmaf((x - mean) * inverse, row.scale[at] + 1.0f, row.shift[at]));
    }
}

static bool in_eights(const struct dt_modulate *op)
{
    return op->channels % 8 == 0 && op->channels <= MOST * 4 * 8 && op->stride % 4 == 0 &&
           op->gate_stride % 4 == 0 && dt_aligned16(op->x) && dt_aligned16(op->branch) &&
           dt_aligned16(op->gate) && dt_aligned16(op->shift) && dt_aligned16(op->scale) &&
           dt_aligned16(op->y);
}

/* Blocks of at most 256 threads with up to four groups of eight per thread; longer
 * rows use more threads. */
template <class T, class X> static int launch(const struct dt_modulate *op, void *stream)
{
    unsigned rows = (unsigned)(op->sequences * op->tokens);
    if (rows == 0)
        return 0;
    if (!in_eights(op))
        return DT_LAUNCH((modulate_plain<T, X>), rows, 256, 0, stream, *op);
    int eights = op->channels / 8, each = eights <= 256 ? 1 : eights <= 512 ? 2 : 4;
    unsigned threads = (unsigned)((eights + each * DT_WARP - 1) / (each * DT_WARP) * DT_WARP);
    if (each == 1)
        return DT_LAUNCH((modulate_rows<T, X, 1>), rows, threads, 0, stream, *op);
    if (each == 2)
        return DT_LAUNCH((modulate_rows<T, X, 2>), rows, threads, 0, stream, *op);
    return DT_LAUNCH((modulate_rows<T, X, 4>), rows, threads, 0, stream, *op);
}

int dt_launch_modulate(enum dt_dtype dtype, const struct dt_modulate *op, void *stream)
{
    if (dtype != DT_BFLOAT16)
        return launch<float, float>(op, stream);
    return op->stream == DT_BFLOAT16 ? launch<uint16_t, uint16_t>(op, stream)
                                     : launch<uint16_t, float>(op, stream);
}
