/* SPDX-License-Identifier: MIT */
/* cudnn - attention by cuDNN: one SDPA_FWD operation of its backend API, a plan for each shape
 *
 * The plan of a shape is chosen by cuDNN's heuristics (mode A) among those whose workspace fits; it is built by ready and only
 * executed by run. Nothing of cuDNN is created before the first ready: a worker that never asks for it pays nothing.
 *
 *     dt_cuda_sdpa_open(stream, &sdpa);
 *     dt_cuda_sdpa_ready(sdpa, &op, workspace_bytes);              -- once for a shape: seconds where a kernel is compiled
 *     dt_cuda_sdpa_run(sdpa, &op, workspace, workspace_bytes);     -- puts it on the stream
 *
 * lse is the natural logarithm: cuDNN's statistics are max + ln(sum exp) of the scaled scores, float32, [B, H, queries, 1]
 * (NVIDIA/cudnn-frontend, docs/operations/Attention.md, "set_stats_use_log2"; the kernels that 9.19 compiles for sm_80, sm_90 and
 * sm_100 end in log2(sum) * ln 2 + max * ln 2): what dt_merge merges by.
 */
#ifndef DT_KERNELS_CUDA_CUDNN_H
#define DT_KERNELS_CUDA_CUDNN_H

#include "kernels/compute.h"

/* Shapes that are kept, the last used first. A plan that falls out takes its kernel along: graphs recorded with it must be
 * gone by then. */
#ifndef DT_CUDA_SDPA_PLANS
#define DT_CUDA_SDPA_PLANS 64
#endif

/* The largest head dimension of cuDNN's table of what is supported (ibid., "Support Matrix"). */
#define DT_CUDA_SDPA_HEAD_MOST 256

struct dt_cuda_sdpa;

/* What a plan is, for tables and tests. */
struct dt_cuda_sdpa_plan {
    int64_t engine, workspace_bytes;
    int proposed,
        skipped; /* plans of the heuristics; those before this one that could not be had or asked for more */
};

/* stream: cudaStream_t of the device that is current. Calls nothing of cuDNN. DT_ENOMEM. */
dt_status dt_cuda_sdpa_open(void *stream, struct dt_cuda_sdpa **sdpa) DT_MUST_CHECK;
/* The same for a device that is not here: its properties as cuDNN's JSON (must outlive sdpa). Plans are chosen and built for
 * it as far as a driver goes; run is DT_EUNSUP. */
dt_status dt_cuda_sdpa_describe(const char *device_json, struct dt_cuda_sdpa **sdpa) DT_MUST_CHECK;
void dt_cuda_sdpa_close(struct dt_cuda_sdpa *sdpa); /* NULL is fine; what was run must be done */

/* Builds the plan of this shape in bfloat16 (pointers are ignored but for lse being NULL), or finds it. Waits for the stream
 * when an older plan has to go. DT_EUNSUP with cuDNN's reason: a head dimension that is no multiple of 8 or too large, no
 * engine, no keys, no plan within workspace_bytes. DT_ELIB: cuDNN failed. */
dt_status dt_cuda_sdpa_ready(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                             int64_t workspace_bytes) DT_MUST_CHECK;
/* The plan that ready built for this shape; false when there is none. */
bool dt_cuda_sdpa_plan(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                       struct dt_cuda_sdpa_plan *plan);
/* Puts the attention on the stream. workspace: device memory, at a multiple of 256 bytes, as long as the plan asks; it is
 * free again when the stream gets past. Pointers at multiples of 16 bytes. DT_EUNSUP: not made ready (sdpa may
 * be NULL then). DT_ELIB. */
dt_status dt_cuda_sdpa_run(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                           void *workspace, int64_t workspace_bytes) DT_MUST_CHECK;

/* "9.19.0" of the library that is loaded. */
const char *dt_cuda_sdpa_version(void);

#endif
