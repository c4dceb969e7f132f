/* SPDX-License-Identifier: MIT */
/* cudnn - attention by cuDNN: one SDPA_FWD operation of its backend API, a plan for each shape
 *
 * The plan of a shape is chosen by cuDNN's heuristics (mode A) among those whose workspace fits;
 * ready builds it and run only executes it. Nothing of cuDNN is created before the first ready, so
 * a worker that does not use it has no cost.
 *
 *     dt_cuda_sdpa_open(stream, &sdpa);
 *     dt_cuda_sdpa_ready(sdpa, &op, workspace_bytes);              -- once per shape; seconds when a kernel is compiled
 *     dt_cuda_sdpa_run(sdpa, &op, workspace, workspace_bytes);     -- queues it on the stream
 *
 * lse is the natural logarithm: cuDNN's statistics are max + ln(sum exp) of the scaled scores,
 * float32, [B, H, queries, 1] (NVIDIA/cudnn-frontend, docs/operations/Attention.md,
 * "set_stats_use_log2"; the kernels that 9.19 compiles for sm_80, sm_90 and sm_100 end in log2(sum)
 * * ln 2 + max * ln 2), as dt_merge needs it.
 */
#ifndef DT_KERNELS_CUDA_CUDNN_H
#define DT_KERNELS_CUDA_CUDNN_H

#include "kernels/compute.h"

/* Number of cached shapes, most recently used first. An evicted plan unloads its kernel: graphs
 * recorded with it must be freed before. */
#ifndef DT_CUDA_SDPA_PLANS
#define DT_CUDA_SDPA_PLANS 64
#endif

/* The largest head dimension in cuDNN's support matrix (ibid., "Support Matrix"). */
#define DT_CUDA_SDPA_HEAD_MOST 256

struct dt_cuda_sdpa;

/* Facts of a plan, for tables and tests. */
struct dt_cuda_sdpa_plan {
    int64_t engine, workspace_bytes;
    int proposed,
        /* proposals of the heuristics, and those skipped because they failed
         * or need more workspace */
        skipped;
};

/* stream: cudaStream_t of the current device. Does not call cuDNN. DT_ENOMEM. */
dt_status dt_cuda_sdpa_open(void *stream, struct dt_cuda_sdpa **sdpa) DT_MUST_CHECK;
/* Like open, for an absent device: its properties as cuDNN's JSON (must outlive sdpa). Plans are
 * chosen and built as far as possible without a driver; run returns DT_EUNSUP. */
dt_status dt_cuda_sdpa_describe(const char *device_json, struct dt_cuda_sdpa **sdpa) DT_MUST_CHECK;
void dt_cuda_sdpa_close(struct dt_cuda_sdpa *sdpa); /* NULL is fine; runs must have completed */

/* Builds the plan of this shape in bfloat16 (pointers are ignored, except whether lse is NULL), or
 * finds it. Waits for the stream when it evicts a plan. DT_EUNSUP with cuDNN's reason: a head
 * dimension that is no multiple of 8 or too large, no engine, no keys, no plan within
 * workspace_bytes. DT_ELIB: cuDNN failed. */
dt_status dt_cuda_sdpa_ready(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                             int64_t workspace_bytes) DT_MUST_CHECK;
/* The plan that ready built for this shape; false when there is none. */
bool dt_cuda_sdpa_plan(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                       struct dt_cuda_sdpa_plan *plan);
/* Queues the attention on the stream. workspace: device memory of the plan's size, at a multiple of
 * 256 bytes, in use until the stream has passed it. Pointers at multiples of 16 bytes. DT_EUNSUP:
 * not made ready (sdpa may be NULL then). DT_ELIB. */
dt_status dt_cuda_sdpa_run(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                           void *workspace, int64_t workspace_bytes) DT_MUST_CHECK;

/* Version of the loaded library, "9.19.0". */
const char *dt_cuda_sdpa_version(void);

#endif
