/* SPDX-License-Identifier: MIT */
/* Selects the compiled instance for a call. */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_float.cuh"

#define DT_ATTN_HEADS(q, kv, stages, warps)                                                        \
    ROW(q, kv, stages, warps, 64)                                                                  \
    ROW(q, kv, stages, warps, 72)                                                                  \
    ROW(q, kv, stages, warps, 88)                                                                  \
    ROW(q, kv, stages, warps, 128)
#define DT_ATTN_TILE(q, kv, stages, warps) DT_ATTN_HEADS(q, kv, stages, warps)

#define ROW(q, kv, stages, warps, head)                                                            \
    extern const struct dt_attention_build DT_ATTENTION_NAME(q, kv, stages, warps, head);
#include "model/tiles_cuda.def"
#undef ROW

static const struct dt_attention_build *const builds[] = {
#define ROW(q, kv, stages, warps, head) &DT_ATTENTION_NAME(q, kv, stages, warps, head),
#include "model/tiles_cuda.def"
#undef ROW
};
static const int build_count = sizeof builds / sizeof *builds;

/* The instance for the shape; NULL if there is none. */
static const struct dt_attention_build *find_build(const struct dt_attention *op)
{
    for (int i = 0; i < build_count; i++) {
        const struct dt_attention_build *build = builds[i];
        if (build->tile_q == op->tile.tile_q && build->tile_kv == op->tile.tile_kv &&
            build->stages == op->tile.stages && build->warps == op->tile.warps &&
            build->head == op->head && build->kernel != NULL)
            return build;
    }
    return NULL;
}

/* All rows begin at multiples of 16 bytes. */
static bool strides_fit(const struct dt_attention *op)
{
    return ((op->q_at.sequence | op->q_at.row | op->kv_at.sequence | op->kv_at.row |
             op->out_at.sequence | op->out_at.row) &
            7) == 0;
}

static bool pointers_fit(const struct dt_attention *op)
{
    return (((uintptr_t)op->q | (uintptr_t)op->k | (uintptr_t)op->v | (uintptr_t)op->out) & 15) ==
           0;
}

int dt_launch_attention_ready(enum dt_dtype dtype, const struct dt_attention *op)
{
    if (dtype != DT_BFLOAT16)
        return dt_attention_float_ready(op);
    const struct dt_attention_build *build = find_build(op);
    if (build == NULL || !strides_fit(op))
        return -1;
    return (int)cudaFuncSetAttribute((const void *)build->kernel,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     build->shared_bytes);
}

int dt_launch_attention(enum dt_dtype dtype, const struct dt_attention *op, void *stream)
{
    if (op->queries == 0 || op->heads == 0 || op->sequences == 0)
        return 0;
    if (dtype != DT_BFLOAT16)
        return dt_attention_float(op, stream);
    const struct dt_attention_build *build = find_build(op);
    if (build == NULL || !strides_fit(op) || !pointers_fit(op))
        return (int)cudaErrorInvalidValue;
    return build->start(op, stream);
}

bool dt_attention_instance(int index, struct dt_attention_instance *out)
{
    for (int i = 0; i < build_count; i++) {
        const struct dt_attention_build *build = builds[i];
        if (build->kernel == NULL || index-- > 0)
            continue;
        cudaFuncAttributes attributes = {};
        int blocks = 0;
        const void *kernel = (const void *)build->kernel;
        if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess ||
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 build->shared_bytes) != cudaSuccess ||
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                &blocks, kernel, 32 * build->warps, (size_t)build->shared_bytes) != cudaSuccess)
            (void)cudaGetLastError();
        *out = {build->tile_q,       build->tile_kv,
                build->stages,       build->warps,
                build->head,         attributes.numRegs,
                build->shared_bytes, (int)attributes.localSizeBytes,
                32 * build->warps,   blocks};
        return true;
    }
    return false;
}
