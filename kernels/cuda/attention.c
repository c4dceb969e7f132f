/* SPDX-License-Identifier: MIT */
/* Attention by our own kernels or by a library's, as the plan selects. */
#include "kernels/cuda/cuda_int.h"
#include "kernels/cuda/launch.h"
#ifdef DT_HAVE_CUDNN
#include "kernels/cuda/cudnn.h"
#endif

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

dt_status dt_cuda_attention_ready(struct dt_device *device, enum dt_dtype dtype,
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
