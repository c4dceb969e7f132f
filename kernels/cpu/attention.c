/* SPDX-License-Identifier: MIT */
/* One unit of work is a tile of queries of one sequence and head; units share nothing. */
#include "kernels/cpu/cpu_int.h"
#include "kernels/cpu/simd.h"

#include <math.h>
#include <omp.h>
#include <stddef.h>

/* Every tile works: tiles are loop bounds here. */
dt_status dt_cpu_attention_ready(struct dt_device *device, enum dt_dtype dtype,
                                 const struct dt_attention *op)
{
    (void)device;
    if (op->tile.tile_q < 1 || op->tile.tile_kv < 1)
        return dt_fail(DT_EUNSUP, "tile_q=%d x tile_kv=%d is no tile", op->tile.tile_q,
                       op->tile.tile_kv);
    if (dt_simd(dtype) == NULL)
        return dt_fail(DT_EUNSUP, "this processor has no attention in %s", dt_dtype_text(dtype));
    return DT_OK;
}

void dt_cpu_attention(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int tiles = (op->queries + op->tile.tile_q - 1) / op->tile.tile_q;
    int units = op->sequences * op->heads * tiles;
#pragma omp parallel for schedule(dynamic)
    for (int unit = 0; unit < units; unit++) {
        int pair = unit / tiles, thread = omp_get_thread_num();
        simd->attention(op, pair / op->heads, pair % op->heads, unit % tiles * op->tile.tile_q,
                        op->scratch + thread * op->scratch_floats);
        if (thread == 0 && op->poll != NULL)
            op->poll(op->poll_arg);
    }
}

static void merge_row(const struct dt_merge *op, const struct dt_simd *simd, int pair, int row)
{
    int sequence = pair / op->heads, head = pair % op->heads;
    int64_t at = (int64_t)pair * op->queries + row;
    float a = op->lse[at], b = op->part_lse[at];
    float top = a > b ? a : b;
    float wa = expf(a - top), wb = expf(b - top);
    int64_t part_row = (int64_t)op->heads * op->head, column = (int64_t)head * op->head;
    int64_t to = sequence * op->out_at.sequence + row * op->out_at.row + column;
    int64_t from = ((int64_t)sequence * op->queries + row) * part_row + column;
    int bytes = dt_dtype_bytes(simd->dtype);
    simd->blend((char *)op->out + to * bytes, wa / (wa + wb), (const char *)op->part + from * bytes,
                wb / (wa + wb), op->head);
    op->lse[at] = top + logf(wa + wb);
}

void dt_cpu_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int pairs = op->sequences * op->heads;
#pragma omp parallel for collapse(2) schedule(static)
    for (int pair = 0; pair < pairs; pair++)
        for (int row = 0; row < op->queries; row++)
            merge_row(op, simd, pair, row);
}
