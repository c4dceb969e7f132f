/* SPDX-License-Identifier: MIT */
/* One head dimension of FlashAttention-3: fills its parameters as hopper/flash_api.cpp does for a
 * dense forward pass without a mask, a paged cache or a split of the keys. Its headers end the
 * process when a call of CUDA fails; here the error is thrown and returned. */
#ifndef DT_KERNELS_CUDA_FA3_INSTANCE_CUH
#define DT_KERNELS_CUDA_FA3_INSTANCE_CUH

#include "kernels/cuda/fa3/fa3.h"

#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

#include <cuda_check.h>
#undef CHECK_CUDA
#define CHECK_CUDA(call) dt_fa3_check(call)
static inline void dt_fa3_check(cudaError_t error)
{
    if (error != cudaSuccess)
        throw error;
}

#include <flash_fwd_launch_template.h>

static inline int dt_fa3_multiprocessors()
{
    int device = 0, count = 0;
    dt_fa3_check(cudaGetDevice(&device));
    dt_fa3_check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

static inline void dt_fa3_tensors(const struct dt_attention *op, float *lse,
                                  Flash_fwd_params &params)
{
    params.q_ptr = const_cast<void *>(op->q);
    params.k_ptr = const_cast<void *>(op->k);
    params.v_ptr = const_cast<void *>(op->v);
    params.o_ptr = op->out;
    params.softmax_lse_ptr = lse;
    params.q_batch_stride = op->q_at.sequence;
    params.k_batch_stride = params.v_batch_stride = op->kv_at.sequence;
    params.o_batch_stride = op->out_at.sequence;
    params.q_row_stride = op->q_at.row;
    params.k_row_stride = params.v_row_stride = op->kv_at.row;
    params.o_row_stride = op->out_at.row;
    params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride =
        op->head;
    params.v_dim_stride = 1;
}

template <int Head> static int dt_fa3_run(const struct dt_attention *op, float *lse, void *stream)
{
    Flash_fwd_params params = {};
    dt_fa3_tensors(op, lse, params);
    params.b = params.b_k = op->sequences;
    params.h = params.h_k = op->heads;
    params.d = params.dv = op->head;
    params.d_rounded = params.dv_rounded = Head;
    params.seqlen_q = op->queries;
    params.seqlen_k = op->keys;
    params.seqlen_q_rounded = (op->queries + 127) / 128 * 128;
    params.seqlen_k_rounded = (op->keys + 127) / 128 * 128;
    params.total_q = op->sequences * op->queries;
    params.total_k = op->sequences * op->keys;
    params.scale_softmax = 1.0F / std::sqrt(static_cast<float>(op->head));
    params.p_dropout = params.rp_dropout = 1.0F; /* the share that is kept */
    params.p_dropout_in_uint8_t = 255;
    params.window_size_left = params.window_size_right = -1;
    params.is_bf16 = true;
    params.num_splits = params.page_size = 1;
    params.arch = 90;
    try {
        params.num_sm = dt_fa3_multiprocessors();
        run_mha_fwd_<90, cutlass::bfloat16_t, Head, Head, false, false, false, false>(
            params, static_cast<cudaStream_t>(stream));
        return cudaSuccess;
    } catch (cudaError_t error) {
        return error;
    }
}

#define DT_FA3_INSTANCE(head)                                                                      \
    extern "C" int dt_fa3_launch_##head(const struct dt_attention *op, float *lse, void *stream)   \
    {                                                                                              \
        return dt_fa3_run<head>(op, lse, stream);                                                  \
    }

#endif
