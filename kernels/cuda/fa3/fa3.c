/* SPDX-License-Identifier: MIT */
/* Attention by FlashAttention-3: picks the compiled head dimension. The log-sum-exp is always
 * written, so where none is wanted it goes to the libraries' workspace. */
#include "kernels/cuda/fa3/fa3.h"

#include "kernels/cuda/cuda_int.h"

static const struct head {
    int most;
    dt_fa3_launch *launch;
} heads[] = {
#define DT_FA3_HEAD(head) {head, dt_fa3_launch_##head},
#include "kernels/cuda/fa3/heads.def"
};

static const struct head *find_head(int head)
{
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (head <= heads[i].most)
            return &heads[i];
    return NULL;
}

static bool in_eights(struct dt_strides at)
{
    return at.sequence % 8 == 0 && at.row % 8 == 0;
}

static dt_status fa3_ready(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op)
{
    int major = 0, minor = 0, index = cuda->base.index;
    int64_t lse = (int64_t)sizeof(float) * op->sequences * op->heads * op->queries;
    (void)dtype;
    DT_CUDA(cuda, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index),
            "ask for the capability");
    DT_CUDA(cuda, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index),
            "ask for the capability");
    if (!dt_attention_runs(DT_ATTENTION_FA3, 10 * major + minor))
        return dt_fail(DT_EUNSUP, "attention=fa3 needs a GPU of capability 9.0, this one has %d.%d",
                       major, minor);
    if (op->head < 8 || op->head % 8 != 0 || find_head(op->head) == NULL)
        return dt_fail(DT_EUNSUP,
                       "attention=fa3: %d channels a head are no multiple of 8 up to 128",
                       op->head);
    if (op->keys < 1 || op->queries < 1)
        return dt_fail(DT_EUNSUP, "attention=fa3: there are %d queries and %d keys", op->queries,
                       op->keys);
    if (!in_eights(op->q_at) || !in_eights(op->kv_at) || !in_eights(op->out_at))
        return dt_fail(DT_EUNSUP, "attention=fa3: a stride is no multiple of 8 elements");
    if (op->lse == NULL && lse > DT_CUDA_LIBRARY_BYTES)
        return dt_fail(DT_EUNSUP, "attention=fa3: no room for %lld bytes of log-sum-exp",
                       (long long)lse);
    return DT_OK;
}

static int fa3_run(struct dt_cuda *cuda, enum dt_dtype dtype, const struct dt_attention *op)
{
    float *lse = op->lse != NULL ? op->lse : (float *)(void *)cuda->workspace;
    (void)dtype;
    return find_head(op->head)->launch(op, lse, cuda->stream);
}

static const char *fa3_version(void)
{
    return DT_FA3_VERSION;
}

const struct dt_cuda_attention dt_cuda_attention_fa3 = {fa3_ready, fa3_run, fa3_version};
