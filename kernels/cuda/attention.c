/* SPDX-License-Identifier: MIT */
/* Attention by our own kernels or by cuDNN's, as the plan selects. */
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

static dt_status cudnn_ready(struct dt_cuda *cuda, enum dt_dtype dtype,
                             const struct dt_attention *op)
{
#ifdef DT_HAVE_CUDNN
    if (dtype != DT_BFLOAT16)
        return dt_fail(DT_EUNSUP, "attention=cudnn needs bfloat16, not %s", dt_dtype_text(dtype));
    if (cuda->sdpa == NULL)
        DT_TRY(dt_cuda_sdpa_open(cuda->stream, &cuda->sdpa));
    return dt_cuda_sdpa_ready(cuda->sdpa, op, DT_CUDA_LIBRARY_BYTES);
#else
    (void)cuda;
    (void)dtype;
    (void)op;
    return dt_fail(DT_EUNSUP, "attention=cudnn, but cuDNN was not built in");
#endif
}

dt_status dt_cuda_attention_ready(struct dt_device *device, enum dt_dtype dtype,
                                  const struct dt_attention *op)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (op->kind == DT_ATTENTION_OWN)
        return own_ready(cuda, dtype, op);
    return cudnn_ready(cuda, dtype, op);
}

void dt_cuda_attention(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda == NULL)
        return;
#ifdef DT_HAVE_CUDNN
    if (op->kind == DT_ATTENTION_CUDNN) {
        cuda->last = "attend by cuDNN";
        dt_error_keep(&cuda->error,
                      dt_cuda_sdpa_run(cuda->sdpa, op, cuda->workspace, DT_CUDA_LIBRARY_BYTES));
        return;
    }
#endif
    dt_cuda_keep(cuda, dt_launch_attention(dtype, op, cuda->stream), "attend");
}
