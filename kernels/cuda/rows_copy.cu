/* SPDX-License-Identifier: MIT */
/* Kernels that move activations: strided copies, narrowing, sums of words. */
#include "kernels/cuda/rows.cuh"

#define THREADS 256

/* I: integer type for the index of a piece, as small as possible, since division dominates
 * a copy's arithmetic. */
template <class V, class I> struct pieces {
    V *to;
    const V *from;
    I count[3], width; /* width: pieces of a row */
    int64_t to_stride[3], from_stride[3];
    I total;
};

template <class V, class I> static __global__ void copy(struct pieces<V, I> op)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < (int64_t)op.total;
         k += step) {
        I row = (I)k / op.width, column = (I)k % op.width;
        I outer = row / op.count[2], i2 = row % op.count[2];
        I i0 = outer / op.count[1], i1 = outer % op.count[1];
        int64_t to = i0 * op.to_stride[0] + i1 * op.to_stride[1] + i2 * op.to_stride[2];
        int64_t from = i0 * op.from_stride[0] + i1 * op.from_stride[1] + i2 * op.from_stride[2];
        op.to[to + column] = op.from[from + column];
    }
}

template <class V, class I> static int copy_in(const struct dt_copy *op, void *stream)
{
    struct pieces<V, I> pieces;
    int size = (int)sizeof(V);
    pieces.to = (V *)op->to;
    pieces.from = (const V *)op->from;
    for (int i = 0; i < 3; i++) {
        pieces.count[i] = (I)op->count[i];
        pieces.to_stride[i] = op->to_stride[i] * op->element / size;
        pieces.from_stride[i] = op->from_stride[i] * op->element / size;
    }
    pieces.width = (I)(op->width * op->element / size);
    pieces.total = pieces.count[0] * pieces.count[1] * pieces.count[2] * pieces.width;
    unsigned blocks = dt_blocks((int64_t)pieces.total, THREADS);
    return DT_LAUNCH((copy<V, I>), blocks, THREADS, 0, stream, pieces);
}

template <class V> static int copy_as(const struct dt_copy *op, int64_t bytes, void *stream)
{
    return bytes / (int64_t)sizeof(V) < 0x7fffffff ? copy_in<V, uint32_t>(op, stream)
                                                   : copy_in<V, uint64_t>(op, stream);
}

/* Copies in the largest pieces that divide all row addresses and the row length. */
int dt_launch_copy(const struct dt_copy *op, void *stream)
{
    int64_t bytes = op->count[0] * op->count[1] * op->count[2] * op->width * op->element;
    if (bytes == 0)
        return 0;
    uint64_t all = (uint64_t)(uintptr_t)op->to | (uint64_t)(uintptr_t)op->from |
                   (uint64_t)(op->width * op->element);
    for (int i = 0; i < 3; i++)
        if (op->count[i] > 1)
            all |= (uint64_t)(op->to_stride[i] * op->element) |
                   (uint64_t)(op->from_stride[i] * op->element);
    if (all % 16 == 0)
        return copy_as<uint4>(op, bytes, stream);
    if (all % 8 == 0)
        return copy_as<uint2>(op, bytes, stream);
    if (all % 4 == 0)
        return copy_as<uint32_t>(op, bytes, stream);
    return all % 2 == 0 ? copy_as<uint16_t>(op, bytes, stream)
                        : copy_as<uint8_t>(op, bytes, stream);
}

/* Eight elements at a time where both addresses allow, the rest one by one. */
template <class T> static __global__ void narrow(const float *x, T *y, int64_t n, int64_t eights)
{
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = first; i < eights; i += step) {
        float v[8];
        dt_load8(v, x + i * 8);
        dt_store8(y + i * 8, v);
    }
    for (int64_t i = eights * 8 + first; i < n; i += step)
        dt_narrow_to(y + i, x[i]);
}

int dt_launch_narrow(enum dt_dtype dtype, const float *x, void *y, int64_t n, void *stream)
{
    if (n == 0)
        return 0;
    int64_t eights = dt_aligned16(x) && dt_aligned16(y) ? n / 8 : 0;
    unsigned blocks = dt_blocks(eights > 0 ? eights : n, THREADS);
    if (dtype == DT_BFLOAT16)
        return DT_LAUNCH(narrow<uint16_t>, blocks, THREADS, 0, stream, x, (uint16_t *)y, n, eights);
    return DT_LAUNCH(narrow<float>, blocks, THREADS, 0, stream, x, (float *)y, n, eights);
}

#define SUM_BLOCKS 1024

/* Integer sums do not depend on the order. */
static __global__ void sum_words(const void *data, int64_t wide, int64_t words, uint64_t *sum)
{
    __shared__ uint64_t parts[THREADS];
    int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * THREADS;
    uint64_t mine = 0;
    for (int64_t i = first; i < wide; i += step) {
        uint4 v = dt_load16((const char *)data + i * 16);
        mine += (uint64_t)(v.x & 0xffffu) + (v.y & 0xffffu) + (v.z & 0xffffu) + (v.w & 0xffffu);
        mine += (uint64_t)(v.x >> 16) + (v.y >> 16) + (v.z >> 16) + (v.w >> 16);
    }
    for (int64_t i = wide * 8 + first; i < words; i += step)
        mine += ((const uint16_t *)data)[i];
    parts[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd((unsigned long long *)sum, (unsigned long long)parts[0]);
}

int dt_launch_sum(const void *data, int64_t bytes, uint64_t *sum, void *stream)
{
    int64_t words = bytes / 2, wide = dt_aligned16(data) ? bytes / 16 : 0;
    if (words == 0)
        return 0;
    unsigned blocks = dt_blocks(wide > 0 ? wide : words, THREADS);
    if (blocks > SUM_BLOCKS)
        blocks = SUM_BLOCKS;
    return DT_LAUNCH(sum_words, blocks, THREADS, 0, stream, data, wide, words, sum);
}
