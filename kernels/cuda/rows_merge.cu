/* SPDX-License-Identifier: MIT */
/* Merges two parts of an attention. A block handles whole rows of a head, so that all its threads
 * have read a row's log-sum-exp before one of them overwrites it. */
#include "kernels/cuda/rows.cuh"

#define THREADS 256

/* out = a out + b part, one element or eight. */
template <class T> static __device__ void blend(T *out, float a, const T *part, float b)
{
    dt_narrow_to(out, fmaf(b, dt_widen(*part), dt_widen(*out) * a));
}

template <class T> static __device__ void blend8(T *out, float a, const T *part, float b)
{
    float x[8], y[8];
    dt_load8(x, out);
    dt_load8(y, part);
    for (int k = 0; k < 8; k++)
        x[k] = fmaf(b, y[k], x[k] * a);
    dt_store8(out, x);
}

/* `lanes` threads share a row of a head; a block has `each` rows. */
template <class T, int WIDTH>
static __global__ void merge_rows(struct dt_merge op, int64_t rows, int lanes, int each)
{
    int slot = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    int64_t i = (int64_t)blockIdx.x * each + slot;
    bool mine = slot < each && i < rows;
    int64_t head = mine ? i % op.heads : 0, row = mine ? i / op.heads % op.queries : 0;
    int64_t sequence = mine ? i / op.heads / op.queries : 0;
    int64_t at = (sequence * op.heads + head) * op.queries + row;
    float a = mine ? op.lse[at] : 0.0f, b = mine ? op.part_lse[at] : 0.0f, top = a > b ? a : b;
    float wa = expf(a - top), wb = expf(b - top), both = wa + wb;
    __syncthreads();
    if (!mine)
        return;
    T *out = (T *)op.out + sequence * op.out_at.sequence + row * op.out_at.row + head * op.head;
    const T *part = (const T *)op.part + i * op.head;
    for (int c = lane * WIDTH; c < op.head; c += lanes * WIDTH) {
        if (WIDTH == 8)
            blend8<T>(out + c, wa / both, part + c, wb / both);
        else
            blend<T>(out + c, wa / both, part + c, wb / both);
    }
    if (lane == 0)
        op.lse[at] = top + logf(both);
}

template <class T> static int launch(const struct dt_merge *op, void *stream)
{
    int64_t rows = (int64_t)op->sequences * op->queries * op->heads;
    if (rows == 0)
        return 0;
    int piece = 16 / (int)sizeof(T); /* elements in 16 bytes */
    bool eights = op->head % 8 == 0 && op->out_at.sequence % piece == 0 &&
                  op->out_at.row % piece == 0 && dt_aligned16(op->out) && dt_aligned16(op->part);
    int lanes = eights ? op->head / 8 : op->head;
    lanes = lanes > THREADS ? THREADS : lanes;
    int each = THREADS / lanes;
    unsigned blocks = dt_blocks(rows, each);
    if (eights)
        return DT_LAUNCH((merge_rows<T, 8>), blocks, THREADS, 0, stream, *op, rows, lanes, each);
    return DT_LAUNCH((merge_rows<T, 1>), blocks, THREADS, 0, stream, *op, rows, lanes, each);
}

int dt_launch_merge(enum dt_dtype dtype, const struct dt_merge *op, void *stream)
{
    return dtype == DT_BFLOAT16 ? launch<uint16_t>(op, stream) : launch<float>(op, stream);
}
